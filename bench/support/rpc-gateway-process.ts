import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { startGateway } from '../../test/support/gateway.ts'

/**
 * The gateway as a process of its own, so that it can be pinned to a core and its time and memory be read: access on SQLite, the bundle in front
 * of one node. Told the node's address as argument; says its port and a token as a JSON line.
 */
const [upstream = ''] = process.argv.slice(2)
const plan = { ...BUILT_IN_PLANS.professional, unitsPerSecond: 100_000_000, units: null }
// The node of this bench gives the same large answer to every question, also to that for its slot, and no real one would. It is not asked.
const upstreams = { health: { probeMs: 60_000 } }
await using gateway = await startGateway(
  [{ name: 'bench', rpc: upstream }],
  { ...BUILT_IN_PLANS, bench: plan },
  { upstreams },
)
const { token } = await gateway.subscribe({ plan: 'bench' })
process.stdout.write(`${JSON.stringify({ port: Number(new URL(gateway.url).port), token })}\n`)
await new Promise((resolve) => process.once('SIGTERM', resolve))
