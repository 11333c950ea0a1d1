import { createDecodedSource } from '../../shreds/decoded/source.ts'
import { followDedicatedNodes } from '../compose/access/dedicated-nodes.ts'
import { accountPageOver, accountReportsOver } from '../compose/account/over-channel.ts'
import { openGateway, otherConnections } from '../compose/services/gateway.ts'
import { gatewayMethods } from '../compose/services/service-methods.ts'
import { openThreadUpstreams } from '../compose/services/upstreams.ts'
import { runThread } from '../compose/threads/thread-main.ts'

/** One gateway thread: its own listeners on the ports that all gateway threads share, and its own connections to the nodes. */
runThread(['rpc', 'ws', 'grpc', 'entries'], async (context) => {
  await using opening = new AsyncDisposableStack()
  const access = opening.use(context.openAccess())
  const upstreams = opening.use(await openThreadUpstreams(context))
  opening.use(await followDedicatedNodes(access, upstreams))
  await context.probes.settled()
  const bundle = opening.use(
    await openGateway(context.settings, {
      ...context,
      access,
      upstreams,
      isPortShared: true,
      otherConnections: otherConnections(context.channel),
      decoded: context.start.decodedOutput && createDecodedSource(context.start.decodedOutput),
      decodedReport: () => context.channel.call('decoded-report', undefined),
      accountReports: accountReportsOver(context.channel),
      accountPage: accountPageOver(context.channel),
    }),
  )
  const opened = opening.move()
  return {
    addresses: {
      rpc: bundle.rpc,
      ws: bundle.ws,
      grpc: bundle.grpc,
      ...(bundle.entries === undefined ? {} : { entries: bundle.entries }),
    },
    methods: gatewayMethods(bundle),
    upstreams,
    beginLameDuck: bundle.beginLameDuck,
    drain: bundle.drain,
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
})
