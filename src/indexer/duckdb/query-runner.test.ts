import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createFormatSlices } from './format-slices.ts'
import { PART_BYTES } from './held-result.ts'
import { createQueryRunner } from './query-runner.ts'
import { openQueryDatabase } from './test-queries.ts'

const HELD = { heldBytesMax: 2 ** 27, heldBytesPerSubscription: 2 ** 26 }
const HEAVY =
  'SELECT count(*) FROM transactions a, transactions b, transactions c, transactions d WHERE a.fee + b.fee + c.fee + d.fee = 1'
/** 600 transactions: 360,000 rows. */
const LARGE = 'SELECT a.slot, b.fee, a.signature FROM transactions a, transactions b'
const job = (query: string, secondsMax: number) => ({
  query,
  parameters: {},
  defaultFormat: 'JSON',
  settings: {},
  limits: { secondsMax, rowsMax: 1_000_000, bytesMax: 2 ** 26 },
})

test('an interrupt before the query has a connection cancels it', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const running = runner.run(1, job(HEAVY, 600), 'one')
  runner.interrupt(1, 'cancelled')
  const response = await running
  assert.deepEqual([response.ok, response.ok || response.type], [false, 'QUERY_WAS_CANCELLED'])
})

test('a query ends at its time limit without affecting a concurrent one', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const [long, short] = await Promise.all([
    runner.run(1, job(HEAVY, 0.2), 'one'),
    runner.run(2, job('SELECT count(*) FROM blocks', 600), 'two'),
  ])
  assert.deepEqual([long.ok, long.ok || long.type], [false, 'TIMEOUT_EXCEEDED'])
  assert.equal(short.ok, true)
})

test('a query that is stopped while its rows are formatted ends and releases its memory', async () => {
  using opened = await openQueryDatabase()
  const slices = createFormatSlices()
  const runner = createQueryRunner(opened.database, { ...HELD, heldBytesPerSubscription: 2 ** 25 }, { slices })
  for (const reason of ['timeout', 'cancelled'] as const) {
    const running = runner.run(1, job(LARGE, 600), 'one')
    while (slices.granted < 3) await new Promise((resolve) => setImmediate(resolve))
    runner.interrupt(1, reason)
    const response = await running
    assert.equal(response.ok || response.type, reason === 'timeout' ? 'TIMEOUT_EXCEEDED' : 'QUERY_WAS_CANCELLED')
  }
  const complete = await runner.run(2, job(LARGE, 600), 'one')
  assert.ok(!complete.ok && complete.type === 'CANNOT_SCHEDULE_TASK', 'the budget limits as before')
  assert.ok((await runner.run(3, job(`${LARGE} LIMIT 200000`, 600), 'one')).ok)
})

test('beside four large results a short query waits for a bounded number of slices', async (t) => {
  using opened = await openQueryDatabase()
  const slices = createFormatSlices()
  const runner = createQueryRunner(
    opened.database,
    { heldBytesMax: 2 ** 29, heldBytesPerSubscription: 2 ** 26 },
    { slices },
  )
  let isOver = false
  const large = Promise.all([1, 2, 3, 4].map((id) => runner.run(id, job(LARGE, 600), `s${id}`))).finally(
    () => (isOver = true),
  )
  while (slices.granted < 4) await new Promise((resolve) => setImmediate(resolve))
  const taken: number[] = []
  const startedMs = performance.now()
  for (let id = 5; id < 10; id++) {
    const before = slices.granted
    assert.ok((await runner.run(id, job('SELECT count(*) FROM transactions', 600), 'short')).ok)
    taken.push(slices.granted - before)
  }
  const tookMs = (performance.now() - startedMs) / 5
  assert.equal(isOver, false, 'the large queries are still running')
  assert.ok((await large).every(({ ok }) => ok))
  t.diagnostic(`slices of others: ${taken.join(', ')}; ${Math.round(tookMs)} ms each`)
  assert.ok(Math.max(...taken) < 100, `${taken.join(', ')} slices`)
  assert.ok(tookMs < 2000, `${tookMs} ms`)
})

test('a large result is read in parts of a bounded size, and discarding it releases its memory', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, { ...HELD, heldBytesMax: 2 ** 26 })
  for (const id of [1, 2]) {
    const response = await runner.run(id, job(LARGE, 600), 'one')
    assert.ok(response.ok)
    const { bytes, first } = response.done
    assert.ok(bytes > 2 ** 25 && first.byteLength <= PART_BYTES)
    if (id === 1) {
      runner.discard(1)
      assert.equal(runner.read(1).byteLength, 0)
      continue
    }
    const parts = [first]
    for (let part = runner.read(id); part.byteLength > 0; part = runner.read(id)) parts.push(part)
    assert.ok(parts.every(({ byteLength }) => byteLength <= PART_BYTES))
    const { rows, data } = JSON.parse(Buffer.concat(parts).toString()) as { rows: number; data: unknown[] }
    assert.deepEqual([rows, data.length], [360_000, 360_000])
  }
})

test('a query that fails after many rows returns its error and no rows', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const failing =
    "SELECT CAST(CASE WHEN a.slot + b.slot = (SELECT 2 * max(slot) FROM blocks) THEN 'x' ELSE '1' END AS INTEGER) FROM transactions a, transactions b"
  const response = await runner.run(1, job(failing, 600), 'one')
  assert.deepEqual([response.ok, response.ok || response.type], [false, 'CANNOT_PARSE_TEXT'])
})

test('a statement whose parse tree is too large is refused before the tree is read', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const response = await runner.run(1, job(`SELECT 1${',1+1'.repeat(4_900)}`, 600), 'one')
  assert.ok(!response.ok && response.type === 'TOO_BIG_AST')
  assert.match(response.message, /4194304 bytes/)
})
