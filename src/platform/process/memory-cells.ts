/**
 * Memory use and pressure of a process, in memory that its threads share. Each thread has a heap of its own: it writes what it uses and collects
 * it; main adds up, decides, and writes what is refused.
 *
 *     Int32     pressure, whether memory is full, the thread that collects now (its number + 1), collections so far
 *     Float64   live bytes of each thread
 */
const MEMORY_PRESSURES = ['none', 'no-new-streams', 'no-new-sockets'] as const
export type MemoryPressure = (typeof MEMORY_PRESSURES)[number]

const INT = { pressure: 0, isFull: 1, collecting: 2, collections: 3 }
const INTS = 4

/** Creates the memory for threads 0 to `threads` − 1, of which 0 is main. It is posted to them as it is. */
export function createMemoryCells({ threads }: { readonly threads: number }): SharedArrayBuffer {
  return new SharedArrayBuffer(INTS * 4 + 8 * threads)
}

export class MemoryCells {
  readonly #ints: Int32Array
  readonly #live: Float64Array
  readonly #thread: number

  constructor(memory: SharedArrayBuffer, thread: number) {
    this.#ints = new Int32Array(memory, 0, INTS)
    this.#live = new Float64Array(memory, INTS * 4)
    this.#thread = thread
  }

  /** Over all threads, as each last reported. */
  get liveBytes(): number {
    return this.#live.reduce((sum, bytes) => sum + bytes, 0)
  }

  /** Reports the live bytes of this thread. */
  report(liveBytes: number): void {
    this.#live[this.#thread] = liveBytes
  }

  get pressure(): MemoryPressure {
    return MEMORY_PRESSURES[Atomics.load(this.#ints, INT.pressure)] ?? 'none'
  }

  /** Whether every thread is to collect, even if it is busy. */
  get isFull(): boolean {
    return Atomics.load(this.#ints, INT.isFull) === 1
  }

  publish(pressure: MemoryPressure, isFull: boolean): void {
    Atomics.store(this.#ints, INT.pressure, MEMORY_PRESSURES.indexOf(pressure))
    Atomics.store(this.#ints, INT.isFull, isFull ? 1 : 0)
  }

  /** Collections of all threads. */
  get collections(): number {
    return Atomics.load(this.#ints, INT.collections)
  }

  /** Runs a collection of this thread, or returns false where another thread is in one: they would stop all threads at a time. */
  collect(run: () => void): boolean {
    const owner = this.#thread + 1
    if (Atomics.compareExchange(this.#ints, INT.collecting, 0, owner) !== 0) return false
    try {
      run()
    } finally {
      Atomics.add(this.#ints, INT.collections, 1)
      Atomics.compareExchange(this.#ints, INT.collecting, owner, 0)
    }
    return true
  }

  /** The thread has died, and its heap with it. */
  reclaim(thread: number): void {
    this.#live[thread] = 0
    Atomics.compareExchange(this.#ints, INT.collecting, thread + 1, 0)
  }
}
