import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { startGateway } from '../../test/support/gateway/start.ts'

/**
 * The gateway in its own process, so that it can be pinned to a core and its CPU time measured. The argument holds the node's three addresses as
 * JSON; prints its ports and a token as a JSON line when it is ready.
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
