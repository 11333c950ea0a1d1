import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { createLogger, type Logger, silentLogger } from '../../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../platform/telemetry/metrics-registry.ts'
import { indexerMetrics } from '../metrics.ts'
import type { QueryError } from './error.ts'
import { createQueryExecutor, type QueryExecutor } from './executor.ts'
import type { QueryJob } from './request.ts'
import { createDatabaseDouble, type DatabaseDouble, type QueryProfile } from './test-database-double.ts'

const LIMITS = {
  concurrent: 8,
  concurrentPerSubscription: 4,
  waitingMax: 64,
  waitSecondsMax: 300,
  residentBytesMax: 1000,
  secondsMax: 30,
}
const LIGHT: QueryProfile = { ms: 50, bytes: 1 }
const GREEDY: QueryProfile = { ms: 60_000, bytes: 2000, afterMs: 500 }

type Rig = Disposable & {
  readonly clock: ManualClock
  readonly executor: QueryExecutor
  readonly database: DatabaseDouble
  run(
    subscriptionId: string,
    profile: QueryProfile | (() => QueryProfile),
    disconnected?: AbortSignal,
  ): Promise<'ok' | QueryError>
}

function startRig(log: Logger = silentLogger): Rig {
  const clock = createManualClock()
  const registry = createMetricsRegistry()
  const profiles = new Map<string, () => QueryProfile>()
  const database = createDatabaseDouble(clock, (query) => profiles.get(query)?.() ?? LIGHT)
  const metrics = indexerMetrics(registry)
  const executor = createQueryExecutor(LIMITS, { store: database.store, clock, log, metrics })
  return {
    clock,
    executor,
    database,
    async run(subscriptionId, profile, disconnected = new AbortController().signal) {
      const query = `${subscriptionId} ${profiles.size}`
      profiles.set(query, typeof profile === 'function' ? profile : () => profile)
      try {
        using _result = await executor.run(
          subscriptionId,
          { query, limits: { secondsMax: LIMITS.secondsMax } } as QueryJob,
          disconnected,
        )
        return 'ok'
      } catch (error) {
        return error as QueryError
      }
    },
    [Symbol.dispose]() {
      executor[Symbol.dispose]()
      registry[Symbol.dispose]()
    },
  }
}

const typeOf = (outcome: 'ok' | QueryError): string => (outcome === 'ok' ? 'ok' : outcome.type)

test('when the memory limit is reached only the query that caused it fails; the others get their results', async () => {
  using rig = startRig()
  const all = Promise.all([
    rig.run('bad', GREEDY),
    ...['good', 'better', 'best'].map((who) => rig.run(who, { ms: 2000, bytes: 10 })),
  ])
  await rig.clock.advanceAsync(60_000)
  assert.deepEqual((await all).map(typeOf), ['MEMORY_LIMIT_EXCEEDED', 'ok', 'ok', 'ok'])
  assert.equal(rig.database.kills, 2)
})

test('the log names the queries of a killed process by their hashes, and not by their texts', async () => {
  const lines: string[] = []
  const log = createLogger({ level: 'warn', destination: { write: (line: string) => lines.push(line) } })
  using rig = startRig(log)
  const done = rig.run('bad', GREEDY)
  await rig.clock.advanceAsync(60_000)
  await done
  // `printf %s 'bad 0' | sha256sum`
  for (const message of ['database process ended while queries ran', 'a query ended the database process'])
    assert.match(lines.find((line) => line.includes(message)) ?? '', /071d98ef34005bce/)
  assert.doesNotMatch(lines.join(''), /bad 0/)
})

test('a cheap query of the offender in between does not shift the blame to another subscription', async () => {
  using rig = startRig()
  for (let round = 0; round < 20; round++) {
    const both = Promise.all([rig.run('bad', GREEDY), rig.run('victim', { ms: 5000, bytes: 10 })])
    await rig.clock.advanceAsync(200)
    const cheap = rig.run('bad', LIGHT)
    await rig.clock.advanceAsync(120_000)
    await cheap
    assert.equal(typeOf((await both)[1]), 'ok', `round ${round}`)
  }
})

