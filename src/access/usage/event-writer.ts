import assert from 'node:assert/strict'
import type { Clock } from '../../core/clock.ts'
import type { Calendar } from '../quota/calendar.ts'
import type { UsageInterface } from '../store/model.ts'
import { OTHER_METHOD } from '../terms.ts'
import { USAGE_INTERFACES, type UsageCounter, type UsageMeter } from './counter.ts'
import {
  EVENT,
  EVENT_BYTES,
  EVENTS,
  HEADER,
  INTERFACE_INDEX,
  METER_BYTES,
  METER_IDS_AT,
  METER_IDS_BYTES_MAX,
  METERS,
  METHODS_MAX,
  packKind,
  type UsageEvent,
  type UsageEventArrays,
  usageArrays,
} from './event-memory.ts'

/** How often sums that found no room are tried again, when no call does it. */
const SUMS_MS = 100
/** Events of one sum. */
const SUM_EVENTS = 4
/** How often bytes become events: a thread that is killed loses at most the bytes of this time. */
const BYTES_MS = 1000

type NumberedMeter = UsageMeter & {
  /** Valid while the writer knows the meter under it. */
  number: number
  /** Bytes by interface that are not written yet. Made when the first are counted. */
  bytes: number[] | undefined
  hasBytes: boolean
}

/** What was counted while there was no room for events. */
type Sum = {
  readonly meter: NumberedMeter
  readonly at: UsageInterface
  readonly hour: number
  readonly method: string
  calls: number
  units: number
  refused: number
  bytes: number
}

/**
 * Counts the calls of a thread as events for the main thread. While the main thread does not read, and there is no room left, calls are summed here
 * and the sums are written when there is room: nothing is lost as long as the thread lives.
 *
 * A call is charged before its event is written, and a refund is written before it is made, so at any moment
 *
 *     counted units ≤ charged units ≤ counted units + the call that the thread is working on
 *
 * also for a thread that is killed, unless it holds sums.
 *
 * Bytes are added up by caller and written every second, in the hour in which they were added. The hour changes within that second.
 */
export class UsageEventWriter implements UsageCounter, Disposable {
  readonly #arrays: UsageEventArrays
  readonly #calendar: Calendar
  readonly #clock: Clock
  readonly #timers: readonly Disposable[]
  /** Events written, and those of them that are known to be read. */
  #written: number
  #read: number
  /** The meter of each number, and the events written when it was last used. */
  readonly #meters: NumberedMeter[] = []
  readonly #lastUsed = new Float64Array(METERS)
  readonly #byToken = new Map<string, NumberedMeter>()
  #hand = -1
  readonly #methods = new Map<string, number>([[OTHER_METHOD, 0]])
  #methodsEnd = 0
  readonly #sums = new Map<string, Sum>()
  /** Meters with bytes that are not written yet, and their hour. */
  #withBytes: NumberedMeter[] = []
  #bytesHour: number

