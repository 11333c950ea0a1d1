/** SHA-256 without memory for each call: what is hashed and the digest are in memory of its own. */
export type Sha256 = {
  /** Room for SHA256_INPUT_BYTES. */
  readonly input: Uint8Array
  /** The digest after `run`: 32 bytes. */
  readonly output: Uint8Array
  /** Hashes the first `length` bytes of `input`. */
  run(length: number): void
}

/** SHA-256 of several inputs together, in the lanes of vector instructions: eight take the time of about two single ones. */
export type Sha256Lanes = {
  readonly lanes: number
  /** The input of lane n begins at n × SHA256_LANE_BYTES and has room for SHA256_INPUT_BYTES. */
  readonly inputs: Uint8Array
  /** The length of each input. */
  readonly lengths: Int32Array
  /** The digests after `run`: 32 bytes for each lane. */
  readonly outputs: Uint8Array
  /** Hashes the inputs of the first `used` lanes. */
  run(used: number): void
}

/** The longest input is a coding shred with a prefix. */
export const SHA256_INPUT_BYTES = 2048
const BLOCK_BYTES = 64
export const SHA256_DIGEST_BYTES = 32
/** An input and its padding. */
export const SHA256_LANE_BYTES: number = SHA256_INPUT_BYTES + 2 * BLOCK_BYTES

/** FIPS 180-4, 5.3.3. */
export const SHA256_INITIAL_STATE: readonly number[] = [
  0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19,
]

/** Writes the padding of FIPS 180-4 (5.1.1) behind the input and returns how many blocks there are. */
export function padSha256(bytes: Uint8Array, from: number, length: number): number {
  const blocks = (length + 9 + BLOCK_BYTES - 1) >> 6
  const end = from + blocks * BLOCK_BYTES
  bytes[from + length] = 0x80
  for (let at = from + length + 1; at < end - 3; at++) bytes[at] = 0
  // The length in bits, which is below 2^24.
  bytes[end - 3] = length >>> 13
  bytes[end - 2] = (length >>> 5) & 0xff
  bytes[end - 1] = (length << 3) & 0xff
  return blocks
}

/** Writes a word of the state as part of the digest, which is big endian. */
export function putSha256Word(word: number, digest: Uint8Array, at: number): void {
  digest[at] = word >>> 24
  digest[at + 1] = (word >>> 16) & 0xff
  digest[at + 2] = (word >>> 8) & 0xff
  digest[at + 3] = word & 0xff
}
