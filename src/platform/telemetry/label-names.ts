/** Longer names, in bytes of UTF-8, get no index. The longest name of a node has 63. */
const NAME_BYTES_MAX = 64
const VERSION = 0
const HEADER_INTS = 2
/** Per index: the bytes of the name, 0 while the index is free, and its generation. */
const ENTRY_INTS = 2
/** A reader that meets this many changes in a row uses what it has read before. */
const ATTEMPTS_MAX = 8

/** The names of a changing label, to be sent to another thread. */
export type SharedNames = { readonly max: number; readonly memory: SharedArrayBuffer }

export function createSharedNames(max: number): SharedNames {
  return { max, memory: new SharedArrayBuffer((HEADER_INTS + max * ENTRY_INTS) * 4 + max * NAME_BYTES_MAX) }
}

/**
 * The names of a changing label in memory that threads share. One thread changes them, any number read them. The version is odd during a change: what
 * was read between two equal, even versions belongs together. An index gets a new generation with each name, so that values that were counted
 * for an earlier name are recognised.
 */
export class LabelNames {
  readonly max: number
  readonly #ints: Int32Array
  readonly #bytes: Buffer

  constructor({ max, memory }: SharedNames) {
    this.max = max
    const namesAt = (HEADER_INTS + max * ENTRY_INTS) * 4
    this.#ints = new Int32Array(memory, 0, HEADER_INTS + max * ENTRY_INTS)
    this.#bytes = Buffer.from(memory, namesAt, max * NAME_BYTES_MAX)
  }

  static fits(name: string): boolean {
    return name !== '' && Buffer.byteLength(name) <= NAME_BYTES_MAX
  }

  nameAt(index: number): string | undefined {
    const bytes = this.#ints[HEADER_INTS + index * ENTRY_INTS] as number
    if (bytes === 0) return undefined
    return this.#bytes.toString('utf8', index * NAME_BYTES_MAX, index * NAME_BYTES_MAX + bytes)
  }

  isAssigned(index: number): boolean {
    return this.#ints[HEADER_INTS + index * ENTRY_INTS] !== 0
  }

  generationOf(index: number): number {
    return this.#ints[HEADER_INTS + index * ENTRY_INTS + 1] as number
  }

  /** Gives the index to another name, or frees it. Within `change`. The length is written last: a thread that dies here leaves a free index. */
  assign(index: number, name: string | undefined): void {
    const at = HEADER_INTS + index * ENTRY_INTS
    this.#ints[at] = 0
    if (name === undefined) return
    this.#ints[at + 1] = (this.generationOf(index) + 1) | 0
    this.#ints[at] = this.#bytes.write(name, index * NAME_BYTES_MAX, NAME_BYTES_MAX, 'utf8')
  }

  change(change: () => void): void {
    Atomics.add(this.#ints, VERSION, 1)
    change()
    Atomics.add(this.#ints, VERSION, 1)
  }

  /** For the next instance of a thread that died during a change. */
  endChange(): void {
    if (Atomics.load(this.#ints, VERSION) % 2 !== 0) Atomics.add(this.#ints, VERSION, 1)
  }

  /** What `read` returns if nothing was changed meanwhile. Undefined during a change, which does not end if its thread died. */
  readStable<Value>(read: () => Value): Value | undefined {
    for (let attempt = 0; attempt < ATTEMPTS_MAX; attempt++) {
      const version = Atomics.load(this.#ints, VERSION)
      if (version % 2 !== 0) continue
      const value = read()
      // Adds zero instead of loading: earlier reads could be delayed past a load, but not past a write that the next change has to read.
      if (Atomics.add(this.#ints, VERSION, 0) === version) return value
    }
    return undefined
  }
}
