import { hash } from 'node:crypto'
import { SHA256_DIGEST_BYTES, SHA256_LANE_BYTES, type Sha256Lanes } from '../../../src/core/sha256.ts'

/** Lanes for tests on every processor: node:crypto, one input after the other. `runs` has the number of lanes that each run used. */
export function createTestLanes(lanes = 8): Sha256Lanes & { readonly runs: number[] } {
  const inputs = new Uint8Array(lanes * SHA256_LANE_BYTES)
  const outputs = new Uint8Array(lanes * SHA256_DIGEST_BYTES)
  const lengths = new Int32Array(lanes)
  const runs: number[] = []
  return {
    lanes,
    inputs,
    outputs,
    lengths,
    runs,
    run(used) {
      runs.push(used)
      for (let lane = 0; lane < used; lane++) {
        const from = lane * SHA256_LANE_BYTES
        const input = inputs.subarray(from, from + (lengths[lane] as number))
        outputs.set(hash('sha256', input, 'buffer'), lane * SHA256_DIGEST_BYTES)
      }
    },
  }
}