  constructor(memory: SharedArrayBuffer, { calendar, clock }: { calendar: Calendar; clock: Clock }) {
    this.#arrays = usageArrays(memory)
    this.#calendar = calendar
    this.#clock = clock
    this.#bytesHour = calendar.hour
    this.#written = this.#read = Atomics.load(this.#arrays.header, HEADER.written)
    const sums = clock.setRepeating(SUMS_MS, () => this.#writeSums())
    const bytes = clock.setRepeating(BYTES_MS, () => this.#onBytesTime())
    sums.unref?.()
    bytes.unref?.()
    this.#timers = [sums, bytes]
  }

  createMeter(subscriptionId: string, tokenId: string): NumberedMeter {
    const known = this.#byToken.get(tokenId)
    return known?.subscriptionId === subscriptionId
      ? known
      : { subscriptionId, tokenId, number: -1, bytes: undefined, hasBytes: false }
  }

  countAdmitted(meter: NumberedMeter, at: UsageInterface, units: number, method = OTHER_METHOD): void {
    if (this.#isReady()) this.#write(meter, at, EVENT.admitted, this.#calendar.hour, units, method)
    else this.#sum(meter, at, method, { calls: 1, units })
  }

  countRefused(meter: NumberedMeter, at: UsageInterface, method = OTHER_METHOD): void {
    if (this.#isReady()) this.#write(meter, at, EVENT.refused, this.#calendar.hour, 0, method)
    else this.#sum(meter, at, method, { refused: 1 })
  }

  countRefunded(meter: NumberedMeter, at: UsageInterface, units: number, method = OTHER_METHOD): void {
    if (this.#isReady()) this.#write(meter, at, EVENT.refunded, this.#calendar.hour, units, method)
    else this.#sum(meter, at, method, { calls: -1, units: -units })
  }

  countBytes(meter: NumberedMeter, at: UsageInterface, bytes: number): void {
    if (this.#calendar.hour !== this.#bytesHour) this.#writeBytes()
    const sums = (meter.bytes ??= USAGE_INTERFACES.map(() => 0))
    const index = INTERFACE_INDEX[at]
    sums[index] = (sums[index] as number) + bytes
    if (meter.hasBytes) return
    meter.hasBytes = true
    this.#withBytes.push(meter)
  }

  [Symbol.dispose](): void {
    for (const timer of this.#timers) timer[Symbol.dispose]()
    this.#writeBytes()
    this.#writeSums()
  }

  #onBytesTime(): void {
    this.#writeBytes()
    // Calls update the calendar too, but a thread may have streams only.
    this.#calendar.update(this.#clock.monotonicMs())
  }

  #writeBytes(): void {
    const hour = this.#bytesHour
    this.#bytesHour = this.#calendar.hour
    if (this.#withBytes.length === 0) return
    const meters = this.#withBytes
    this.#withBytes = []
    for (const meter of meters) {
      meter.hasBytes = false
      for (const [index, bytes] of (meter.bytes ?? []).entries()) {
        if (bytes === 0) continue
        const at = USAGE_INTERFACES[index] as UsageInterface
        if (this.#isReady()) this.#put(meter, at, EVENT.bytes, hour, bytes, OTHER_METHOD)
        else this.#sum(meter, at, OTHER_METHOD, { bytes }, hour)
      }
      meter.bytes?.fill(0)
    }
    this.#publish()
  }

  /** Whether an event can be written now. */
  #isReady(): boolean {
    if (this.#sums.size > 0) this.#writeSums()
    return this.#sums.size === 0 && this.#hasRoom(1)
  }

  #hasRoom(events: number): boolean {
    if (this.#written + events - this.#read <= EVENTS) return true
    const unread = ((this.#written | 0) - Atomics.load(this.#arrays.header, HEADER.read)) | 0
    this.#read = this.#written - unread
    return unread + events <= EVENTS
  }

  #write(
    meter: NumberedMeter,
    at: UsageInterface,
    kind: UsageEvent,
    hour: number,
    amount: number,
    method: string,
  ): void {
    this.#put(meter, at, kind, hour, amount, method)
    this.#publish()
  }

  /** Writes an event, which `#publish` makes visible. There is room for it. */
  #put(meter: NumberedMeter, at: UsageInterface, kind: UsageEvent, hour: number, amount: number, method: string): void {
    const { eventU32, eventU16, eventU8, eventF64 } = this.#arrays
    const number = this.#meters[meter.number] === meter ? meter.number : this.#addMeter(meter)
    const byte = (this.#written & (EVENTS - 1)) * EVENT_BYTES
    eventU32[byte >>> 2] = number
    eventU16[(byte >>> 1) + 2] = this.#methods.get(method) ?? this.#addMethod(method)
    eventU8[byte + 6] = INTERFACE_INDEX[at]
    eventU8[byte + 7] = packKind(kind, hour)
    eventF64[(byte >>> 3) + 1] = amount
    this.#written += 1
    this.#lastUsed[number] = this.#written
  }

  #publish(): void {
    Atomics.store(this.#arrays.header, HEADER.written, this.#written | 0)
  }

  /** Gives the meter the next number that no unread event refers to. */
  #addMeter(meter: NumberedMeter): number {
    do this.#hand = (this.#hand + 1) % METERS
    while ((this.#lastUsed[this.#hand] as number) > this.#read)
    const number = this.#hand
    const before = this.#meters[number]
    if (before !== undefined && this.#byToken.get(before.tokenId) === before) this.#byToken.delete(before.tokenId)
    meter.number = number
    this.#meters[number] = meter
    this.#byToken.set(meter.tokenId, meter)
    const { meterI32, meterBytes } = this.#arrays
    const { subscriptionId, tokenId } = meter
    assert(subscriptionId.length + tokenId.length <= METER_IDS_BYTES_MAX, 'the ids of a caller are too long')
    const first = number * METER_BYTES
    meterI32[first / 4] = (meterI32[first / 4] as number) + 1
    meterBytes[first + 4] = subscriptionId.length
    meterBytes[first + 5] = tokenId.length
    meterBytes.write(subscriptionId + tokenId, first + METER_IDS_AT, 'latin1')
    return number
  }

  #addMethod(method: string): number {
    const { methodEnds, methodBytes } = this.#arrays
    const number = this.#methods.size
    const end = this.#methodsEnd + Buffer.byteLength(method)
    if (number >= METHODS_MAX || end > methodBytes.length) return 0
    methodBytes.write(method, this.#methodsEnd)
    methodEnds[number] = end
    this.#methodsEnd = end
    this.#methods.set(method, number)
    return number
  }

  /** There are as many sums as callers, methods and hours: what a flush of the main thread would hold. */
  #sum(
    meter: NumberedMeter,
    at: UsageInterface,
    method: string,
    { calls = 0, units = 0, refused = 0, bytes = 0 }: Partial<Pick<Sum, 'calls' | 'units' | 'refused' | 'bytes'>>,
    hour = this.#calendar.hour,
  ): void {
    const key = `${meter.subscriptionId} ${meter.tokenId} ${at} ${hour} ${method}`
    let sum = this.#sums.get(key)
    if (sum === undefined) {
      sum = { meter, at, hour, method, calls: 0, units: 0, refused: 0, bytes: 0 }
      this.#sums.set(key, sum)
    }
    sum.calls += calls
    sum.units += units
    sum.refused += refused
    sum.bytes += bytes
  }

  /** The events of a sum become visible together. */
  #writeSums(): void {
    for (const [key, { meter, at, hour, method, calls, units, refused, bytes }] of this.#sums) {
      if (!this.#hasRoom(SUM_EVENTS)) return
      if (calls !== 0) this.#put(meter, at, EVENT.calls, hour, calls, method)
      if (units !== 0) this.#put(meter, at, EVENT.units, hour, units, method)
      if (refused !== 0) this.#put(meter, at, EVENT.refusals, hour, refused, method)
      if (bytes !== 0) this.#put(meter, at, EVENT.bytes, hour, bytes, method)
      this.#sums.delete(key)
      this.#publish()
    }
  }
}
