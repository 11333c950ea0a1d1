import assert from 'node:assert/strict'
import fc from 'fast-check'
import { createCallAdmission } from '../../src/access/admission.ts'
import type { Caller } from '../../src/access/callers.ts'
import { accessMetrics } from '../../src/access/metrics.ts'
import { BUILT_IN_PLANS, createPlanTable, methodCost, type Plans } from '../../src/access/plan.ts'
import { Calendar, monthOf, monthStartMs } from '../../src/access/quota/calendar.ts'
import { createLedger } from '../../src/access/quota/ledger.ts'
import type { AddedUsage } from '../../src/access/store/model.ts'
import { startUsage } from '../../src/access/usage/service.ts'
import { type Clock, createManualClock } from '../../src/core/clock.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { createAccessFixture } from '../support/access/fixture.ts'
import type { SimWorld } from './run-seeds.ts'

/** Two small plans with a monthly quota that can be used up, so that every limit is reached often. */
const PLANS = {
  small: { ...BUILT_IN_PLANS.starter, unitsPerSecond: 3, sendsPerSecond: 1, unitsPerMonth: 400, batchItems: 20 },
  large: {
    ...BUILT_IN_PLANS.starter,
    unitsPerSecond: 8,
    sendsPerSecond: 2,
    unitsPerMonth: 900,
    methods: { getBlock: { perSecond: 1, cost: 4 } },
  },
} satisfies Plans
type PlanName = keyof typeof PLANS

const METHODS = ['getSlot', 'getAccountInfo', 'getBlock', 'getProgramAccounts', 'sendTransaction', 'neverHeardOf']
const SUBSCRIPTIONS = 3

const EVENTS = ['admitted', 'refused', 'refunded', 'rotations', 'clockJumps', 'restarts', 'kills'] as const
export type LedgerStats = Record<(typeof EVENTS)[number], number>

export const noLedgerStats = (): LedgerStats => ({
  admitted: 0,
  refused: 0,
  refunded: 0,
  rotations: 0,
  clockJumps: 0,
  restarts: 0,
  kills: 0,
})

type Step =
  | { do: 'call'; sub: number; methods: string[]; isOldToken: boolean; isRefunded: boolean }
  | { do: 'advance'; ms: number }
  | { do: 'jump'; ms: number; sub: number }
  | { do: 'rotate'; sub: number; grace: boolean }
  | { do: 'plan'; sub: number; plan: PlanName }
  | { do: 'sweep' | 'flush' | 'restart' | 'kill' }

const sub = fc.nat(SUBSCRIPTIONS - 1)
const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({
      do: fc.constant('call' as const),
      sub,
      methods: fc.array(fc.constantFrom(...METHODS), { minLength: 1, maxLength: 25 }),
      isOldToken: fc.boolean(),
      isRefunded: fc.oneof({ weight: 9, arbitrary: fc.constant(false) }, { weight: 1, arbitrary: fc.constant(true) }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant('advance' as const),
      ms: fc.oneof(fc.nat(500), fc.nat(20_000), fc.nat(20 * 86_400_000)),
    }),
  },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant('jump' as const),
      ms: fc.constantFrom(3_600_000, 86_400_000, -3_600_000, -86_400_000),
      sub,
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant('rotate' as const), sub, grace: fc.boolean() }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('plan' as const), sub, plan: fc.constantFrom<PlanName>('small', 'large') }),
  },
  {
    weight: 3,
    arbitrary: fc.record({
      do: fc.constantFrom('sweep' as const, 'flush' as const, 'restart' as const, 'kill' as const),
    }),
  },
)

/** A second implementation of the quota rules, in thousandths and without the ledger's optimizations. */
class ModelBooks {
  plan: PlanName = 'small'
  used = 0
  month: number
  levels = new Map<string, number>()
  atMs: number
  /** Since the last flush; lost on a kill. */
  unwritten = { calls: 0, units: 0, refused: 0 }
  written = { calls: 0, units: 0, refused: 0 }

  constructor(nowMs: number) {
    this.atMs = nowMs
    this.month = monthOf(nowMs)
  }

  sizes(): Map<string, { rate: number; size: number }> {
    const limits = PLANS[this.plan]
    const sizes = new Map([
      ['units', { rate: limits.unitsPerSecond, size: Math.max(limits.unitsPerSecond * 10, 30) * 1000 }],
      ['sends', { rate: limits.sendsPerSecond, size: limits.sendsPerSecond * 10_000 }],
    ])
    for (const [method, { perSecond }] of Object.entries(limits.methods))
      sizes.set(method, { rate: perSecond, size: perSecond * 10_000 })
    return sizes
  }

