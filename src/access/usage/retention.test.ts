import assert from 'node:assert/strict'
import { after, describe, test } from 'node:test'
import { addCustomer, ENGINES, STORE_DEPS, startEngines, until } from '../../../test/support/store/engines.ts'
import { createManualClock } from '../../core/clock.ts'
import { createUlid } from '../../core/ulid.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { createLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { parseAccessOptions } from '../options.ts'
import { startAccess } from '../service.ts'
import type { UsageRow } from '../store/model.ts'

const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

const engines = await startEngines()
after(() => engines[Symbol.asyncDispose]())

const row = (hour: number, subscriptionId = 'sub_a'): UsageRow => ({
  subscriptionId,
  hour,
  interface: 'rpc',
  calls: 2,
  units: 10,
  refused: 1,
  bytes: 20,
})

for (const engine of ENGINES) {
  describe(`old usage on ${engine}`, () => {
    test('a batch with a mark is added once, however often it is sent, and old marks are pruned', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      const nowMs = Date.UTC(2027, 0, 1)
      const spool = createUlid(nowMs, secureRandom)
      const other = createUlid(nowMs, secureRandom)
      const send = (mark: { spool: string; seq: number; isDurable: boolean }) =>
        store.addUsage([row(HOUR_MS)], new Map([['tok_1', 5]]), mark)
      const units = async () => (await store.usage({})).reduce((sum, each) => sum + each.units, 0)
      await send({ spool, seq: 1, isDurable: false })
      await send({ spool, seq: 1, isDurable: true })
      await send({ spool, seq: 2, isDurable: true })
      await send({ spool, seq: 1, isDurable: false })
      assert.equal(await units(), 20)
      await send({ spool: other, seq: 1, isDurable: false })
      assert.equal(await units(), 30)
      await store.pruneUsage(nowMs, 0)
      await send({ spool, seq: 2, isDurable: false })
      assert.equal(await units(), 30, 'a mark of that time stays')
      await store.pruneUsage(nowMs + 1, 0)
      assert.deepEqual(await bench.tamper("SELECT mirror FROM audit_mirrors WHERE mirror LIKE 'usage:%'"), [])
      assert.deepEqual(await store.integrity(), [])
    })

    test('is pruned by hours, oldest first; other rows and the audit chain stay intact', async () => {
      await using bench = await engines.bench(engine)
      await using store = await bench.open()
      await addCustomer(store, 'acme')
      const hours = [1, 2, 3, 4].map((at) => at * HOUR_MS)
      await store.addUsage([...hours.map((hour) => row(hour)), row(HOUR_MS, 'sub_b')], new Map())
      assert.equal(await store.pruneUsage(4 * HOUR_MS, 2), 2)
      assert.deepEqual(
        (await store.usage({})).map(({ hour }) => hour),
        [3 * HOUR_MS, 4 * HOUR_MS],
      )
      assert.equal(await store.pruneUsage(4 * HOUR_MS, 2), 1, 'the hour at the limit stays')
      assert.equal(await store.pruneUsage(4 * HOUR_MS, 2), 0)
      assert.equal((await store.usage({})).length, 1)
      assert.equal((await store.auditHead()).seq, 1)
      assert.deepEqual(await store.integrity(), [])
    })
  })
}

test('a running process deletes usage older than keepDays', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  const nowMs = Math.floor(Date.UTC(2027, 5, 1) / HOUR_MS) * HOUR_MS
  await store.addUsage([row(nowMs - 63 * DAY_MS), row(nowMs - 61 * DAY_MS)], new Map())
  const clock = createManualClock(nowMs)
  using registry = createMetricsRegistry()
  const lifecycle = { degraded() {}, recovered() {} }
  const options = parseAccessOptions({ usage: { keepDays: 62 } })
  await using _access = await startAccess(options, { ...STORE_DEPS, store, clock, registry, lifecycle, env: {} })
  await clock.advanceAsync(HOUR_MS - 1)
  assert.equal((await store.usage({})).length, 2, 'the clock may be wrong at the start')
  clock.advance(10 * 60_000)
  await until(async () => (await store.usage({})).length === 1)
  assert.equal((await store.usage({}))[0]?.hour, nowMs - 61 * DAY_MS)
  // A wall clock that is set wrong for some minutes deletes nothing.
  const pruned: number[] = []
  const { pruneUsage } = store
  store.pruneUsage = async (beforeMs, hoursMax) => {
    pruned.push(beforeMs)
    return pruneUsage(beforeMs, hoursMax)
  }
  const rightMs = clock.nowMs()
  clock.setWallMs(nowMs + 1000 * DAY_MS)
  await clock.advanceAsync(30 * 60_000)
  assert.deepEqual(pruned, [])
  clock.setWallMs(rightMs + 30 * 60_000)
  // More than once: the first deletion may still be under way.
  await until(() => {
    clock.advance(10 * 60_000)
    return pruned.length > 0
  })
  assert.ok(pruned.every((beforeMs) => beforeMs <= nowMs - 61 * DAY_MS))
})

test('usage that cannot be deleted is warned about once, until it could be deleted again; a close stops the deletion', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  const outcomes = ['failing', 'failing', 'done', 'failing', 'endless']
  let calls = 0
  let stopped: unknown
  store.pruneUsage = async (_beforeMs, _hoursMax, signal) => {
    const outcome = outcomes[calls++]
    if (outcome === 'endless') {
      const { promise, resolve } = Promise.withResolvers<void>()
      signal?.addEventListener('abort', () => resolve())
      await promise
      stopped = 'stopped'
    }
    if (outcome === 'failing') throw new Error('no such index')
    return 0
  }
  const clock = createManualClock(Date.UTC(2027, 5, 1))
  const lines: string[] = []
  const log = createLogger({ level: 'warn', destination: { write: (line: string) => lines.push(line) } })
  using registry = createMetricsRegistry()
  const lifecycle = { degraded() {}, recovered() {} }
  {
    const deps = { ...STORE_DEPS, log, store, clock, registry, lifecycle, env: {} }
    await using _access = await startAccess(parseAccessOptions(), deps)
    clock.advance(HOUR_MS - 1)
    for (const at of outcomes.keys()) {
      clock.advance(10 * 60_000)
      await until(() => calls === at + 1)
      await new Promise((resolve) => setImmediate(resolve))
    }
  }
  assert.equal(stopped, 'stopped')
  const warned = lines.filter((line) => line.includes('old usage could not be deleted'))
  assert.equal(warned.length, 2, lines.join(''))
  assert.match(warned[0] ?? '', /"level":"warn".*no such index/)
})

test('the rows of the current and the last month are always kept', () => {
  assert.equal(parseAccessOptions().usage.keepDays, 400)
  assert.throws(() => parseAccessOptions({ usage: { keepDays: 30 } }))
})
