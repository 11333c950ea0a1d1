import type { RawEventName } from '../../contract/stream-events.ts'
import type { Clock, Timer } from '../../core/clock.ts'

/** Which raw events are to be made. A later version replaces an earlier one. */
export type Wanted = { readonly names: readonly RawEventName[]; readonly version: number }

/**
 * Which raw events somebody listens to. Only those are made, since most services have no such client and a ring is mostly raw events.
 * A name lingers after its last listener, so that a client that was cut off can come back to everything it missed.
 */
export class WantedEvents implements Disposable {
  readonly #lingerMs: number
  readonly #clock: Clock
  readonly #onWanted: (wanted: Wanted) => void
  readonly #listeners = new Map<RawEventName, number>()
  readonly #lingering = new Map<RawEventName, Timer>()
  /** With which version a name was asked for without interruption since. */
  readonly #askedAt = new Map<RawEventName, number>()
  /** From which number on the entries of a name are complete. */
  readonly #since = new Map<RawEventName, number>()
  #version = 0

  constructor(options: { lingerMs: number }, deps: { clock: Clock; onWanted: (wanted: Wanted) => void }) {
    this.#lingerMs = options.lingerMs
    this.#clock = deps.clock
    this.#onWanted = deps.onWanted
  }

  enter(names: readonly RawEventName[]): void {
    let isNew = false
    for (const name of names) {
      const listeners = this.#listeners.get(name) ?? 0
      this.#listeners.set(name, listeners + 1)
      isNew ||= listeners === 0 && !this.#lingering.has(name)
      this.#lingering.get(name)?.cancel()
      this.#lingering.delete(name)
    }
    if (isNew) this.#report()
  }

  leave(names: readonly RawEventName[]): void {
    for (const name of names) {
      const listeners = (this.#listeners.get(name) as number) - 1
      this.#listeners.set(name, listeners)
      if (listeners > 0) continue
      this.#listeners.delete(name)
      const timer = this.#clock.setTimer(this.#lingerMs, () => {
        this.#lingering.delete(name)
        this.#report()
      })
      timer.unref?.()
      this.#lingering.set(name, timer)
    }
  }

  /** The source says what it makes from `seq` on. An answer to an older question says nothing about names asked for since. */
  recording({ names, version }: Wanted, seq: number): void {
    for (const name of names) {
      const askedAt = this.#askedAt.get(name)
      if (askedAt !== undefined && version >= askedAt && !this.#since.has(name)) this.#since.set(name, seq)
    }
  }

  /** Whether events of this name are told without a hole at present; others are still on their way from an earlier time. */
  isRecorded(name: RawEventName): boolean {
    return this.#since.has(name)
  }

  /** Whether every event of these names after the cursor was made. Just before the first one made, others may have passed by. */
  isComplete(names: readonly RawEventName[], afterSeq: number): boolean {
    return names.every((name) => (this.#since.get(name) ?? Number.POSITIVE_INFINITY) <= afterSeq)
  }

  [Symbol.dispose](): void {
    for (const timer of this.#lingering.values()) timer.cancel()
    this.#lingering.clear()
  }

  #report(): void {
    const names = [...new Set([...this.#listeners.keys(), ...this.#lingering.keys()])]
    this.#version += 1
    for (const name of [...this.#askedAt.keys()]) {
      if (names.includes(name)) continue
      this.#askedAt.delete(name)
      this.#since.delete(name)
    }
    for (const name of names) if (!this.#askedAt.has(name)) this.#askedAt.set(name, this.#version)
    this.#onWanted({ names, version: this.#version })
  }
}