  refill(nowMs: number): void {
    for (const [name, { rate, size }] of this.sizes()) {
      this.levels.set(name, Math.min(size, (this.levels.get(name) ?? size) + (nowMs - this.atMs) * rate))
    }
    this.atMs = nowMs
    if (monthOf(nowMs) > this.month) this.used = 0
    this.month = monthOf(nowMs)
  }

  setPlan(plan: PlanName, nowMs: number): void {
    this.refill(nowMs)
    for (const [name, { size }] of this.sizes()) if (this.levels.get(name) === size) this.levels.delete(name)
    this.plan = plan
    const sizes = this.sizes()
    for (const name of [...this.levels.keys()]) if (!sizes.has(name)) this.levels.delete(name)
    this.refill(nowMs)
  }

  charge(method: string, nowMs: number): number | undefined {
    this.refill(nowMs)
    const limits = PLANS[this.plan]
    const cost = methodCost(limits, method)
    const draws = new Map([['units', cost * 1000]])
    if (method === 'sendTransaction') draws.set('sends', 1000)
    if (Object.hasOwn(limits.methods, method)) draws.set(method, 1000)
    const isShort = [...draws].some(([name, parts]) => parts > (this.levels.get(name) ?? 0))
    if (isShort || this.used + cost > limits.unitsPerMonth) {
      this.unwritten.refused += 1
      return undefined
    }
    for (const [name, parts] of draws) this.levels.set(name, (this.levels.get(name) ?? 0) - parts)
    this.used += cost
    this.unwritten.calls += 1
    this.unwritten.units += cost
    return cost
  }

  refund(method: string, cost: number): void {
    const sizes = this.sizes()
    const back = new Map([['units', cost * 1000]])
    if (method === 'sendTransaction') back.set('sends', 1000)
    if (sizes.has(method)) back.set(method, 1000)
    for (const [name, parts] of back)
      this.levels.set(name, Math.min(sizes.get(name)?.size ?? 0, (this.levels.get(name) ?? 0) + parts))
    this.used -= cost
    this.unwritten.calls -= 1
    this.unwritten.units -= cost
  }

  write(): void {
    for (const field of ['calls', 'units', 'refused'] as const) {
      this.written[field] += this.unwritten[field]
      this.unwritten[field] = 0
    }
  }
}

/** A process that can be restarted on the same store. */
function createProcess(clock: Clock, fixture: ReturnType<typeof createAccessFixture>, stored: Map<string, AddedUsage>) {
  const still: Clock = { ...clock, setRepeating: () => ({ cancel() {}, [Symbol.dispose]() {} }) }
  const plans = createPlanTable(PLANS)
  const begin = () => {
    const calendar = new Calendar(clock)
    const spentBefore = new Map<string, number>()
    for (const row of stored.values()) {
      if (row.hour < monthStartMs(calendar.month)) continue
      spentBefore.set(row.subscriptionId, (spentBefore.get(row.subscriptionId) ?? 0) + row.units)
    }
    const ledger = createLedger({ calendar, spentBefore })
    const store = {
      async addUsage(rows: readonly AddedUsage[]) {
        for (const row of rows) {
          const key = `${row.subscriptionId}/${row.hour}/${row.interface}`
          const before = stored.get(key) ?? { calls: 0, units: 0, refused: 0 }
          stored.set(key, {
            ...row,
            calls: before.calls + row.calls,
            units: before.units + row.units,
            refused: before.refused + row.refused,
          })
        }
      },
    }
    const usage = startUsage({ store, calendar, clock: still, log: silentLogger })
    const metrics = accessMetrics(createMetricsRegistry())
    return {
      calendar,
      ledger,
      usage,
      admission: createCallAdmission({ snapshot: fixture.snapshot, plans: () => plans, ledger, usage, clock, metrics }),
    }
  }
  let running = begin()
  return { now: () => running, again: () => void (running = begin()) }
}

