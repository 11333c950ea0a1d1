import type { RawEventName } from '../../contract/stream-events.ts'
import type { Clock, Timer } from '../../core/clock.ts'

/** The raw events that a source must produce. A later version replaces an earlier one. */
export type RawEventSelection = { readonly names: readonly RawEventName[]; readonly version: number }

/**
 * The raw events that clients subscribe to. Only those are produced, because most services have no such client and a ring is mostly raw
 * events. A name stays selected for a while after its last subscriber has left, so that a disconnected client can resume without a gap.
 */
export class RawEventDemand implements Disposable {
  readonly #lingerMs: number
  readonly #clock: Clock
  readonly #onRawEventSelection: (selection: RawEventSelection) => void
  readonly #subscribers = new Map<RawEventName, number>()
  readonly #lingering = new Map<RawEventName, Timer>()
  /** For each name, the version since which it is selected without interruption. */
  readonly #selectedSince = new Map<RawEventName, number>()
  /** For each name, the sequence number from which on its events are complete. */
  readonly #completeSince = new Map<RawEventName, number>()
  #version = 0

  constructor(
    options: { lingerMs: number },
    deps: { clock: Clock; onRawEventSelection: (selection: RawEventSelection) => void },
  ) {
    this.#lingerMs = options.lingerMs
    this.#clock = deps.clock
    this.#onRawEventSelection = deps.onRawEventSelection
  }

  enter(names: readonly RawEventName[]): void {
    let isNew = false
    for (const name of names) {
      const subscribers = this.#subscribers.get(name) ?? 0
      this.#subscribers.set(name, subscribers + 1)
      isNew ||= subscribers === 0 && !this.#lingering.has(name)
      this.#lingering.get(name)?.cancel()
      this.#lingering.delete(name)
    }
    if (isNew) this.#notify()
  }

  leave(names: readonly RawEventName[]): void {
    for (const name of names) {
      const subscribers = (this.#subscribers.get(name) as number) - 1
      this.#subscribers.set(name, subscribers)
      if (subscribers > 0) continue
      this.#subscribers.delete(name)
      const timer = this.#clock.setTimer(this.#lingerMs, () => {
        this.#lingering.delete(name)
        this.#notify()
      })
      timer.unref?.()
      this.#lingering.set(name, timer)
    }
  }

  /** The source produces these names from `seq` on. The confirmation of an older version does not cover names selected since. */
  onActive({ names, version }: RawEventSelection, seq: number): void {
    for (const name of names) {
      const selectedSince = this.#selectedSince.get(name)
      if (selectedSince !== undefined && version >= selectedSince && !this.#completeSince.has(name))
        this.#completeSince.set(name, seq)
    }
  }

  /** Whether events of this name are currently complete; others may still arrive from an earlier subscription. */
  isActive(name: RawEventName): boolean {
    return this.#completeSince.has(name)
  }

  /**
   * Whether every event of these names after the cursor was produced. Not after the number just before the first complete one: events between the two
   * were not produced if they came before the confirmation.
   */
  isComplete(names: readonly RawEventName[], afterSeq: number): boolean {
    return names.every((name) => (this.#completeSince.get(name) ?? Number.POSITIVE_INFINITY) <= afterSeq)
  }

  [Symbol.dispose](): void {
    for (const timer of this.#lingering.values()) timer.cancel()
    this.#lingering.clear()
  }

  #notify(): void {
    const names = [...new Set([...this.#subscribers.keys(), ...this.#lingering.keys()])]
    this.#version += 1
    for (const name of [...this.#selectedSince.keys()]) {
      if (names.includes(name)) continue
      this.#selectedSince.delete(name)
      this.#completeSince.delete(name)
    }
    for (const name of names) if (!this.#selectedSince.has(name)) this.#selectedSince.set(name, this.#version)
    this.#onRawEventSelection({ names, version: this.#version })
  }
}
