import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { startGateway } from '../../test/support/gateway/start.ts'

/**
 * The gateway in its own process, so that it can be pinned to a core and its CPU time and memory measured: access on SQLite, the gateway in front
 * of one node. The argument is the node's address; prints its port and a token as a JSON line.
 */
const [upstream = ''] = process.argv.slice(2)
const plan = { ...BUILT_IN_PLANS.professional, unitsPerSecond: 100_000_000, units: null }
// The node of this bench returns the same large response to every call, including health probes, so it is not probed during the bench.
const upstreams = { health: { probeMs: 60_000 } }
await using gateway = await startGateway(
  [{ name: 'bench', rpc: upstream }],
  { ...BUILT_IN_PLANS, bench: plan },
  { upstreams },
)
const { token } = await gateway.subscribe({ plan: 'bench' })
process.stdout.write(`${JSON.stringify({ port: Number(new URL(gateway.url).port), token })}\n`)
await new Promise((resolve) => process.once('SIGTERM', resolve))
