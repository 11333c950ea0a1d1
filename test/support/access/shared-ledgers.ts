import assert from 'node:assert/strict'
import { accessMetrics } from '../../../src/access/metrics.ts'
import { BUILT_IN_PLANS } from '../../../src/access/plan.ts'
import { Calendar, monthOf } from '../../../src/access/quota/calendar.ts'
import type { Charge } from '../../../src/access/quota/charge.ts'
import { BOOK_SCRIPT, LIVE_SCRIPT } from '../../../src/access/quota/redis-script.ts'
import { startSharedLedger } from '../../../src/access/quota/shared-ledger.ts'
import { createTermsTable } from '../../../src/access/terms.ts'
import type { Limits } from '../../../src/contract/limits.ts'
import { createManualClock, type ManualClock } from '../../../src/core/clock.ts'
import type { RedisLink, RedisOutcome } from '../../../src/platform/db/redis.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

export const START = Date.parse('2026-11-15T12:00:00Z')
export const own = (changes: Partial<Limits>): Limits => ({ ...BUILT_IN_PLANS.starter, ...changes })

/** The Redis scripts of the quota in memory, on the test's clock, behind a connection with delayed or missing responses. */
export function createFakeServer(clock: ManualClock, latencyMs: () => number) {
  type Bucket = { readonly level: number; readonly at: number }
  const books = new Map<string, { month: number; used: number; buckets: Map<string, Bucket> }>()
  const booked = new Map<string, { opening: number; records: Map<string, number> }>()
  const state = { isUp: true, processes: 1, runs: 0 }

  function book(key: string, spender: string, args: readonly string[]): (number | string)[] {
    const now = clock.nowMs()
    const month = monthOf(now)
    const [monthField = '', spentInMonth, bookedInMonth, usedKnown] = args
    const opening = Number(args[4])
    const latest = booked.get(spender)
    const isLate = latest !== undefined && latest.opening > opening
    const records = latest?.opening === opening ? latest.records : new Map<string, number>()
    if (!isLate) booked.set(spender, { opening, records })
    const unbooked = (field: string, spent: number, known: number): number => {
      if (isLate) return 0
      const before = records.get(field) ?? known
      records.set(field, spent)
      return spent - before
    }
    const held = books.get(key) ?? { month, used: Number(usedKnown), buckets: new Map<string, Bucket>() }
    if (month > held.month) held.used = 0
    held.month = Math.max(held.month, month)
    held.used = Math.max(0, held.used + unbooked(monthField, Number(spentInMonth), Number(bookedInMonth)))
    const response: (number | string)[] = [held.month, held.used]
    for (let at = 5; at < args.length; at += 5) {
      const field = args[at] as string
      const [rate, capacity, spent, known] = args.slice(at + 1, at + 5).map(Number) as [number, number, number, number]
      const before = held.buckets.get(field) ?? { level: capacity, at: now }
      const refilled = Math.min(capacity, before.level + ((now - before.at) * rate) / 1000)
      const level = Math.min(capacity, refilled - unbooked(field, spent, known))
      held.buckets.set(field, { level, at: now })
      response.push(level.toFixed(6))
    }
    books.set(key, held)
    return response
  }

  const later = (ms: number) => new Promise<void>((resolve) => void clock.setTimer(ms, resolve))
  const down: RedisOutcome = { ok: false, reason: 'down', message: 'gone' }
  const link: Pick<RedisLink, 'run' | 'tried'> = {
    tried: Promise.resolve(),
    async run(script, [key = '', spender = ''], args) {
      state.runs += 1
      if (!state.isUp) return down
      await later(latencyMs())
      if (!state.isUp) return down
      assert.ok(script === BOOK_SCRIPT || script === LIVE_SCRIPT)
      const reply = script === BOOK_SCRIPT ? book(key, spender, args) : [state.processes, 0, 60_000]
      await later(latencyMs())
      return state.isUp ? { ok: true, reply } : down
    },
  }
  return { link, state, books, booked }
}

/** Several processes that share one budget and one clock. */
export async function openSharedLedgers(
  limits: Limits,
  options: { processes?: number; latencyMs?: () => number; startMs?: number; spent?: number } = {},
) {
  const { processes = 2, latencyMs = () => 1 } = options
  const clock = createManualClock(options.startMs ?? START)
  const server = createFakeServer(clock, latencyMs)
  server.state.processes = processes
  const table = createTermsTable()
  const logged: string[] = []
  const states: boolean[] = []
  const log = {
    ...silentLogger,
    info: (_: object | string, m = '') => logged.push(m),
    warn: (_: object | string, m = '') => logged.push(m),
  }
  const state = { limits }
  const members = []
  for (let at = 0; at < processes; at++) {
    const starting = startSharedLedger(
      { keyPrefix: 'test', processId: `p${at}`, processesAssumed: 3 },
      {
        redis: server.link,
        calendar: new Calendar(clock),
        clock,
        log,
        metrics: accessMetrics(createMetricsRegistry()),
        spentBefore: new Map([['sub_a', options.spent ?? 0]]),
        onState: (isUp) => states.push(isUp),
      },
    )
    let isStarted = false
    void starting.then(() => (isStarted = true))
    for (let wait = 0; wait < 100 && !isStarted; wait++) await clock.advanceAsync(10)
    const ledger = await starting
    const terms = () => table.of(state.limits)
    const books = () => ledger.open('sub_a', terms(), clock.monotonicMs())
    members.push({
      ledger,
      charge: (method: string): Charge => books().charge(terms(), terms().callOf(method), clock.monotonicMs()),
      refund: (method: string): void => books().refund(terms(), terms().callOf(method), clock.monotonicMs()),
      view: () => books().view(terms(), clock.monotonicMs()),
      spend(method: string, max = 10_000): number {
        for (let count = 0; count < max; count++) if (!this.charge(method).ok) return count
        return max
      },
    })
  }
  const [a, b] = members
  assert.ok(a !== undefined && b !== undefined)
  return { clock, server, members, a, b, logged, states, state, terms: table.of(limits) }
}