test('a query that cannot be interrupted is ended with its process, and its subscription is refused for longer each time', async () => {
  using rig = startRig()
  for (const seconds of [30, 120, 480, 1800, 1800]) {
    const stuck = rig.run('stuck', { ms: 0, bytes: 0, isStuck: true })
    await rig.clock.advanceAsync(100_000)
    assert.equal(typeOf(await stuck), 'TIMEOUT_EXCEEDED')
    const refused = await rig.run('stuck', LIGHT)
    assert.ok(refused !== 'ok' && refused.type === 'TOO_MANY_SIMULTANEOUS_QUERIES')
    assert.ok((refused.retryAfterSeconds ?? 0) <= seconds && (refused.retryAfterSeconds ?? 0) > seconds - 65)
    await rig.clock.advanceAsync(seconds * 1000)
  }
})

test('a query blocked by one that cannot be interrupted is not refused', async () => {
  using rig = startRig()
  // The victim began first, so it reaches its time limit first: it waits for threads that the other query does not release.
  let isBlocked = true
  const victim = rig.run('victim', () => (isBlocked ? { ms: 0, bytes: 0, isStuck: true } : { ms: 100, bytes: 1 }))
  await rig.clock.advanceAsync(1000)
  const bad = rig.run('bad', { ms: 0, bytes: 0, isStuck: true })
  await rig.clock.advanceAsync(33_000)
  isBlocked = false
  await rig.clock.advanceAsync(200_000)
  assert.equal(typeOf(await victim), 'ok')
  assert.equal(typeOf(await bad), 'TIMEOUT_EXCEEDED')
})

test('memory that was in use before does not count against an exclusive query', async () => {
  using rig = startRig()
  rig.database.baseBytes = 900
  const running = rig.run('victim', { ms: 2000, bytes: 200 })
  await rig.clock.advanceAsync(60_000)
  assert.equal(typeOf(await running), 'SOCKET_TIMEOUT')
  rig.database.baseBytes = 100
  const again = rig.run('victim', LIGHT)
  await rig.clock.advanceAsync(10_000)
  assert.equal(typeOf(await again), 'ok')
})

test('queries that exceed the memory limit together run one after another', async () => {
  using rig = startRig()
  const together = Promise.all([rig.run('a', { ms: 2000, bytes: 500 }), rig.run('b', { ms: 2000, bytes: 500 })])
  await rig.clock.advanceAsync(30_000)
  assert.deepEqual((await together).map(typeOf), ['ok', 'ok'])
})

test('a query that does harm only beside others is found', async () => {
  using rig = startRig()
  const outcomes: string[] = []
  for (let round = 0; round < 4; round++) {
    let attempts = 0
    const bad = rig.run('bad', () => (attempts++ === 0 ? GREEDY : LIGHT))
    const good = rig.run('good', { ms: 3000, bytes: 1 })
    await rig.clock.advanceAsync(25_000)
    assert.equal(typeOf(await good), 'ok')
    outcomes.push(typeOf(await bad))
  }
  assert.deepEqual(outcomes, ['ok', 'ok', 'MEMORY_LIMIT_EXCEEDED', 'TOO_MANY_SIMULTANEOUS_QUERIES'])
})

test('a process that its supervisor closes counts against no query', async () => {
  using rig = startRig()
  for (let round = 0; round < 6; round++) {
    const running = rig.run('one', { ms: 500, bytes: 1 })
    await rig.clock.advanceAsync(100)
    rig.database.close()
    await rig.clock.advanceAsync(20_000)
    assert.equal(typeOf(await running), 'ok')
  }
})

test('a query that crashes its process twice while it runs exclusively is refused', async () => {
  using rig = startRig()
  const both = Promise.all([rig.run('bad', { ms: 0, bytes: 0, crashMs: 300 }), rig.run('good', { ms: 900, bytes: 1 })])
  await rig.clock.advanceAsync(10_000)
  const [bad, good] = await both
  assert.deepEqual([bad, good].map(typeOf), ['MEMORY_LIMIT_EXCEEDED', 'ok'])
  assert.match(bad === 'ok' ? '' : bad.message, /ended twice while this query ran alone/)
  assert.equal(typeOf(await rig.run('bad', LIGHT)), 'TOO_MANY_SIMULTANEOUS_QUERIES')
})

