import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import type { ReadResponse } from '../store/protocol.ts'
import { createFormatSlices } from './format-slices.ts'
import { PART_BYTES } from './held-result.ts'
import { createQueryRunner, type QueryRunner } from './query-runner.ts'
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

test('a statement that its checks refuse is reported as not run, and one that fails while it runs is not', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const isUnrun = async (query: string, limits = {}) => {
    const given = job(query, 600)
    const response = await runner.run(1, { ...given, limits: { ...given.limits, ...limits } }, 'one')
    assert.ok(!response.ok, query)
    return response.isUnrun
  }
  for (const query of ['DROP TABLE blocks', 'SELEC 1', 'SELECT nothing FROM blocks', 'SELECT * FROM other'])
    assert.equal(await isUnrun(query), true, query)
  assert.equal(await isUnrun('SELECT slot FROM blocks', { rowsMax: 1 }), false)
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
  const complete = await runner.run(2, { ...job(LARGE, 600), isHeld: true }, 'one')
  assert.ok(!complete.ok && complete.type === 'CANNOT_SCHEDULE_TASK', 'the budget limits as before')
  assert.ok((await runner.run(3, { ...job(`${LARGE} LIMIT 200000`, 600), isHeld: true }, 'one')).ok)
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

/** Reads the rest of a result; the parts, or the error that ended it. */
async function readRest(runner: QueryRunner, id: number): Promise<{ parts: Uint8Array[]; end: ReadResponse }> {
  const parts: Uint8Array[] = []
  for (;;) {
    const end = await runner.read(id)
    if (!end.ok) return { parts, end }
    parts.push(end.part)
    if (end.end !== undefined) return { parts, end }
  }
}

test('a large result is formatted while it is read, in parts of a bounded size; discarding it ends its query', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  for (const id of [1, 2]) {
    const response = await runner.run(id, job(LARGE, 600), 'one')
    assert.ok(response.ok)
    assert.equal(response.end, undefined)
    assert.ok(response.first.byteLength <= PART_BYTES)
    assert.equal(runner.isRunning(), true)
    if (id === 1) {
      runner.discard(1)
      assert.equal((await runner.read(1)).ok, false)
      await until('the query has ended', () => !runner.isRunning())
      continue
    }
    const { parts, end } = await readRest(runner, id)
    assert.ok(parts.every(({ byteLength }) => byteLength <= PART_BYTES))
    const body = Buffer.concat([response.first, ...parts])
    const { rows, data } = JSON.parse(body.toString()) as { rows: number; data: unknown[] }
    assert.deepEqual([rows, data.length], [360_000, 360_000])
    assert.deepEqual(end.ok && { rows: end.end?.rows, bytes: end.end?.bytes }, { rows: 360_000, bytes: body.length })
  }
})

test('a large result takes no more memory than its window', async () => {
  using opened = await openQueryDatabase()
  const budget = { heldBytesMax: 2 ** 23, heldBytesPerSubscription: 2 ** 23 }
  const runner = createQueryRunner(opened.database, budget)
  const response = await runner.run(1, job(LARGE, 600), 'one')
  assert.ok(response.ok)
  const { parts } = await readRest(runner, 1)
  assert.ok(parts.reduce((sum, { byteLength }) => sum + byteLength, 0) > 2 ** 25, 'more than the budget')
})

test('a result that is to be complete before its first byte is held in full, within the budget', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const complete = await runner.run(1, { ...job(LARGE, 600), isHeld: true }, 'one')
  assert.ok(complete.ok && complete.end !== undefined && complete.end.bytes > 2 ** 25)
  const refused = await runner.run(2, { ...job(LARGE, 600), isHeld: true }, 'one')
  assert.equal(refused.ok || refused.type, 'CANNOT_SCHEDULE_TASK')
})

const FAILING =
  "SELECT CAST(CASE WHEN a.slot + b.slot = (SELECT 2 * max(slot) FROM blocks) THEN 'x' ELSE '1' END AS INTEGER) AS n, a.fee, b.fee FROM transactions a, transactions b"

test('a query that fails before its result is sent returns its error and no rows', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const response = await runner.run(1, { ...job(FAILING, 600), isHeld: true }, 'one')
  assert.deepEqual([response.ok, response.ok || response.type], [false, 'CANNOT_PARSE_TEXT'])
})

test('a reader that waits when the last rows are already read gets the end of the result', async () => {
  using opened = await openQueryDatabase()
  const yieldTurn = () => new Promise<void>((resolve) => void setImmediate(resolve))
  const slices = { granted: 0, open: () => ({ isSpent: () => true, yield: yieldTurn }) }
  const runner = createQueryRunner(opened.database, HELD, { slices })
  const response = await runner.run(1, { ...job(LARGE, 600), defaultFormat: 'TabSeparated' }, 'one')
  assert.ok(response.ok && response.end === undefined)
  for (let bytes = response.first.byteLength; ; ) {
    const read = await runner.read(1)
    assert.ok(read.ok)
    bytes += read.part.byteLength
    assert.ok(read.part.byteLength > 0 || read.end !== undefined, 'no rows and no end')
    if (read.end === undefined) continue
    assert.equal(read.end.bytes, bytes)
    break
  }
})

/** The engine's stream of a statement that failed or was interrupted ends like one that is complete. */
test('a query that fails or is stopped after its first parts were read ends with its error', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  let lastId = 1
  const failing = await runner.run(1, job(FAILING, 600), 'one')
  assert.ok(failing.ok)
  const { parts, end } = await readRest(runner, 1)
  assert.ok(parts.length > 1)
  assert.deepEqual([end.ok, end.ok || end.type], [false, 'CANNOT_PARSE_TEXT'])
  for (const [reason, type] of [
    ['timeout', 'TIMEOUT_EXCEEDED'],
    ['cancelled', 'QUERY_WAS_CANCELLED'],
  ] as const) {
    const id = ++lastId
    assert.ok((await runner.run(id, job(LARGE, 600), 'one')).ok)
    await runner.read(id)
    runner.interrupt(id, reason)
    const { end: stopped } = await readRest(runner, id)
    assert.deepEqual([stopped.ok, stopped.ok || stopped.type], [false, type])
  }
})

test('the time limit does not count the time for which a query waits for its reader', async () => {
  using opened = await openQueryDatabase()
  const clock = createManualClock()
  const runner = createQueryRunner(opened.database, HELD, { clock })
  assert.ok((await runner.run(1, job(LARGE, 8), 'one')).ok)
  clock.advance(60_000)
  const { end } = await readRest(runner, 1)
  assert.ok(end.ok, end.ok ? '' : end.message)
})

test('a statement whose parse tree is too large is refused before the tree is read', async () => {
  using opened = await openQueryDatabase()
  const runner = createQueryRunner(opened.database, HELD)
  const response = await runner.run(1, job(`SELECT 1${',1+1'.repeat(4_900)}`, 600), 'one')
  assert.ok(!response.ok && response.type === 'TOO_BIG_AST')
  assert.match(response.message, /4194304 bytes/)
})
