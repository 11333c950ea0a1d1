import { copyBytes } from '../../core/copy-bytes.ts'
import { addProduct, divide, multiply } from './galois-field.ts'
import { DATA_SHARDS } from './reed-solomon.ts'
import { createSimdShards, SHARD_STRIDE, type ShardMemory } from './shard-simd.ts'

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
 * FEC sets to recover. The weights are computed for each FEC set: a cache would not help, since patterns of loss hardly ever repeat.
 */
export class ShardRecovery {
  readonly #memory: ShardMemory
  readonly #scales = new Uint8Array(DATA_SHARDS)
  readonly #weights = new Uint8Array(DATA_SHARDS)

  constructor(memory: ShardMemory = createShardMemory()) {
    this.#memory = memory
  }

  /** Rebuilds the data shards at the first `count` of these positions. `shard` has them until the next call. */
  rebuild({ bytes, length, positions, at }: GivenShards, missing: Uint8Array, count: number): void {
    for (let i = 0; i < DATA_SHARDS; i++) {
      const from = at[i] as number
      copyBytes(bytes, from, from + length, this.#memory.bytes, i * SHARD_STRIDE)
      this.#scales[i] = productOfDistances(positions[i] as number, positions, i)
    }
    for (let target = 0; target < count; target++) {
      const point = missing[target] as number
      const product = productOfDistances(point, positions, -1)
      for (let i = 0; i < DATA_SHARDS; i++)
        this.#weights[i] = divide(product, multiply(point ^ (positions[i] as number), this.#scales[i] as number))
      this.#memory.combine(this.#weights, target)
    }
  }

  /** The n-th rebuilt shard, of this length. */
  shard(n: number, length: number): Uint8Array {
    const from = this.#memory.resultAt(n)
    return this.#memory.bytes.subarray(from, from + length)
  }
}

function createShardMemory(): ShardMemory {
  try {
    return createSimdShards()
  } catch {
    return createScalarShards()
  }
}

/** For processors without vector instructions. */
export function createScalarShards(): ShardMemory {
  const memory = new ArrayBuffer(2 * DATA_SHARDS * SHARD_STRIDE)
  const shards = Array.from(
    { length: 2 * DATA_SHARDS },
    (_, i) => new Int32Array(memory, i * SHARD_STRIDE, SHARD_STRIDE / 4),
  )
  return {
    bytes: new Uint8Array(memory),
    resultAt: (n) => (DATA_SHARDS + n) * SHARD_STRIDE,
    combine(weights, n) {
      const result = (shards[DATA_SHARDS + n] as Int32Array).fill(0)
      for (let i = 0; i < DATA_SHARDS; i++) addProduct(result, shards[i] as Int32Array, weights[i] as number)
    },
  }
}

/** The product of point - other over all positions but the one at `except`; the difference is XOR. */
function productOfDistances(point: number, positions: Uint8Array, except: number): number {
  let product = 1
  for (let i = 0; i < DATA_SHARDS; i++) if (i !== except) product = multiply(product, point ^ (positions[i] as number))
  return product
}
