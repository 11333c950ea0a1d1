/**
 * A second shred decoder for tests, written from the specification of the format and sharing no code with `src/`: slow, simple, and
 * throwing at the first violation.
 */
import assert from 'node:assert/strict'
import { createHash, createPublicKey, verify } from 'node:crypto'

export type DecodedShred = {
  kind: 'data' | 'code'
  resigned: boolean
  slot: bigint
  index: number
  version: number
  fec: number
  parentOffset: number
  flags: number
  size: number
  position: number
  packet: Buffer
}

/** The violated rule of the format, or undefined. `max` is the number of indexes in a slot. */
export function brokenRule(packet: Uint8Array, max = 32_768): number | 'length' | 'slot' | undefined {
  const b = Buffer.from(packet)
  if (b.length < 1203) return 'length'
  const high = b.readUInt8(64) >> 4
  if (![6, 7, 9, 11].includes(high)) return 6
  if (b.readUInt8(64) % 16 !== 6) return 7
  const isData = high === 9 || high === 11
  if (!isData && b.length < 1228) return 'length'
  const slot = b.readBigUInt64LE(65)
  if (slot >= 2n ** 53n) return 'slot'
  const index = b.readUInt32LE(73)
  const fec = b.readUInt32LE(79)
  if (index >= max) return 2
  if (fec % 32 !== 0) return 4
  if (fec > max - 32) return 5
  if (!(fec <= index && index < fec + 32)) return 3
  if (isData) {
    const flags = b.readUInt8(85)
    if ((flags & 0xc0) === 0x80) return 8
    if (flags & 0x40 && index % 32 !== 31) return 9
    const parentOffset = BigInt(b.readUInt16LE(83))
    if (parentOffset > slot) return 10
    if ((parentOffset === 0n) !== (slot === 0n)) return 11
    const size = b.readUInt16LE(86)
    if (size < 88 || size > (high === 9 ? 1051 : 987)) return 12
    return undefined
  }
  if (b.readUInt16LE(83) !== 32 || b.readUInt16LE(85) !== 32) return 15
  const position = b.readUInt16LE(87)
  if (position >= 32) return 13
  if (position > index) return 14
  if (position !== index - fec) return 16
  return undefined
}

export function decodeShred(packet: Uint8Array): DecodedShred {
  assert.equal(brokenRule(packet), undefined)
  const b = Buffer.from(packet)
  const high = b.readUInt8(64) >> 4
  const isData = high === 9 || high === 11
  return {
    kind: isData ? 'data' : 'code',
    resigned: high === 11 || high === 7,
    slot: b.readBigUInt64LE(65),
    index: b.readUInt32LE(73),
    version: b.readUInt16LE(77),
    fec: b.readUInt32LE(79),
    parentOffset: isData ? b.readUInt16LE(83) : -1,
    flags: isData ? b.readUInt8(85) : -1,
    size: isData ? b.readUInt16LE(86) : -1,
    position: isData ? -1 : b.readUInt16LE(87),
    packet: b.subarray(0, isData ? 1203 : 1228),
  }
}

/** Offsets by the table of variants. */
function offsetsOf(shred: { kind: 'data' | 'code'; resigned: boolean }) {
  if (shred.kind === 'data')
    return shred.resigned ? { proof: 1019, chained: 987, shard: 64 } : { proof: 1083, chained: 1051, shard: 64 }
  return shred.resigned ? { proof: 1044, chained: 1012, shard: 89 } : { proof: 1108, chained: 1076, shard: 89 }
}

const sha256 = (...parts: (Uint8Array | string)[]): Buffer => {
  const hash = createHash('sha256')
  for (const part of parts) hash.update(part)
  return hash.digest()
}

