/**
 * Solana's compact-u16: seven bits a byte, least significant first, high bit set when more follow.
 * Only the shortest form of a value is accepted.
 */

/** The value at `offset` with its length packed as `value * 4 + length`, or -1 when truncated, longer than needed or above 0xFFFF. */
export function readCompactU16(bytes: Uint8Array, offset: number): number {
  const a = bytes[offset]
  if (a === undefined) return -1
  if (a < 0x80) return a * 4 + 1
  const b = bytes[offset + 1]
  if (b === undefined || b === 0) return -1
  if (b < 0x80) return ((a & 0x7f) | (b << 7)) * 4 + 2
  const c = bytes[offset + 2]
  if (c === undefined || c === 0 || c > 3) return -1
  return ((a & 0x7f) | ((b & 0x7f) << 7) | (c << 14)) * 4 + 3
}

export function compactU16Length(value: number): 1 | 2 | 3 {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : 3
}

/** Writes `value` (0 to 0xFFFF) at `offset` and returns the offset after it. */
export function writeCompactU16(target: Uint8Array, offset: number, value: number): number {
  let at = offset
  let rest = value
  while (rest >= 0x80) {
    target[at++] = (rest & 0x7f) | 0x80
    rest >>>= 7
  }
  target[at++] = rest
  return at
}
