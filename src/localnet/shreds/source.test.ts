import assert from 'node:assert/strict'
import { createHash, createPublicKey, verify } from 'node:crypto'
import { test } from 'node:test'
import { createSeededRandom, type Random, randomInt } from '../../core/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { joinBatches } from '../../solana/shred/deshred.ts'
import { decodeBatch } from '../../solana/shred/entry.ts'
import { parseShred } from '../../solana/shred/shred.ts'
import type { Block } from '../chain/model.ts'
import { CONSENSUS_NAMES } from '../options.ts'
import { startTestChain, testKeys } from '../test-chain.ts'
import { startTraffic } from '../traffic/traffic.ts'
import { batchesOf, startShredSource } from './source.ts'

for (const consensus of CONSENSUS_NAMES) {
  test(`a receiver recovers every block from its shreds when a third of each FEC set is lost: ${consensus}`, async () => {
    await using host = await startTestChain({ consensus, candidateBanksPercent: 0 })
    const { chain, clock } = host
    const random = createSeededRandom(11)
    const packets: Uint8Array[] = []
    const deps = { chain, clock, log: silentLogger }
    using source = startShredSource({ ...deps, leader: testKeys().identity, send: (packet) => packets.push(packet) })
    using traffic = startTraffic({ tps: 200 }, { ...deps, random, secret: new Uint8Array(32).fill(1) })
    await until(
      'some blocks need several FEC sets',
      () => {
        clock.advance(50)
        return traffic.landed() > 600
      },
      30_000,
    )
    await chain.produceBlock()
    clock.advance(1000)
    assert.equal(source.shredsSent(), packets.length)

    // A FEC set is sent as 64 consecutive packets; 21 of each, chosen at random, are lost.
    const received: Uint8Array[] = []
    for (let at = 0; at < packets.length; at += 64) received.push(...loseSome(packets.slice(at, at + 64), 21, random))
    const slots = new Map<number, Buffer[]>()
    for (const packet of received.map((bytes) => Buffer.from(bytes))) {
      const slot = Number(packet.readBigUInt64LE(65))
      slots.set(slot, [...(slots.get(slot) ?? []), packet])
    }
    let checked = 0
    for (let slot = 1; slot <= chain.slot('processed'); slot++) {
      const block = chain.block(slot) as Block
      assert.deepEqual(
        Buffer.from(readSlot(slots.get(slot) ?? [], block)),
        Buffer.concat(batchesOf(block)),
        `slot ${slot}`,
      )
      checked++
    }
    assert(checked > 3)
  })
}

test('a leader that began on another parent sends the change of the parent and the block again', async () => {
  await using host = await startTestChain({ consensus: 'alpenglow', candidateBanksPercent: 100 })
  const { chain, clock } = host
  const packets: Uint8Array[] = []
  const deps = { chain, clock, log: silentLogger, leader: testKeys().identity }
  using _source = startShredSource({ ...deps, send: (packet) => packets.push(packet) })
  for (let block = 0; block < 40; block++) {
    assert((await chain.airdrop(chain.identity, BigInt(block + 1))).ok)
    await chain.produceBlock()
    clock.advance(1)
  }
  clock.advance(1000)
  const shreds = packets.flatMap((packet) => {
    const parsed = parseShred(packet)
    return parsed.ok && parsed.shred.kind === 'data' ? [parsed.shred] : []
  })
  let changed = 0
  for (const [slot, ofSlot] of Map.groupBy(shreds, (shred) => shred.slot)) {
    const batches = joinBatches(ofSlot).map(({ bytes }) => decodeBatch(bytes))
    const kinds = batches.map((batch) => batch.ok && (batch.kind === 'entries' ? batch.kind : batch.marker.variant))
    const block = chain.block(slot) as Block
    assert.deepEqual(kinds.slice(-2), ['entries', 'block-footer'])
    const own = batches.at(-2)
    const last = own?.ok && own.kind === 'entries' ? own.entries.at(-1)?.hash : undefined
    assert.equal(last && encodeBase58(last), block.blockhash)
    const marker = batches.find(
      (batch) => batch.ok && batch.kind === 'marker' && batch.marker.variant === 'update-parent',
    )
    assert.equal(slot - (ofSlot[0]?.parentOffset ?? 0), marker ? slot - 2 : slot - 1)
    if (!marker?.ok || marker.kind !== 'marker') continue
    changed++
    // Version 1, slot, block id.
    const { body } = marker.marker
    assert.deepEqual([body[0], Buffer.from(body).readBigUInt64LE(1)], [1, BigInt(slot - 1)])
    assert.equal(encodeBase58(body.subarray(9)), block.previousBlockhash)
  }
  assert(changed > 2, `${changed} slots with another parent`)
})

