import { addProduct, divide, multiply } from './galois-field.ts'
import { DATA_SHARDS } from './reed-solomon.ts'
import { LAYOUTS } from './shred.ts'

const SHARD_BYTES_MAX = LAYOUTS.data.chainedRootAt - LAYOUTS.data.erasureFrom
const SHARD_WORDS = Math.ceil(SHARD_BYTES_MAX / 4)
const STRIDE_BYTES = SHARD_WORDS * 4

/** 32 shards of one FEC set, wherever they are in `bytes`. */
export type GivenShards = {
  readonly bytes: Uint8Array
  readonly length: number
  /** Positions among the 64 of the set: data first, then coding. */
  readonly positions: Uint8Array
  /** Where each shard begins. */
  readonly at: Int32Array
}

/**
 * Rebuilds missing data shards, and only those, in memory that is allocated once: `recoverShards` of reed-solomon.ts for a receiver that has many
 * FEC sets to recover.
 */
export class ShardRecovery {
  readonly #memory = new ArrayBuffer(2 * DATA_SHARDS * STRIDE_BYTES)
  readonly #bytes = new Uint8Array(this.#memory)
  readonly #given = Array.from({ length: DATA_SHARDS }, (_, i) => this.#words(i))
  readonly #rebuilt = Array.from({ length: DATA_SHARDS }, (_, i) => this.#words(DATA_SHARDS + i))
  readonly #scales = new Uint8Array(DATA_SHARDS)

  /** Rebuilds the data shards at the first `count` of these positions. `shard` has them until the next call. */
  rebuild({ bytes, length, positions, at }: GivenShards, missing: Uint8Array, count: number): void {
    for (let i = 0; i < DATA_SHARDS; i++) {
      const from = at[i] as number
      this.#bytes.set(bytes.subarray(from, from + length), i * STRIDE_BYTES)
      this.#scales[i] = productOfDistances(positions[i] as number, positions, i)
    }
    for (let target = 0; target < count; target++) {
      const point = missing[target] as number
      const words = this.#rebuilt[target] as Int32Array
      words.fill(0)
      const product = productOfDistances(point, positions, -1)
      for (let i = 0; i < DATA_SHARDS; i++) {
        const weight = divide(product, multiply(point ^ (positions[i] as number), this.#scales[i] as number))
        addProduct(words, this.#given[i] as Int32Array, weight)
      }
    }
  }

  /** The n-th rebuilt shard, with padding bytes behind it. */
  shard(n: number): Uint8Array {
    const from = (DATA_SHARDS + n) * STRIDE_BYTES
    return this.#bytes.subarray(from, from + STRIDE_BYTES)
  }

  #words(shard: number): Int32Array {
    return new Int32Array(this.#memory, shard * STRIDE_BYTES, SHARD_WORDS)
  }
}

/** The product of point - other over all positions but the one at `except`; the difference is XOR. */
function productOfDistances(point: number, positions: Uint8Array, except: number): number {
  let product = 1
  for (let i = 0; i < DATA_SHARDS; i++) if (i !== except) product = multiply(product, point ^ (positions[i] as number))
  return product
}
