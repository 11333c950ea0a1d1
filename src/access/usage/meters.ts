import { HOUR_MS, MINUTE_MS } from '../../core/human-units.ts'
import type { Calendar } from '../quota/calendar.ts'
import type { UsageCounts, UsageInterface } from '../store/model.ts'
import { OTHER_METHOD } from '../terms.ts'
import { USAGE_INTERFACES, type UsageCounter, type UsageMeter } from './counter.ts'
import { EVENT, INTERFACE_INDEX } from './event-memory.ts'
import type { UsageEventReaderDeps } from './event-reader.ts'
import type { UsageQueue } from './queue.ts'

/** Per interface: calls, units, refused, bytes. */
const FIELDS = 4
const BYTES_FIELD = 3

/** Counts of one caller since the last flush. Callers of one subscription may have one each; the store sums them. */
export type CountingMeter = UsageMeter & {
  readonly counts: number[]
  /** By interface, and then by method, which is a name of `terms.ts`. */
  readonly methods: (Map<string, MethodCounts> | undefined)[]
  hour: number
  minute: number
  isDirty: boolean
}

type MethodCounts = { -readonly [Name in keyof UsageCounts]: UsageCounts[Name] }

/** The counters of the main thread: what is counted here, and the events of other threads. */
export type UsageMeters = UsageCounter &
  UsageEventReaderDeps<CountingMeter> & {
    /** Moves all counts to the queue. */
    collect(): void
  }

/** Counts in memory, without a row for each call: the rows of an hour are made when they are collected. */
export function createUsageMeters(calendar: Calendar, queue: Pick<UsageQueue, 'add' | 'addUse'>): UsageMeters {
  let dirty: CountingMeter[] = []

  function createMeter(subscriptionId: string, tokenId: string): CountingMeter {
    return {
      subscriptionId,
      tokenId,
      counts: new Array<number>(USAGE_INTERFACES.length * FIELDS).fill(0),
      methods: new Array<undefined>(USAGE_INTERFACES.length).fill(undefined),
      hour: calendar.hour,
      minute: 0,
      isDirty: false,
    }
  }

  /** A call is a use of the token; bytes are not, since a stream may have been opened days ago. */
  function touch(meter: CountingMeter, hour: number): void {
    if (meter.minute !== calendar.minute) {
      meter.minute = calendar.minute
      queue.addUse(meter.tokenId, calendar.minute * MINUTE_MS)
    }
    enterHour(meter, hour)
  }

  function enterHour(meter: CountingMeter, hour: number): void {
    if (meter.hour !== hour) {
      if (meter.isDirty) collectMeter(meter)
      meter.hour = hour
    }
    if (!meter.isDirty) {
      meter.isDirty = true
      dirty.push(meter)
    }
  }

  const addEvent: UsageMeters['add'] = (meter, at, kind, hour, amount, method) => {
    if (kind === EVENT.bytes) return addBytes(meter, at, hour, amount)
    touch(meter, hour)
    if (kind === EVENT.admitted) add(meter, at, method, 1, amount, 0)
    else if (kind === EVENT.refused) add(meter, at, method, 0, 0, 1)
    else if (kind === EVENT.refunded) add(meter, at, method, -1, -amount, 0)
    else if (kind === EVENT.calls) add(meter, at, method, amount, 0, 0)
    else if (kind === EVENT.units) add(meter, at, method, 0, amount, 0)
    else add(meter, at, method, 0, 0, amount)
  }

  function addBytes(meter: CountingMeter, at: UsageInterface, hour: number, bytes: number): void {
    enterHour(meter, hour)
    const field = INTERFACE_INDEX[at] * FIELDS + BYTES_FIELD
    meter.counts[field] = (meter.counts[field] as number) + bytes
  }

  /** Moves a meter's counts to the queue. */
  function collectMeter(meter: CountingMeter): void {
    for (let at = 0; at < USAGE_INTERFACES.length; at++) {
      const [calls = 0, units = 0, refused = 0, bytes = 0] = meter.counts.slice(at * FIELDS, (at + 1) * FIELDS)
      // The sum may be zero where the methods are not: one call charged, another one refunded.
      const methods = Object.fromEntries([...(meter.methods[at] ?? [])].filter(([, counts]) => !isZero(counts)))
      if (isZero({ calls, units, refused }) && bytes === 0 && Object.keys(methods).length === 0) continue
      const { subscriptionId } = meter
      const hour = meter.hour * HOUR_MS
      const row = {
        subscriptionId,
        hour,
        interface: USAGE_INTERFACES[at] as UsageInterface,
        calls,
        units,
        refused,
        bytes,
        methods,
      }
      queue.add(row)
    }
    meter.counts.fill(0)
    meter.methods.fill(undefined)
  }

  return {
    createMeter,
    countAdmitted(meter: CountingMeter, at, units, method = OTHER_METHOD) {
      touch(meter, calendar.hour)
      add(meter, at, method, 1, units, 0)
    },
    countRefused(meter: CountingMeter, at, method = OTHER_METHOD) {
      touch(meter, calendar.hour)
      add(meter, at, method, 0, 0, 1)
    },
    countRefunded(meter: CountingMeter, at, units, method = OTHER_METHOD) {
      touch(meter, calendar.hour)
      add(meter, at, method, -1, -units, 0)
    },
    countBytes: (meter: CountingMeter, at, bytes) => addBytes(meter, at, calendar.hour, bytes),
    add: addEvent,
    collect() {
      const meters = dirty
      dirty = []
      for (const meter of meters) {
        meter.isDirty = false
        collectMeter(meter)
      }
    },
  }
}

function add(
  { counts, methods }: CountingMeter,
  at: UsageInterface,
  method: string,
  calls: number,
  units: number,
  refused: number,
): void {
  const index = INTERFACE_INDEX[at]
  const field = index * FIELDS
  counts[field] = (counts[field] as number) + calls
  counts[field + 1] = (counts[field + 1] as number) + units
  counts[field + 2] = (counts[field + 2] as number) + refused
  // A caller uses few methods, so their counts are created when they are first used.
  const byMethod = (methods[index] ??= new Map())
  let own = byMethod.get(method)
  if (own === undefined) {
    own = { calls: 0, units: 0, refused: 0 }
    byMethod.set(method, own)
  }
  own.calls += calls
  own.units += units
  own.refused += refused
}

function isZero({ calls, units, refused }: UsageCounts): boolean {
  return calls === 0 && units === 0 && refused === 0
}
