/**
 * Keccak-256 as Ethereum uses it: with the original padding 0x01, not the 0x06 of SHA3-256 in node:crypto.
 * Source: the Keccak reference, version 3.0 (2011). A 64-bit lane is two 32-bit words, low half first.
 */

const RATE_BYTES = 136
const LANES = 25
const ROUNDS = 24

export function keccak256(message: Uint8Array): Uint8Array {
  const state = new Uint32Array(LANES * 2)
  const bytes = new Uint8Array(state.buffer)
  const padded = new Uint8Array((Math.floor(message.length / RATE_BYTES) + 1) * RATE_BYTES)
  padded.set(message)
  padded[message.length] = 0x01
  padded[padded.length - 1] = (padded[padded.length - 1] as number) | 0x80
  for (let block = 0; block < padded.length; block += RATE_BYTES) {
    for (let at = 0; at < RATE_BYTES; at++) bytes[at] = (bytes[at] as number) ^ (padded[block + at] as number)
    permute(state)
  }
  return bytes.slice(0, 32)
}

/** Unrolled over 32-bit words for speed: a bloom takes several hashes for each log. */
function permute(state: Uint32Array): void {
  const mix = new Uint32Array(10)
  const moved = new Uint32Array(LANES * 2)
  for (let round = 0; round < ROUNDS; round++) {
    mixColumns(state, mix)
    moveLanes(state, moved)
    for (let row = 0; row < LANES * 2; row += 10) mixRow(state, moved, row)
    state[0] = (state[0] as number) ^ (ROUND_CONSTANTS[round * 2] as number)
    state[1] = (state[1] as number) ^ (ROUND_CONSTANTS[round * 2 + 1] as number)
  }
}

/** Step theta: XORs each lane with the parity of two neighbouring columns. */
function mixColumns(s: Uint32Array, parity: Uint32Array): void {
  for (let at = 0; at < 10; at++)
    parity[at] =
      (s[at] as number) ^
      (s[at + 10] as number) ^
      (s[at + 20] as number) ^
      (s[at + 30] as number) ^
      (s[at + 40] as number)
  for (let column = 0; column < 10; column += 2) {
    const left = column === 0 ? 8 : column - 2
    const right = column === 8 ? 0 : column + 2
    const low = parity[right] as number
    const high = parity[right + 1] as number
    const mixLow = (parity[left] as number) ^ ((low << 1) | (high >>> 31))
    const mixHigh = (parity[left + 1] as number) ^ ((high << 1) | (low >>> 31))
    for (let at = column; at < LANES * 2; at += 10) {
      s[at] = (s[at] as number) ^ mixLow
      s[at + 1] = (s[at + 1] as number) ^ mixHigh
    }
  }
}

/** Steps rho and pi: rotates each lane and moves it to its target; lane 0 stays. */
function moveLanes(state: Uint32Array, moved: Uint32Array): void {
  moved[0] = state[0] as number
  moved[1] = state[1] as number
  for (let lane = 1; lane < LANES; lane++) {
    const distance = ROTATIONS[lane] as number
    const target = (TARGETS[lane] as number) * 2
    const by = distance & 31
    // A rotation by 32 or more swaps the halves.
    const half = distance >>> 5
    const low = state[lane * 2 + half] as number
    const high = state[lane * 2 + 1 - half] as number
    moved[target] = (low << by) | (high >>> (32 - by))
    moved[target + 1] = (high << by) | (low >>> (32 - by))
  }
}

/** Step chi: combines each word with the two that follow it in its row. */
function mixRow(state: Uint32Array, moved: Uint32Array, row: number): void {
  for (let half = row; half < row + 2; half++) {
    const a = moved[half] as number
    const b = moved[half + 2] as number
    const c = moved[half + 4] as number
    const d = moved[half + 6] as number
    const e = moved[half + 8] as number
    state[half] = a ^ (~b & c)
    state[half + 2] = b ^ (~c & d)
    state[half + 4] = c ^ (~d & e)
    state[half + 6] = d ^ (~e & a)
    state[half + 8] = e ^ (~a & b)
  }
}

/** Rotation of lane x + 5y, from the reference. */
const ROTATIONS = Uint8Array.of(
  ...[0, 1, 62, 28, 27],
  ...[36, 44, 6, 55, 20],
  ...[3, 10, 43, 25, 39],
  ...[41, 45, 15, 21, 8],
  ...[18, 2, 61, 56, 14],
)

/** Lane (x, y) moves to (y, 2x + 3y). */
const TARGETS = Uint8Array.from({ length: LANES }, (_, lane) => {
  const x = lane % 5
  const y = Math.floor(lane / 5)
  return y + 5 * ((2 * x + 3 * y) % 5)
})

/** Low and high words of the 24 round constants: bits 2^j - 1 from the reference's linear feedback shift register. */
const ROUND_CONSTANTS = (() => {
  const words = new Uint32Array(ROUNDS * 2)
  let register = 1
  for (let round = 0; round < ROUNDS; round++) {
    for (let power = 0; power < 7; power++) {
      const bit = 2 ** power - 1
      const word = round * 2 + (bit >= 32 ? 1 : 0)
      if ((register & 1) === 1) words[word] = (words[word] as number) | (1 << (bit % 32))
      register = (register << 1) ^ ((register >> 7) * 0x171)
    }
  }
  return words
})()
