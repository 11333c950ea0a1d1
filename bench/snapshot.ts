import { parseArgs } from 'node:util'
import { measureSnapshot } from '../test/support/snapshot-load.ts'

/**
 * How long a process takes to open a store of 100,000 subscriptions, each with a customer and a token, and to load it, and how much memory it holds
 * then. `checkMs` is the full check of the store, which a server does when it starts.
 *
 *   npx node bench/snapshot.ts [--engine sqlite|postgres] [--count 100000]
 */
const { values } = parseArgs({
  options: { engine: { type: 'string' }, count: { type: 'string', default: '100000' } },
})
for (const engine of ['sqlite', 'postgres'] as const) {
  if (values.engine !== undefined && values.engine !== engine) continue
  process.stdout.write(`${engine} ${JSON.stringify(await measureSnapshot(engine, Number(values.count)))}\n`)
}
