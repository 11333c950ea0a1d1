/**
 * Keccak-256 as Ethereum uses it: the original padding 0x01, not the 0x06 of SHA3-256, which is the only one that node:crypto has.
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

function permute(state: Uint32Array): void {
  const columns = new Uint32Array(10)
  const moved = new Uint32Array(LANES * 2)
  for (let round = 0; round < ROUNDS; round++) {
    mixColumns(state, columns)
    for (let lane = 0; lane < LANES; lane++) rotateInto(moved, TARGETS[lane] as number, state, lane)
    for (let row = 0; row < LANES * 2; row += 10) {
      for (let at = 0; at < 10; at++) {
        const next = moved[row + ((at + 2) % 10)] as number
        const afterNext = moved[row + ((at + 4) % 10)] as number
        state[row + at] = (moved[row + at] as number) ^ (~next & afterNext)
      }
    }
    state[0] = (state[0] as number) ^ (ROUND_CONSTANTS[round * 2] as number)
    state[1] = (state[1] as number) ^ (ROUND_CONSTANTS[round * 2 + 1] as number)
  }
}

/** Step theta: each lane takes in the parity of two neighbouring columns. */
function mixColumns(state: Uint32Array, columns: Uint32Array): void {
  columns.fill(0)
  for (let at = 0; at < LANES * 2; at++) columns[at % 10] = (columns[at % 10] as number) ^ (state[at] as number)
  for (let column = 0; column < 5; column++) {
    const left = ((column + 4) % 5) * 2
    const right = ((column + 1) % 5) * 2
    const low = columns[right] as number
    const high = columns[right + 1] as number
    const mixLow = (columns[left] as number) ^ ((low << 1) | (high >>> 31))
    const mixHigh = (columns[left + 1] as number) ^ ((high << 1) | (low >>> 31))
    for (let at = column * 2; at < LANES * 2; at += 10) {
      state[at] = (state[at] as number) ^ mixLow
      state[at + 1] = (state[at + 1] as number) ^ mixHigh
    }
  }
}

/** Steps rho and pi: a lane is rotated by its own distance and moves to another place. */
function rotateInto(target: Uint32Array, place: number, state: Uint32Array, lane: number): void {
  const distance = ROTATIONS[lane] as number
  const isSwapped = distance >= 32
  const low = state[lane * 2 + (isSwapped ? 1 : 0)] as number
  const high = state[lane * 2 + (isSwapped ? 0 : 1)] as number
  const by = distance % 32
  // A shift by 32 does nothing in JavaScript, so that a distance of 0 must not take bits from the other half.
  target[place * 2] = by === 0 ? low : (low << by) | (high >>> (32 - by))
  target[place * 2 + 1] = by === 0 ? high : (high << by) | (low >>> (32 - by))
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