test('shreds of Alpenglow have entries without ticks, then the marker of the footer; an empty block has the marker alone', async () => {
  await using host = await startTestChain({ consensus: 'alpenglow' })
  const { chain } = host
  const empty = await chain.produceBlock()
  assert((await chain.airdrop(chain.identity, 1n)).ok)
  const full = await chain.produceBlock()
  for (const [block, kinds] of [
    [empty, ['block-footer']],
    [full, ['entries', 'block-footer']],
  ] as const) {
    const batches = batchesOf(block).map((bytes) => decodeBatch(bytes))
    assert.deepEqual(
      batches.map((batch) => batch.ok && (batch.kind === 'entries' ? batch.kind : batch.marker.variant)),
      kinds,
    )
    for (const batch of batches) {
      if (batch.ok && batch.kind === 'entries') {
        assert(batch.entries.every(({ transactions }) => transactions.length === 1))
        assert.equal(encodeBase58(batch.entries.at(-1)?.hash as Uint8Array), block.blockhash)
      }
      if (batch.ok && batch.kind === 'marker') {
        // Version 1 in front, at the end the tags of three certificates that a single validator does not make.
        const { body } = batch.marker
        assert.deepEqual([body[0], ...body.subarray(-3)], [1, 0, 0, 0])
        assert.deepEqual(body.subarray(1, 33), block.footer?.bankHash)
        assert.equal(Buffer.from(body.subarray(42, -3)).toString(), block.footer?.userAgent)
      }
    }
  }
})

function loseSome<Item>(items: Item[], count: number, random: Random): Item[] {
  const left = [...items]
  for (let lost = 0; lost < count; lost++) left.splice(randomInt(random, left.length), 1)
  return left
}

/**
 * A receiver written from the format specification; it shares no code with the producer. It recovers missing data shreds
 * of a FEC set, rebuilds the merkle tree from all 64 leaves, and checks the leader's signature of its root.
 */
function readSlot(packets: Buffer[], block: Block): Uint8Array {
  const sets = Map.groupBy(packets, (packet) => packet.readUInt32LE(79))
  const payload: Buffer[] = []
  let isLast = false
  for (let first = 0; !isLast; first += 32) {
    const set = sets.get(first)
    assert(set && set.length >= 32, `set ${first} has only ${set?.length ?? 0} shreds`)
    const kind = (set[0] as Buffer).readUInt8(64) >> 4
    const isResigned = kind === 0x7 || kind === 0xb
    const shardBytes = isResigned ? 923 : 987
    const isData = (packet: Buffer) => [0x9, 0xb].includes(packet.readUInt8(64) >> 4)
    const shards = new Map<number, Buffer>()
    for (const packet of set) {
      const index = packet.readUInt32LE(73) - first
      if (isData(packet)) shards.set(index, packet.subarray(64, 64 + shardBytes))
      else shards.set(32 + index, packet.subarray(89, 89 + shardBytes))
    }
    const solved = solve(shards, shardBytes)
    for (const shard of solved.slice(0, 32)) {
      // Offsets are those of the shred without its 64 bytes of signature.
      const size = shard.readUInt16LE(86 - 64)
      payload.push(shard.subarray(88 - 64, size - 64))
      isLast = (shard.readUInt8(85 - 64) & 0xc0) === 0xc0
    }
    checkSignature(set, block)
  }
  return Buffer.concat(payload)
}

