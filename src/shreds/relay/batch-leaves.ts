import { copyBytes } from '../../core/copy-bytes.ts'
import { SHA256_DIGEST_BYTES, SHA256_LANE_BYTES, type Sha256, type Sha256Lanes } from '../../core/sha256.ts'
import { BATCH_PACKETS, CELL_BYTES } from '../../platform/udp/port.ts'
import { createLeafHasher, type LeafHasher, writeLeafInput } from '../../solana/shred/fec-set-proofs.ts'
import type { ShredHead, ShredLayout } from '../../solana/shred/shred.ts'

/** All lanes together take the time of two single hashes, however many of them are used. */
const TOGETHER_MIN = 3

/** The leaves of a batch: most of what a check of signed packets costs, computed for several packets together where the processor can. */
export class BatchLeaves implements LeafHasher {
  readonly #sha256: Sha256
  readonly #lanes: Sha256Lanes | undefined
  readonly #single: LeafHasher
  /** By cell of the arena, for the packets of the last `prepare`. */
  readonly #isReady = new Uint8Array(BATCH_PACKETS)
  readonly #digests = new Uint8Array(BATCH_PACKETS * SHA256_DIGEST_BYTES)

  constructor({ sha256, lanes }: { readonly sha256: Sha256; readonly lanes?: Sha256Lanes | undefined }) {
    this.#sha256 = sha256
    this.#lanes = lanes
    this.#single = createLeafHasher(sha256)
  }

  get hasLanes(): boolean {
    return this.#lanes !== undefined
  }

  /** Computes the leaves of these cells, whose headers are in `heads`, and forgets all others. */
  prepare(arena: Uint8Array, cells: Uint16Array, count: number, heads: readonly ShredHead[]): void {
    this.#isReady.fill(0)
    const lanes = this.#lanes
    if (lanes === undefined) return
    for (let from = 0; count - from >= TOGETHER_MIN; from += lanes.lanes) {
      const used = Math.min(lanes.lanes, count - from)
      for (let lane = 0; lane < used; lane++) {
        const cell = cells[from + lane] as number
        const { layout } = heads[cell] as ShredHead
        lanes.lengths[lane] = writeLeafInput(arena, cell * CELL_BYTES, layout, lanes.inputs, lane * SHA256_LANE_BYTES)
      }
      lanes.run(used)
      for (let lane = 0; lane < used; lane++) {
        const cell = cells[from + lane] as number
        const digestAt = lane * SHA256_DIGEST_BYTES
        copyBytes(lanes.outputs, digestAt, digestAt + SHA256_DIGEST_BYTES, this.#digests, cell * SHA256_DIGEST_BYTES)
        this.#isReady[cell] = 1
      }
    }
  }

  hash(bytes: Uint8Array, at: number, layout: ShredLayout): void {
    const cell = at / CELL_BYTES
    // A packet outside of the arena's first cells has no mark.
    if (this.#isReady[cell] !== 1) return this.#single.hash(bytes, at, layout)
    const digestAt = cell * SHA256_DIGEST_BYTES
    copyBytes(this.#digests, digestAt, digestAt + SHA256_DIGEST_BYTES, this.#sha256.output, 0)
  }
}
