/**
 * SipHash-2-4 (Aumasson and Bernstein, 2012) in halves of 32 bits. State words are pairs: [low, high] at 2n and 2n + 1.
 */
export function sipHash24(key0: bigint, key1: bigint, data: Uint8Array): { low: number; high: number } {
  const v = new Uint32Array(8)
  start(v, 0, key0 ^ 0x736f6d6570736575n)
  start(v, 2, key1 ^ 0x646f72616e646f6dn)
  start(v, 4, key0 ^ 0x6c7967656e657261n)
  start(v, 6, key1 ^ 0x7465646279746573n)

  const fullWordBytes = data.length - (data.length % 8)
  for (let at = 0; at < fullWordBytes; at += 8) absorb(v, readU32(data, at), readU32(data, at + 4))
  // The last word holds the remaining bytes, and the length in its highest byte.
  const tail = new Uint8Array(8)
  tail.set(data.subarray(fullWordBytes))
  tail[7] = data.length
  absorb(v, readU32(tail, 0), readU32(tail, 4))

  v[4] = (v[4] as number) ^ 0xff
  for (let i = 0; i < 4; i++) round(v)
  const low = (v[0] as number) ^ (v[2] as number) ^ (v[4] as number) ^ (v[6] as number)
  const high = (v[1] as number) ^ (v[3] as number) ^ (v[5] as number) ^ (v[7] as number)
  return { low: low >>> 0, high: high >>> 0 }
}

function start(v: Uint32Array, at: number, value: bigint): void {
  v[at] = Number(value & 0xffffffffn)
  v[at + 1] = Number((value >> 32n) & 0xffffffffn)
}

function absorb(v: Uint32Array, low: number, high: number): void {
  v[6] = (v[6] as number) ^ low
  v[7] = (v[7] as number) ^ high
  round(v)
  round(v)
  v[0] = (v[0] as number) ^ low
  v[1] = (v[1] as number) ^ high
}

function round(v: Uint32Array): void {
  half(v, 0, 2, 13)
  rotate32(v, 0)
  half(v, 4, 6, 16)
  half(v, 0, 6, 21)
  half(v, 4, 2, 17)
  rotate32(v, 4)
}

/** a += b; b = rotl(b, bits) ^ a, for the words at a and b. */
function half(v: Uint32Array, a: number, b: number, bits: number): void {
  const bLow = v[b] as number
  const bHigh = v[b + 1] as number
  const low = (v[a] as number) + bLow
  v[a + 1] = (v[a + 1] as number) + bHigh + (low > 0xffffffff ? 1 : 0)
  v[a] = low
  v[b] = ((bLow << bits) | (bHigh >>> (32 - bits))) ^ (v[a] as number)
  v[b + 1] = ((bHigh << bits) | (bLow >>> (32 - bits))) ^ (v[a + 1] as number)
}

/** Rotation by 32 swaps the halves. */
function rotate32(v: Uint32Array, at: number): void {
  const low = v[at] as number
  v[at] = v[at + 1] as number
  v[at + 1] = low
}

function readU32(data: Uint8Array, at: number): number {
  return (
    ((data[at] as number) |
      ((data[at + 1] as number) << 8) |
      ((data[at + 2] as number) << 16) |
      ((data[at + 3] as number) << 24)) >>>
    0
  )
}