export function merkleRoot(shred: DecodedShred): Buffer {
  const { proof } = offsetsOf(shred)
  let node = sha256(Buffer.of(0), 'SOLANA_MERKLE_SHREDS_LEAF', shred.packet.subarray(64, proof))
  let index = shred.kind === 'data' ? shred.index - shred.fec : 32 + shred.position
  for (let i = 0; i < 6; i++) {
    const entry = shred.packet.subarray(proof + 20 * i, proof + 20 * i + 20)
    const own = node.subarray(0, 20)
    node = sha256(Buffer.of(1), 'SOLANA_MERKLE_SHREDS_NODE', ...(index % 2 === 0 ? [own, entry] : [entry, own]))
    index = Math.floor(index / 2)
  }
  assert.equal(index, 0)
  return node
}

function chainedRoot(shred: DecodedShred): Buffer {
  const { chained } = offsetsOf(shred)
  return shred.packet.subarray(chained, chained + 32)
}

function isSigned(message: Uint8Array, signature: Uint8Array, publicKey: Uint8Array): boolean {
  const der = Buffer.concat([Buffer.from('302a300506032b6570032100', 'hex'), publicKey])
  return verify(null, message, createPublicKey({ key: der, format: 'der', type: 'spki' }), signature)
}

/** Multiplication in GF(2^8) modulo x^8 + x^4 + x^3 + x^2 + 1, one bit at a time. */
export function gfMultiply(a: number, b: number): number {
  let product = 0
  for (let bit = 0; bit < 8; bit++) if ((b >> bit) & 1) product ^= a << bit
  for (let bit = 15; bit >= 8; bit--) if ((product >> bit) & 1) product ^= 0x11d << (bit - 8)
  return product
}

const gfInverse = (a: number): number => {
  for (let b = 1; b < 256; b++) if (gfMultiply(a, b) === 1) return b
  throw new Error('0 has no inverse')
}

function invert(matrix: number[][]): number[][] {
  const n = matrix.length
  const rows = matrix.map((row, i) => [...row, ...row.map((_, j) => (i === j ? 1 : 0))])
  for (let column = 0; column < n; column++) {
    const pivot = rows.findIndex((row, i) => i >= column && row[column] !== 0)
    assert.ok(pivot >= 0, 'singular')
    ;[rows[column], rows[pivot]] = [rows[pivot] as number[], rows[column] as number[]]
    const scale = gfInverse(rows[column]?.[column] as number)
    rows[column] = (rows[column] as number[]).map((value) => gfMultiply(value, scale))
    for (let i = 0; i < n; i++) {
      const factor = rows[i]?.[column] as number
      if (i === column || factor === 0) continue
      rows[i] = (rows[i] as number[]).map((value, j) => value ^ gfMultiply(factor, rows[column]?.[j] as number))
    }
  }
  return rows.map((row) => row.slice(n))
}

const timesMatrix = (a: number[][], b: number[][]): number[][] =>
  a.map((row) =>
    (b[0] as number[]).map((_, j) => row.reduce((sum, value, k) => sum ^ gfMultiply(value, b[k]?.[j] as number), 0)),
  )

/** The encoding matrix of the specification: 64 x 32 Vandermonde times the inverse of its top half. */
export function encodingMatrix(): number[][] {
  const vandermonde = Array.from({ length: 64 }, (_, row) => {
    const powers = [1]
    while (powers.length < 32) powers.push(gfMultiply(powers.at(-1) as number, row))
    return powers
  })
  return timesMatrix(vandermonde, invert(vandermonde.slice(0, 32)))
}

/** rows x shards: each row is a linear combination of the shards, byte by byte. */
export function combine(rows: number[][], shards: Uint8Array[]): Buffer[] {
  return rows.map((row) => {
    const result = Buffer.alloc((shards[0] as Uint8Array).length)
    for (const [k, factor] of row.entries()) {
      if (factor === 0) continue
      const products = Array.from({ length: 256 }, (_, value) => gfMultiply(factor, value))
      for (let i = 0; i < result.length; i++)
        result[i] = (result[i] as number) ^ (products[shards[k]?.[i] as number] as number)
    }
    return result
  })
}

