/**
 * CityHash128 in version 1.0.2 (github.com/google/cityhash), whose results later versions do not repeat: the checksum of ClickHouse's compressed
 * blocks.
 */

const K0 = 0xc3a5c85c97cb3127n
const K1 = 0xb492b66fbe98f273n
const K2 = 0x9ae16a3b2f90404fn
const K3 = 0xc949d7c7509e6557n
const MUL = 0x9ddfea08eb382d69n

type Pair = readonly [bigint, bigint]

/** The hash as 16 bytes: its low half first, each half with its lowest byte first. */
export function cityHash128(bytes: Uint8Array): Buffer {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  const [low, high] = hashOf(view)
  const out = Buffer.allocUnsafe(16)
  out.writeBigUInt64LE(low, 0)
  out.writeBigUInt64LE(high, 8)
  return out
}

function hashOf(view: DataView): Pair {
  const length = view.byteLength
  if (length >= 16) return withSeed(view, 16, [fetch(view, 0) ^ K3, fetch(view, 8)])
  if (length >= 8)
    return withSeed(view, length, [fetch(view, 0) ^ u64(BigInt(length) * K0), fetch(view, length - 8) ^ K1])
  return withSeed(view, 0, [K0, K1])
}

/** Hashes the bytes from `start` on. */
function withSeed(view: DataView, start: number, seed: Pair): Pair {
  let length = view.byteLength - start
  if (length < 128) return murmur(view, start, seed)
  let at = start
  let [x, y] = seed
  let z = u64(BigInt(length) * K1)
  let v: Pair = [0n, 0n]
  const first = u64(rotate(y ^ K1, 49n) * K1 + fetch(view, at))
  v = [first, u64(rotate(first, 42n) * K1 + fetch(view, at + 8))]
  let w: Pair = [u64(rotate(u64(y + z), 35n) * K1 + x), u64(rotate(u64(x + fetch(view, at + 88)), 53n) * K1)]
  for (; length >= 128; length -= 128) {
    for (let half = 0; half < 2; half++, at += 64) {
      x = u64(rotate(u64(x + y + v[0] + fetch(view, at + 16)), 37n) * K1) ^ w[1]
      y = u64(rotate(u64(y + v[1] + fetch(view, at + 48)), 42n) * K1) ^ v[0]
      z = rotate(z ^ w[0], 33n)
      v = weakHash(view, at, u64(v[1] * K1), u64(x + w[0]))
      w = weakHash(view, at + 32, u64(z + w[1]), y)
      ;[z, x] = [x, z]
    }
  }
  y = u64(y + rotate(w[0], 37n) * K0 + z)
  x = u64(x + rotate(u64(v[0] + z), 49n) * K0)
  for (let done = 0; done < length; ) {
    done += 32
    const part = at + length - done
    y = u64(rotate(u64(y - x), 42n) * K0 + v[1])
    w = [u64(w[0] + fetch(view, part + 16)), w[1]]
    x = u64(rotate(x, 49n) * K0 + w[0])
    w = [u64(w[0] + v[0]), w[1]]
    v = weakHash(view, part, v[0], v[1])
  }
  x = mix16(x, v[0])
  y = mix16(y, w[0])
  return [u64(mix16(u64(x + v[1]), w[1]) + y), mix16(u64(x + w[1]), u64(y + v[1]))]
}

function murmur(view: DataView, start: number, [seedLow, seedHigh]: Pair): Pair {
  const length = view.byteLength - start
  const size = BigInt(length)
  let [a, b] = [seedLow, seedHigh]
  let c: bigint
  let d: bigint
  if (length <= 16) {
    a = u64(shiftMix(u64(a * K1)) * K1)
    c = u64(b * K1 + upTo16(view, start))
    d = shiftMix(u64(a + (length >= 8 ? fetch(view, start) : c)))
  } else {
    c = mix16(u64(fetch(view, start + length - 8) + K1), a)
    d = mix16(u64(b + size), u64(c + fetch(view, start + length - 16)))
    a = u64(a + d)
    for (let at = start, left = length - 16; left > 0; left -= 16, at += 16) {
      a = u64((a ^ u64(shiftMix(u64(fetch(view, at) * K1)) * K1)) * K1)
      b ^= a
      c = u64((c ^ u64(shiftMix(u64(fetch(view, at + 8) * K1)) * K1)) * K1)
      d ^= c
    }
  }
  a = mix16(a, c)
  b = mix16(d, b)
  return [a ^ b, mix16(b, a)]
}

function upTo16(view: DataView, start: number): bigint {
  const length = view.byteLength - start
  const size = BigInt(length)
  if (length > 8) {
    const a = fetch(view, start)
    const b = fetch(view, start + length - 8)
    return mix16(a, rotate(u64(b + size), size)) ^ b
  }
  if (length >= 4) {
    const a = BigInt(view.getUint32(start, true))
    return mix16(u64(size + (a << 3n)), BigInt(view.getUint32(start + length - 4, true)))
  }
  if (length === 0) return K2
  const [a, b, c] = [0, length >> 1, length - 1].map((at) => view.getUint8(start + at)) as [number, number, number]
  return u64(shiftMix(u64(BigInt(a + (b << 8)) * K2) ^ u64(BigInt(length + (c << 2)) * K3)) * K2)
}

/** 32 bytes from `at` on, with two seeds. */
function weakHash(view: DataView, at: number, seedA: bigint, seedB: bigint): Pair {
  const z = fetch(view, at + 24)
  let a = u64(seedA + fetch(view, at))
  let b = rotate(u64(seedB + a + z), 21n)
  const c = a
  a = u64(a + fetch(view, at + 8) + fetch(view, at + 16))
  b = u64(b + rotate(a, 44n))
  return [u64(a + z), u64(b + c)]
}

function mix16(low: bigint, high: bigint): bigint {
  const a = shiftMix(u64((low ^ high) * MUL))
  return u64(shiftMix(u64((high ^ a) * MUL)) * MUL)
}

function shiftMix(value: bigint): bigint {
  return value ^ (value >> 47n)
}

function rotate(value: bigint, by: bigint): bigint {
  return u64((value >> by) | (value << (64n - by)))
}

function fetch(view: DataView, at: number): bigint {
  return view.getBigUint64(at, true)
}

function u64(value: bigint): bigint {
  return BigInt.asUintN(64, value)
}