function checkSignature(set: Buffer[], block: Block): void {
  const key = createPublicKey({
    key: { kty: 'OKP', crv: 'Ed25519', x: Buffer.from(decodeBase58(block.leader)).toString('base64url') },
    format: 'jwk',
  })
  for (const packet of set.slice(0, 3)) {
    const kind = packet.readUInt8(64) >> 4
    const isData = kind === 0x9 || kind === 0xb
    const end = (isData ? 1203 : 1228) - (kind === 0x7 || kind === 0xb ? 64 : 0)
    const proofAt = end - 6 * 20
    let position = packet.readUInt32LE(73) - packet.readUInt32LE(79) + (isData ? 0 : 32)
    let hash = sha(Buffer.from('\0SOLANA_MERKLE_SHREDS_LEAF'), packet.subarray(64, proofAt))
    for (let level = 0; level < 6; level++, position >>= 1) {
      const sibling = packet.subarray(proofAt + level * 20, proofAt + level * 20 + 20)
      const own = hash.subarray(0, 20)
      hash = sha(
        Buffer.from('\x01SOLANA_MERKLE_SHREDS_NODE'),
        ...(position % 2 === 0 ? [own, sibling] : [sibling, own]),
      )
    }
    assert(
      verify(null, hash, key, packet.subarray(0, 64)),
      `signature of slot ${block.slot} by ${encodeBase58(decodeBase58(block.leader))}`,
    )
  }
}

const sha = (...parts: Buffer[]) => createHash('sha256').update(Buffer.concat(parts)).digest()

/** Inverting any 32 available rows of the code's matrix recovers the data shards. */
function solve(shards: ReadonlyMap<number, Buffer>, bytes: number): Buffer[] {
  const rows = [...shards.keys()].sort((a, b) => a - b).slice(0, 32)
  const inverse = invert(rows.map((row) => MATRIX[row] as number[]))
  return inverse.map((weights, index) => {
    const ready = shards.get(index)
    if (ready) return ready
    const shard = Buffer.alloc(bytes)
    weights.forEach((weight, column) => {
      const from = shards.get(rows[column] as number) as Buffer
      for (let i = 0; i < bytes; i++) shard[i] = (shard[i] as number) ^ times(weight, from[i] as number)
    })
    return shard
  })
}

/** GF(2^8) with polynomial 0x11D, by long multiplication. */
function times(a: number, b: number): number {
  let product = 0
  for (let x = a, y = b; y > 0; y >>= 1, x = x & 0x80 ? ((x << 1) ^ 0x11d) & 0xff : x << 1) if (y & 1) product ^= x
  return product
}

function power(base: number, exponent: number): number {
  let result = 1
  for (let i = 0; i < exponent; i++) result = times(result, base)
  return result
}

function invert(matrix: number[][]): number[][] {
  const size = matrix.length
  const work = matrix.map((row, r) => [...row, ...Array.from({ length: size }, (_, c) => (c === r ? 1 : 0))])
  for (let column = 0; column < size; column++) {
    const pivot = work.findIndex((row, r) => r >= column && row[column] !== 0)
    ;[work[column], work[pivot]] = [work[pivot] as number[], work[column] as number[]]
    const scale = power((work[column] as number[])[column] as number, 254)
    work[column] = (work[column] as number[]).map((value) => times(value, scale))
    for (let r = 0; r < size; r++) {
      const factor = (work[r] as number[])[column] as number
      if (r === column || factor === 0) continue
      work[r] = (work[r] as number[]).map((value, c) => value ^ times(factor, (work[column] as number[])[c] as number))
    }
  }
  return work.map((row) => row.slice(size))
}

function multiply(a: number[][], b: number[][]): number[][] {
  return a.map((row) =>
    (b[0] as number[]).map((_, c) =>
      row.reduce((sum, value, k) => sum ^ times(value, (b[k] as number[])[c] as number), 0),
    ),
  )
}

const VANDERMONDE = Array.from({ length: 64 }, (_, row) =>
  Array.from({ length: 32 }, (_, column) => power(row, column)),
)
const MATRIX = multiply(VANDERMONDE, invert(VANDERMONDE.slice(0, 32)))
