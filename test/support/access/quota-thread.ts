import { parentPort, workerData } from 'node:worker_threads'
import { BUILT_IN_PLANS } from '../../../src/access/plan.ts'
import { Calendar } from '../../../src/access/quota/calendar.ts'
import { createLedger } from '../../../src/access/quota/ledger.ts'
import { QuotaMemory } from '../../../src/access/quota/memory.ts'
import { createPermits, type Permit } from '../../../src/access/quota/permits.ts'
import { createTermsTable } from '../../../src/access/terms.ts'
import type { Limits } from '../../../src/contract/limits.ts'
import { createManualClock } from '../../../src/core/clock.ts'
import { createRandom } from '../process/property.ts'

/** What a thread of `quota-threads.ts` does in one round, with the clock standing still. */
export type Round = {
  readonly seed: number
  readonly atMs: number
  readonly steps: number
  readonly subscriptions: readonly string[]
  /** The limits this thread knows, and their version. */
  readonly limits: Limits
  readonly limitsVersion: number
  /** Repeats the round until the thread is ended. */
  readonly endless: boolean
}

/** What the thread did, by subscription. `refusedCost` is the cheapest refused call. */
export type RoundReport = Record<string, { units: number; refusedCost: number; permits: number }>

export type QuotaThreadData = {
  readonly memory: SharedArrayBuffer
  readonly thread: number
  readonly startMs: number
  /** Units admitted so far, for a thread that ends without a report. */
  readonly admitted: SharedArrayBuffer
}

const METHODS = ['getSlot', 'getAccountInfo', 'getTransaction', 'getProgramAccounts', 'sendTransaction']

if (parentPort !== null) {
  const port = parentPort
  const { memory, thread, startMs, admitted } = workerData as QuotaThreadData
  const accounts = new QuotaMemory(memory, thread)
  const clock = createManualClock(startMs)
  const table = createTermsTable()
  const known = { limitsVersion: 0 }
  const ledger = createLedger({
    memory: accounts,
    calendar: new Calendar(clock),
    limitsVersion: () => known.limitsVersion,
  })
  const permits = createPermits(accounts)
  const held: Permit[] = []
  const total = new BigInt64Array(admitted)
  const limitsOf = new Map<number, Limits>()

  const run = (round: Round): RoundReport => {
    const random = createRandom(round.seed)
    const limits = limitsOf.get(round.limitsVersion) ?? { ...BUILT_IN_PLANS.starter, ...round.limits }
    limitsOf.set(round.limitsVersion, limits)
    known.limitsVersion = round.limitsVersion
    const terms = table.of(limits)
    const report: RoundReport = {}
    for (let step = 0; step < round.steps; step++) {
      const id = round.subscriptions[random(round.subscriptions.length)] as string
      report[id] ??= { units: 0, refusedCost: Number.POSITIVE_INFINITY, permits: 0 }
      const own = report[id]
      const call = terms.callOf(METHODS[random(METHODS.length)] as string)
      const account = ledger.open(id, terms, round.atMs)
      const outcome = account.charge(terms, call, round.atMs)
      if (outcome.ok) {
        Atomics.add(total, thread, BigInt(outcome.cost))
        own.units += outcome.cost
        if (random(8) === 0) {
          Atomics.sub(total, thread, BigInt(outcome.cost))
          account.refund(terms, call, round.atMs)
          own.units -= outcome.cost
        }
      } else own.refusedCost = Math.min(own.refusedCost, outcome.cost)
      if (random(4) > 0) continue
      const permit = permits.acquire(id, 'wsConnections', limits)
      if (permit.ok) held.push(permit)
      if (held.length > 0 && random(2) === 0) held.splice(random(held.length), 1)[0]?.release()
    }
    for (const id of round.subscriptions) {
      report[id] ??= { units: 0, refusedCost: Number.POSITIVE_INFINITY, permits: 0 }
      report[id].permits = permits.taken(id).wsConnections
    }
    return report
  }

  port.on('message', (round: Round) => {
    clock.advance(round.atMs - clock.monotonicMs())
    if (round.endless) for (let at = 0; ; at++) run({ ...round, seed: round.seed + at })
    port.postMessage(run(round))
  })
}