/** Every admitted call is charged and no other: batches, clocks, rotations, plans, restarts. */
export function ledgerProperty(seen: LedgerStats) {
  return fc.asyncProperty(fc.array(step, { maxLength: 80, size: 'max' }), async (steps) => {
    const clock = createManualClock(Date.parse('2026-11-30T22:30:00Z'))
    const fixture = createAccessFixture()
    const stored = new Map<string, AddedUsage>()
    const subs = Array.from({ length: SUBSCRIPTIONS }, () => {
      const { subscription, secret, token } = fixture.subscribe({ plan: 'small' })
      return {
        id: subscription.id,
        secret,
        tokenId: token.id,
        oldSecret: secret,
        caller: undefined as Caller | undefined,
        books: new ModelBooks(clock.nowMs()),
      }
    })
    fixture.publish()
    const machine = createProcess(clock, fixture, stored)
    let trueNowMs = () => clock.nowMs()

    const call = (at: number, methods: readonly string[], isOldToken: boolean, isRefunded: boolean) => {
      const on = subs[at]
      assert.ok(on !== undefined)
      const { admission } = machine.now()
      const caller = admission.authenticate({ token: isOldToken ? on.oldSecret : on.secret }, 'bundle', clock.nowMs())
      if (!caller.ok) return assert.ok(isOldToken && on.oldSecret !== on.secret, caller.reason)
      for (const method of methods) {
        const expected = on.books.charge(method, trueNowMs())
        const outcome = admission.admit(caller, { interface: 'rpc', method })
        assert.equal(outcome.ok ? outcome.cost : undefined, expected, `${method} of ${on.id}`)
        seen[outcome.ok ? 'admitted' : 'refused'] += 1
        if (outcome.ok && isRefunded) {
          seen.refunded += 1
          admission.refund(caller, { interface: 'rpc', method })
          on.books.refund(method, outcome.cost)
        }
        if (!outcome.ok && outcome.reason === 'over-limit') assert.ok(outcome.retryAfterMs > 0)
      }
      assert.equal(admission.quota(caller).month.used, on.books.used)
    }

    for (const taken of steps) {
      if (taken.do === 'call') call(taken.sub, taken.methods, taken.isOldToken, taken.isRefunded)
      else if (taken.do === 'advance') clock.advance(taken.ms)
      else if (taken.do === 'jump') {
        seen.clockJumps += 1
        clock.setWallMs(clock.nowMs() + taken.ms)
        trueNowMs = () => clock.nowMs() - taken.ms
        call(taken.sub, ['getSlot', 'getProgramAccounts'], false, false)
        clock.advance(60_000)
        call(taken.sub, ['getSlot'], false, false)
        clock.setWallMs(clock.nowMs() - taken.ms)
        trueNowMs = () => clock.nowMs()
      } else if (taken.do === 'rotate') {
        seen.rotations += 1
        const on = subs[taken.sub]
        assert.ok(on !== undefined)
        fixture.changeToken(
          on.tokenId,
          taken.grace ? { state: 'retiring', notAfter: clock.nowMs() + 3_600_000 } : { state: 'revoked' },
        )
        const { secret, token } = fixture.issue(on.id)
        Object.assign(on, { oldSecret: on.secret, secret, tokenId: token.id })
        fixture.publish()
      } else if (taken.do === 'plan') {
        const on = subs[taken.sub]
        assert.ok(on !== undefined)
        fixture.changeSubscription(on.id, { plan: taken.plan })
        fixture.publish()
        // New limits apply from the next call.
        on.books.setPlan(taken.plan, trueNowMs())
        call(taken.sub, ['getSlot'], false, false)
      } else if (taken.do === 'sweep') machine.now().ledger.sweep(clock.monotonicMs())
      else if (taken.do === 'flush') await flush()
      else {
        seen[taken.do === 'restart' ? 'restarts' : 'kills'] += 1
        if (taken.do === 'restart') await flush()
        for (const { id, books } of subs) {
          books.unwritten = { calls: 0, units: 0, refused: 0 }
          books.levels.clear()
          const rows = [...stored.values()].filter(
            (row) => row.subscriptionId === id && row.hour >= monthStartMs(monthOf(clock.nowMs())),
          )
          books.used = rows.reduce((sum, row) => sum + row.units, 0)
        }
        machine.again()
      }
    }
    await flush()
    for (const { id, books } of subs) {
      const rows = [...stored.values()].filter((row) => row.subscriptionId === id)
      const sum = (field: 'calls' | 'units' | 'refused') => rows.reduce((total, row) => total + row[field], 0)
      assert.deepEqual({ calls: sum('calls'), units: sum('units'), refused: sum('refused') }, books.written, id)
      const months = Map.groupBy(rows, (row) => monthOf(row.hour))
      for (const inMonth of months.values()) {
        assert.ok(inMonth.reduce((total, row) => total + row.units, 0) <= 900, `${id} above its monthly quota`)
      }
    }

    async function flush(): Promise<void> {
      await machine.now().usage.flush()
      for (const { books } of subs) books.write()
    }
  })
}

/** fast-check starts with small histories; the fourth has its full length. */
const HISTORIES_PER_SEED = 4

export const ledgerWorld: SimWorld<(typeof EVENTS)[number]> = {
  name: 'ledger',
  events: EVENTS,
  async run(seed) {
    const seen = noLedgerStats()
    await fc.assert(ledgerProperty(seen), { seed, numRuns: HISTORIES_PER_SEED })
    return seen
  },
}
