import { parseArgs } from 'node:util'
import { measureSnapshot } from '../test/support/store/snapshot-load.ts'

/**
 * The time to open and load a store of 100,000 subscriptions, each with a customer and a token, and the memory used after it. `checkMs` is the full
 * check of the store, which a server runs at its start.
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
