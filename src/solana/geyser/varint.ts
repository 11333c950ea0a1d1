/** Writes `value` (0 to 2^32 - 1) as a protobuf varint at `start` and returns the offset after it. The caller has made room. */
export function putVarint(target: Uint8Array, start: number, value: number): number {
  let at = start
  let rest = value
  while (rest > 127) {
    target[at++] = (rest & 127) | 0x80
    rest >>>= 7
  }
  target[at] = rest
  return at + 1
}

/** The bytes of a varint below 2^35. */
export function varintBytes(value: number): number {
  return value < 0x80 ? 1 : value < 0x4000 ? 2 : value < 0x200000 ? 3 : value < 0x10000000 ? 4 : 5
}

/** `putVarint` for a value of 64 bits, as its lower and upper 32 bits. */
export function putVarint64(target: Uint8Array, start: number, lower: number, upper: number): number {
  let at = start
  let low = lower
  let high = upper
  while (high > 0) {
    target[at++] = (low & 127) | 0x80
    low = ((low >>> 7) | (high << 25)) >>> 0
    high >>>= 7
  }
  return putVarint(target, at, low)
}

export function varint64Bytes(lower: number, upper: number): number {
  if (upper === 0) return varintBytes(lower)
  // Four groups of seven bits are in the lower half alone.
  const rest = upper * 16 + (lower >>> 28)
  return 4 + (rest < 2 ** 35 ? varintBytes(rest) : 6)
}
