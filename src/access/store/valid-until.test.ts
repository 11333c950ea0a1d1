import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ENGINES, type Engines, startEngines } from '../../../test/support/store/engines.ts'
import { MIGRATIONS } from './migrations.ts'
import type { Subscription } from './model.ts'
import { textCheck } from './rows.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

const NOW_MS = Date.UTC(2027, 0, 1)
/** Every third has no end; of the others, every second is over. One has an end of few digits. */
const ends = Array.from({ length: 700 }, (_, at) => (at % 3 === 0 ? null : at === 1 ? 5 : NOW_MS + (at % 2 ? -at : at)))

/** The row of a subscription in a store of version 6. */
function oldRow(validUntil: number | null, at: number): string {
  const id = `sub_${String(at).padStart(26, '0')}`
  const content = JSON.stringify([id, 1, 'cus_1', `s${at}`, 'starter', ['bundle'], {}, 'active', NOW_MS, validUntil])
  return `('${id}', 1, 's${at}', 'cus_1', '${content}', ${textCheck('subscriptions', content)})`
}

for (const engine of ENGINES) {
  test(`the ends of the subscriptions of an older store on ${engine} become a column, by which they are found`, async () => {
    await using bench = await engines.bench(engine)
    {
      await using _old = await bench.open({ migrations: MIGRATIONS.slice(0, 6), check: 'quick' })
    }
    await bench.tamper(
      `INSERT INTO subscriptions (id, revision, name, customer_id, content, row_check) VALUES ${ends.map(oldRow).join(', ')}`,
    )
    await using store = await bench.open({ check: 'quick' })
    const columns = await bench.tamper('SELECT valid_until FROM subscriptions ORDER BY id')
    assert.deepEqual(
      columns.map(([end]) => (end === null ? null : Number(end))),
      ends,
    )
    const page = await store.page('subscriptions', { limit: 1000, having: { validUntil: { upTo: NOW_MS } } })
    const isOver = ({ validUntil }: Pick<Subscription, 'validUntil'>) => validUntil !== null && validUntil <= NOW_MS
    assert.equal(page.items.filter(isOver).length, ends.filter((validUntil) => isOver({ validUntil })).length)
    assert.ok(page.items.every(isOver), 'the column alone decides')
  })
}
