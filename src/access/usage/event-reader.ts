import type { UsageInterface } from '../store/model.ts'
import { OTHER_METHOD } from '../terms.ts'
import { USAGE_INTERFACES } from './counter.ts'
import {
  EVENT_BYTES,
  EVENTS,
  HEADER,
  hourOf,
  kindOf,
  METER_BYTES,
  METER_IDS_AT,
  METERS,
  type UsageEvent,
  type UsageEventArrays,
  usageArrays,
} from './event-memory.ts'

export type UsageEventReaderDeps<Meter> = {
  createMeter(subscriptionId: string, tokenId: string): Meter
  add(meter: Meter, at: UsageInterface, kind: UsageEvent, hour: number, amount: number, method: string): void
}

/** Reads the events of one thread in the main thread. */
export class UsageEventReader<Meter> {
  readonly #arrays: UsageEventArrays
  readonly #deps: UsageEventReaderDeps<Meter>
  #meters = new Map<number, Meter>()
  /** The hour in which they were used. */
  #hour = 0
  /** The version of a meter's cell when it was read. */
  readonly #versions = new Int32Array(METERS)
  #methods: string[] = [OTHER_METHOD]

  constructor(memory: SharedArrayBuffer, deps: UsageEventReaderDeps<Meter>) {
    this.#arrays = usageArrays(memory)
    this.#deps = deps
  }

  /** The meters that are kept. */
  get meters(): number {
    return this.#meters.size
  }

  /** Adds the events that are written so far: at most as many as the memory holds. */
  drain(hourNow: number): void {
    // A meter that is used again is made again, so that those of idle callers are not kept.
    if (hourNow !== this.#hour) this.#meters.clear()
    this.#hour = hourNow
    const { header, eventU32, eventU16, eventU8, eventF64 } = this.#arrays
    const written = Atomics.load(header, HEADER.written)
    let read = header[HEADER.read] as number
    if (read === written) return
    for (; read !== written; read = (read + 1) | 0) {
      const byte = (read & (EVENTS - 1)) * EVENT_BYTES
      const packed = eventU8[byte + 7] as number
      this.#deps.add(
        this.#meterOf(eventU32[byte >>> 2] as number),
        USAGE_INTERFACES[eventU8[byte + 6] as number] as UsageInterface,
        kindOf(packed),
        hourOf(packed, hourNow),
        eventF64[(byte >>> 3) + 1] as number,
        this.#methodOf(eventU16[(byte >>> 1) + 2] as number),
      )
    }
    Atomics.store(header, HEADER.read, read)
  }

  /** Makes the memory ready for the next instance of the thread. The last one has ended, and its events are read. */
  reset(): void {
    const { header } = this.#arrays
    Atomics.store(header, HEADER.written, 0)
    Atomics.store(header, HEADER.read, 0)
    this.#meters.clear()
    this.#methods = [OTHER_METHOD]
  }

  #meterOf(number: number): Meter {
    const { meterI32, meterBytes } = this.#arrays
    const first = number * METER_BYTES
    const version = meterI32[first / 4] as number
    const known = this.#meters.get(number)
    if (known !== undefined && this.#versions[number] === version) return known
    const idsAt = first + METER_IDS_AT
    const tokenAt = idsAt + (meterBytes[first + 4] as number)
    const meter = this.#deps.createMeter(
      meterBytes.toString('latin1', idsAt, tokenAt),
      meterBytes.toString('latin1', tokenAt, tokenAt + (meterBytes[first + 5] as number)),
    )
    this.#meters.set(number, meter)
    this.#versions[number] = version
    return meter
  }

  #methodOf(number: number): string {
    const { methodEnds, methodBytes } = this.#arrays
    for (let next = this.#methods.length; next <= number; next++)
      this.#methods.push(methodBytes.toString('utf8', methodEnds[next - 1], methodEnds[next]))
    return this.#methods[number] as string
  }
}
