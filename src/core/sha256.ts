/** SHA-256 without memory for each call: what is hashed and the digest are in memory of its own. */
export type Sha256 = {
  /** Room for SHA256_INPUT_BYTES. */
  readonly input: Uint8Array
  /** The digest after `run`: 32 bytes. */
  readonly output: Uint8Array
  /** Hashes the first `length` bytes of `input`. */
  run(length: number): void
}

/** The longest input is a coding shred with a prefix. */
export const SHA256_INPUT_BYTES = 2048
