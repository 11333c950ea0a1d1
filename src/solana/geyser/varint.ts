/** Writes `value` (0 to 2^31 - 1) as a protobuf varint at `start` and returns the offset after it. The caller has made room. */
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
