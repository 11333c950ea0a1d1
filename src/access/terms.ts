import { BURST_SECONDS, type LimitName, type Limits } from '../contract/limits.ts'
import { COUNTED_METHODS, SEND_METHOD } from '../contract/rpc-methods.ts'
import { highestCost, methodCost } from './plan.ts'

/** 10^12 parts of a unit: the levels of thousands of units stay exact integers. */
const PARTS_DIGITS_MAX = 12
const MONTH_PART = 0.001

/** One token bucket of a subscription. */
export type BucketTerms = {
  /** The limit that a refusal names. */
  readonly limit: LimitName
  /** Identifies the bucket among those of the subscription, in memory and in the shared ledger. */
  readonly key: string
  readonly perSecond: number
  readonly capacity: number
  /** The most one call takes. */
  readonly largestDraw: number
  /** Units that one of several processes may spend before booking them in the shared ledger: see `shared-ledger.ts`. */
  readonly chunk: number
  /** Levels are integers in parts of a unit, so that rounding errors do not add up. */
  readonly partsPerUnit: number
  readonly partsPerMs: number
  readonly capacityParts: number
}

/** The cost of one call in units, and the amount it draws from each bucket. */
export type CallTerms = {
  /** The name under which usage counts the call: of a closed list, or `other`. */
  readonly method: string
  readonly cost: number
  readonly draws: readonly { readonly bucket: number; readonly amount: number }[]
}

/** Limits compiled for charging: one object per set of limits, however many subscriptions have it. */
export type Terms = {
  readonly limits: Limits
  readonly buckets: readonly BucketTerms[]
  /** Index of the units bucket in `buckets`; -1 when units are unlimited. */
  readonly unitsBucket: number
  readonly unitsPerMonth: number | null
  /** As a bucket's chunk, for the units of the month; Infinity where they are unlimited. */
  readonly monthChunk: number
  callOf(method: string): CallTerms
}

/** Counts the calls of all methods that have no name of their own. */
export const OTHER_METHOD = 'other'
/** The only method of the SQL endpoint. */
const INDEXER_METHOD = 'query'

export type TermsTable = { of(limits: Limits): Terms }

/** Compiles each set of limits once, cached as long as the limits are referenced. */
export function createTermsTable(): TermsTable {
  const known = new WeakMap<Limits, Terms>()
  return {
    of(limits) {
      const found = known.get(limits)
      if (found !== undefined) return found
      const terms = compileTerms(limits)
      known.set(limits, terms)
      return terms
    },
  }
}

/**
 * With 1000 parts per unit an integer rate adds a whole number of parts per millisecond. Fractional rates use parts so fine that a millisecond
 * adds at least 1,000 of them: rounded, the rate is then right to 0.05 %. Below one call in eleven days it is less exact.
 */
function partsPerUnitOf(perSecond: number): number {
  if (Number.isInteger(perSecond)) return 1000
  const digits = Math.ceil(6 - Math.log10(perSecond))
  return 10 ** Math.min(Math.max(digits, 6), PARTS_DIGITS_MAX)
}

/** Without a rate the month is the only limit, so a process may be ahead by a thousandth of it; nothing limits an unlimited month. */
function monthChunkOf({ unitsPerSecond, unitsPerMonth }: Limits, chunk: number): number {
  if (unitsPerMonth === null) return Number.POSITIVE_INFINITY
  return unitsPerSecond === null ? Math.max(chunk, unitsPerMonth * MONTH_PART) : chunk
}

export function compileTerms(limits: Limits): Terms {
  const buckets: BucketTerms[] = []
  const add = (
    limit: LimitName,
    key: string,
    perSecond: number | null | undefined,
    { largestDraw = 1, atOnce = 1 } = {},
  ): number => {
    if (perSecond === null || perSecond === undefined) return -1
    // Never smaller than the most expensive call, or that call would always be refused; a rate of zero allows no call.
    const capacity = perSecond === 0 ? 0 : Math.max(perSecond * BURST_SECONDS, largestDraw)
    const partsPerUnit = partsPerUnitOf(perSecond)
    return (
      buckets.push({
        limit,
        key,
        perSecond,
        capacity,
        largestDraw,
        chunk: Math.min(capacity, Math.max(perSecond, atOnce)),
        partsPerUnit,
        partsPerMs: Math.round((perSecond * partsPerUnit) / 1000),
        capacityParts: Math.floor(capacity * partsPerUnit),
      }) - 1
    )
  }
  const largestDraw = highestCost(limits)
  const atOnce = Math.max(largestDraw, limits.batchItems)
  const units = add('unitsPerSecond', 'units', limits.unitsPerSecond, { largestDraw, atOnce })
  const sends = add('sendsPerSecond', 'sends', limits.sendsPerSecond)
  const ownBuckets = new Map<string, number>()
  for (const [method, { perSecond }] of Object.entries(limits.methods)) {
    const bucket = add('methodPerSecond', `method:${method}`, perSecond)
    if (bucket !== -1) ownBuckets.set(method, bucket)
  }

  const callOf = (method: string): CallTerms => {
    const cost = methodCost(limits, method)
    const draws = []
    if (units !== -1 && cost > 0) draws.push({ bucket: units, amount: cost })
    if (sends !== -1 && method === SEND_METHOD) draws.push({ bucket: sends, amount: 1 })
    const own = ownBuckets.get(method)
    if (own !== undefined) draws.push({ bucket: own, amount: 1 })
    return { method, cost, draws }
  }
  // Unknown methods share one entry, so that invented names cannot grow the table.
  const unknown = { ...callOf(''), method: OTHER_METHOD }
  const calls = new Map<string, CallTerms>()
  for (const method of [...COUNTED_METHODS, INDEXER_METHOD, ...Object.keys(limits.methods)])
    calls.set(method, callOf(method))
  return {
    limits,
    buckets,
    unitsBucket: units,
    unitsPerMonth: limits.unitsPerMonth,
    monthChunk: monthChunkOf(limits, buckets[units]?.chunk ?? limits.batchItems * largestDraw),
    callOf: (method) => calls.get(method) ?? unknown,
  }
}