/** The data shreds of one FEC set from any 32 of its 64 shreds: headers and payload, without signature and tail. */
function recoverData(shreds: DecodedShred[]): Buffer[] {
  const byRow = new Map(
    shreds.map((shred) => [shred.kind === 'data' ? shred.index - shred.fec : 32 + shred.position, shred]),
  )
  const rows = [...byRow.keys()].sort((a, b) => a - b).slice(0, 32)
  assert.equal(rows.length, 32, 'fewer than 32 shreds of a FEC set')
  const matrix = encodingMatrix()
  const shards = rows.map((row) => {
    const shred = byRow.get(row) as DecodedShred
    const { shard, chained } = offsetsOf(shred)
    return shred.packet.subarray(shard, chained)
  })
  return combine(invert(rows.map((row) => matrix[row] as number[])), shards)
}

export type DecodedSlot = { batches: Buffer[]; firstChainedRoot: Buffer; lastRoot: Buffer; parentSlot: bigint }

/** A complete slot from packets in any order, each verified against the leader's key, FEC sets chained to each other. */
export function decodeSlot(packets: readonly Uint8Array[], leader: Uint8Array): DecodedSlot {
  const sets = new Map<number, DecodedShred[]>()
  for (const packet of packets) {
    const shred = decodeShred(packet)
    sets.set(shred.fec, [...(sets.get(shred.fec) ?? []), shred])
  }
  const batches: Buffer[] = []
  let payloads: Buffer[] = []
  let previousRoot: Buffer | undefined
  let firstChainedRoot: Buffer | undefined
  let parentSlot = -1n
  let isEnded = false
  const ordered = [...sets.keys()].sort((a, b) => a - b)
  for (const [i, fec] of ordered.entries()) {
    assert.equal(fec, i * 32, 'a FEC set is missing')
    const shreds = sets.get(fec) as DecodedShred[]
    const [first] = shreds as [DecodedShred]
    const root = merkleRoot(first)
    for (const shred of shreds) {
      assert.deepEqual(merkleRoot(shred), root)
      assert.deepEqual(chainedRoot(shred), chainedRoot(first))
      assert.deepEqual(shred.packet.subarray(0, 64), first.packet.subarray(0, 64))
      assert.deepEqual([shred.slot, shred.version, shred.resigned], [first.slot, first.version, first.resigned])
    }
    assert.ok(isSigned(root, first.packet.subarray(0, 64), leader), 'not signed by the leader')
    if (previousRoot) assert.deepEqual(chainedRoot(first), previousRoot)
    firstChainedRoot ??= chainedRoot(first)
    previousRoot = root
    assert.ok(!first.resigned || i === ordered.length - 1, 'a resigned set before the last')

    let isShort = false
    for (const [k, recovered] of recoverData(shreds).entries()) {
      assert.ok(!isEnded, 'data after the last shred of the slot')
      const header = Buffer.concat([Buffer.alloc(64), recovered])
      assert.equal(header.readBigUInt64LE(65), first.slot)
      assert.equal(header.readUInt32LE(73), fec + k)
      assert.equal(header.readUInt16LE(77), first.version)
      assert.equal(header.readUInt32LE(79), fec)
      parentSlot = first.slot - BigInt(header.readUInt16LE(83))
      const size = header.readUInt16LE(86)
      if (isShort) assert.equal(size, 88, 'payload after a shred that is not full')
      isShort ||= size < (first.resigned ? 987 : 1051)
      payloads.push(header.subarray(88, size))
      const flags = header.readUInt8(85)
      if (k === 31 && isShort) assert.ok(flags & 0x40, 'a FEC set that is not full and does not end its batch')
      if (flags & 0x40) {
        batches.push(Buffer.concat(payloads))
        payloads = []
      }
      isEnded = (flags & 0xc0) === 0xc0
    }
  }
  assert.ok(isEnded, 'the slot has no last shred')
  return { batches, firstChainedRoot: firstChainedRoot as Buffer, lastRoot: previousRoot as Buffer, parentSlot }
}
