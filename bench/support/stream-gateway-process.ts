import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { startGateway } from '../../test/support/gateway.ts'

/**
 * The gateway as a process of its own, so that it can be pinned to a core and its time be read. Told where the node's three doors are as one JSON
 * argument; says its ports and a token as a JSON line, once it can serve them.
 */
const node = JSON.parse(process.argv[2] ?? '{}') as { rpc?: string; ws?: string; grpc?: string }
const plan = {
  ...BUILT_IN_PLANS.professional,
  unitsPerSecond: null,
  sendsPerSecond: null,
  wsConnections: null,
  wsSubscriptions: null,
  grpcStreams: null,
}
await using gateway = await startGateway([{ name: 'bench', ...node }], { ...BUILT_IN_PLANS, bench: plan })
const { token } = await gateway.subscribe({ plan: 'bench' })
while (node.ws !== undefined && !gateway.upstreams.status().some(({ wsConnections }) => wsConnections > 0)) {
  await new Promise((resolve) => setTimeout(resolve, 20))
}
const { ws, grpc } = gateway.bundle
process.stdout.write(`${JSON.stringify({ ws: ws.port, grpc: grpc.port, token })}\n`)
await new Promise((resolve) => process.once('SIGTERM', resolve))
