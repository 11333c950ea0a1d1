import { ACCOUNT_KEY_WORDS, KeyHasher, STORAGE_KEY_WORDS } from './access-key.ts'

/** Accesses gathered before they are looked up. */
const RUN_MAX = 512

/** Mark of an access that the open block takes no notice of. */
export const NOT_IN_BLOCK = -(2 ** 31)

/**
 * Accesses in the order in which they came: keys, hashes and a mark for each. They are gathered and then looked up together, because
 * the tables are larger than the processor's nearest caches: their memory is fetched ahead for a whole run (`KeyTable.fetchAhead`).
 */
export class AccessRun {
  count = 0
  readonly keys: Uint32Array
  readonly hashes = new Int32Array(RUN_MAX)
  /** The transaction doubled (-2 for the block itself), plus one if the slot was modified; or NOT_IN_BLOCK. */
  readonly marks = new Int32Array(RUN_MAX)
  readonly #hasher: KeyHasher

  constructor(words: typeof ACCOUNT_KEY_WORDS | typeof STORAGE_KEY_WORDS, seed: number) {
    this.keys = new Uint32Array(RUN_MAX * words)
    this.#hasher = new KeyHasher(words, seed)
  }

  get isFull(): boolean {
    return this.count === RUN_MAX
  }

  addAccount(words: Uint32Array, payloadAt: number): void {
    const at = this.count++
    this.hashes[at] = this.#hasher.takeAccount(words, payloadAt, this.keys, at * ACCOUNT_KEY_WORDS)
  }

  addStorage(words: Uint32Array, payloadAt: number, mark: number): void {
    const at = this.count++
    this.hashes[at] = this.#hasher.takeStorage(words, payloadAt, this.keys, at * STORAGE_KEY_WORDS)
    this.marks[at] = mark
  }
}