test('a query whose process does not respond to the interrupt has exceeded its time, not the memory', async () => {
  using rig = startRig()
  const blocking = rig.run('bad', { ms: 0, bytes: 0, isStuck: true, blocksProcess: true })
  await rig.clock.advanceAsync(300_000)
  assert.equal(typeOf(await blocking), 'TIMEOUT_EXCEEDED')
})

test('a client that disconnects releases its permit and its place in the scheduler', async () => {
  using rig = startRig()
  const greedy = rig.run('bad', GREEDY)
  const beside = rig.run('good', { ms: 3000, bytes: 1 })
  await rig.clock.advanceAsync(2_000)
  const leaving = new AbortController()
  const waits = Array.from({ length: 4 }, () => rig.run('leaves', LIGHT, leaving.signal))
  leaving.abort()
  await rig.clock.advanceAsync(60_000)
  for (const one of [...waits]) assert.ok(['QUERY_WAS_CANCELLED', 'ok'].includes(typeOf(await one)))
  await Promise.all([greedy, beside])
  assert.equal(rig.executor.running, 0)
})

const RUNS = repeatsOf({ short: 4, full: 100 })
const MINUTES = 10

test(`${RUNS} times ${MINUTES} minutes with attacking customers: no other customer is refused`, async (t) => {
  const seed = seedOf(t)
  let kills = 0
  let slowestMs = 0
  let served = 0
  let refusals = 0
  for (let run = 0; run < RUNS; run++) {
    using rig = startRig()
    const random = createRandom(seed + run)
    const pause = (ms: number): Promise<void> => new Promise((resolve) => void rig.clock.setTimer(ms, resolve))
    const endMs = MINUTES * 60_000
    const isOver = (): boolean => rig.clock.monotonicMs() >= endMs

    async function victim(who: string): Promise<void> {
      while (!isOver()) {
        const startedMs = rig.clock.monotonicMs()
        const outcome = await rig.run(who, { ms: 5 + random(4000), bytes: random(40) })
        assert.equal(
          typeOf(outcome),
          'ok',
          `seed ${seed}, run ${run}, ${who}: ${outcome === 'ok' ? '' : outcome.message}`,
        )
        slowestMs = Math.max(slowestMs, rig.clock.monotonicMs() - startedMs)
        served++
        await pause(random(3000))
      }
    }

    async function attacker(who: string): Promise<void> {
      while (!isOver()) {
        const outcome = await rig.run(who, hostile(random))
        if (outcome !== 'ok' && outcome.retryAfterSeconds !== undefined) refusals++
        await pause(random(1000))
      }
    }

    const all = Promise.all([...['v1', 'v2', 'v3'].map(victim), ...['a1', 'a1', 'a1', 'a2'].map(attacker)])
    // Long enough for the last attempt.
    await rig.clock.advanceAsync(endMs + 20 * 60_000)
    await all
    kills += rig.database.kills
  }
  t.diagnostic(
    `${kills / RUNS} kills, ${served / RUNS} queries of others, ${refusals / RUNS} refusals a run; slowest ${slowestMs} ms`,
  )
  assert.ok(refusals > 0)
  assert.ok(kills / RUNS < 30, `${kills / RUNS} kills in ${MINUTES} minutes`)
})

/** Queries that use up memory at once, late, or only sometimes; that cannot be interrupted; that are cheap; that are heavy together. */
function hostile(random: (below: number) => number): () => QueryProfile {
  const kind = random(6)
  const afterMs = random(20_000)
  if (kind === 0) return () => LIGHT
  if (kind === 1) return () => ({ ms: 60_000, bytes: 2000, afterMs })
  if (kind === 2) return () => ({ ms: 25_000, bytes: random(2) * 2000, afterMs: random(20_000) })
  if (kind === 3) return () => ({ ms: 0, bytes: 0, isStuck: true })
  if (kind === 4) return () => ({ ms: 5_000, bytes: 350 })
  return () => ({ ms: 1000 + random(10_000), bytes: 0, ...(random(3) === 0 ? { crashMs: random(2000) } : {}) })
}
