import { hash } from 'node:crypto'
import { SHA256_INPUT_BYTES, type Sha256 } from '../../core/sha256.ts'

/** Node's own hash, which makes a buffer for each digest. */
export function createNodeSha256(): Sha256 {
  const input = new Uint8Array(SHA256_INPUT_BYTES)
  const output = new Uint8Array(32)
  return {
    input,
    output,
    run: (length) => output.set(hash('sha256', input.subarray(0, length), 'buffer')),
  }
}
