import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { decodeShred, decodeSlot, merkleRoot } from '../../../test/support/shreds/decoder.ts'
import { createSigningKey } from '../crypto/ed25519.ts'
import { type BlockToShred, makeShreds, type ShreddedBlock } from './make.ts'

const leader = createSigningKey(new Uint8Array(32).fill(3))

function blockOf(batches: Uint8Array[], change: Partial<BlockToShred> = {}): BlockToShred {
  return {
    slot: 100,
    parentSlot: 99,
    version: 1234,
    batches,
    chainedRoot: new Uint8Array(32).fill(5),
    leader,
    ...change,
  }
}

const packetsOf = (block: ShreddedBlock): Uint8Array[] => block.sets.flatMap((set) => [...set.data, ...set.code])

/**
 * A FEC set made by Agave for its own tests (slot 0, version 0, five ticks, resigned kind), from Syndica's sig,
 * src/ledger/test_shreds.zig. The proof of its first shred covers all 64 shreds, so it depends on header layout, erasure code and tree.
 */
const AGAVE = {
  payload:
    '0500000000000000010000000000000001d0fabd251fcbbe2b93b4b927b26ad2a1a99077152e45ded1e678afa45dbec5000000000000000001000000000000007e59998584f83454a4095c90006b277c31ec7b447fee44f88bf57f10edf5ab14000000000000000001000000000000007907caaf1762ba594771c207de68d50a931f0429a4be1c7632d10259d1427c89000000000000000001000000000000004c88eb7b7fdc848a78dc58f77e82400286cae05ad24b4e23aae614b1929e9516000000000000000001000000000000007e02c48181a78fe73f15d44da7c32c5a8349b84314957aef9ac8e55ea38a8c710000000000000000',
  chainedRoot: '48b977c4564d3602e5c1bdc34d73a3599122817f3e9dd746124947b09501b36d',
  proof:
    '72cfbdfce1110d2fd3b8ffe8b692d93a25c16f0d939544bbc795835ca975ae70bff25d8dee84fb1ccf5dcb7dd2dddf198ca5f2e7a0c70c2054b1dbfcd946bacc957e8c0b16b9f2ce1ffd3062eb50d98613cf04d2ef03292b0c686be825c64e4b9dbe0393357d8133c89af94a89ad2bfdb9c6d1c8b9f04905',
}

test('the merkle proof of a FEC set equals the one made by Agave', () => {
  const { sets } = makeShreds({
    slot: 0,
    parentSlot: 0,
    version: 0,
    batches: [Buffer.from(AGAVE.payload, 'hex')],
    chainedRoot: Buffer.from(AGAVE.chainedRoot, 'hex'),
    leader,
  })
  assert.equal(sets.length, 1)
  const first = sets[0]?.data[0] as Uint8Array
  assert.equal(first[64], 0xb6)
  assert.equal(Buffer.from(first.subarray(1019, 1139)).toString('hex'), AGAVE.proof)
})

/** Payload bytes around the boundaries of shreds and FEC sets: 963 x 32 = 30816, resigned 899 x 32 = 28768. */
const edges = [
  1, 898, 899, 900, 963, 28_767, 28_768, 28_769, 30_815, 30_816, 30_817, 59_583, 59_584, 59_585, 61_632, 61_633,
]

test('blocks of every boundary size decode, from all shreds or any 32 of each FEC set', (t) => {
  const random = createRandom(seedOf(t))
  for (const length of edges) {
    const batch = randomBytesOf(random, length)
    const block = makeShreds(blockOf([batch]))
    assert.equal(block.sets.length, Math.ceil(length / 30_816), `${length} bytes`)
    assertDecodes(block, [batch])
    const survivors = block.sets.flatMap((set) => pick([...set.data, ...set.code], 32, random))
    assertDecodes(block, [batch], survivors)
  }
})

function assertDecodes(block: ShreddedBlock, batches: Uint8Array[], packets = packetsOf(block)): void {
  const decoded = decodeSlot(packets, leader.publicKey)
  assert.deepEqual(
    decoded.batches.map((batch) => Uint8Array.from(batch)),
    batches,
  )
  assert.deepEqual(Uint8Array.from(decoded.lastRoot), Uint8Array.from(block.lastRoot))
  assert.deepEqual(Uint8Array.from(decoded.firstChainedRoot), new Uint8Array(32).fill(5))
  assert.equal(decoded.parentSlot, 99n)
}

test('with a third of each FEC set lost, blocks are recovered byte for byte and signed by the leader', (t) => {
  const random = createRandom(seedOf(t))
  const runs = repeatsOf({ short: 4, full: 60 })
  for (let run = 0; run < runs; run++) {
    const batches = Array.from({ length: 1 + random(4) }, () => randomBytesOf(random, 1 + random(40_000)))
    const block = makeShreds(blockOf(batches))
    const survivors = block.sets.flatMap((set) => pick([...set.data, ...set.code], 64 - 21, random))
    assertDecodes(block, batches, pick(survivors, survivors.length, random))
  }
})

test('FEC sets and blocks are chained by their roots', () => {
  const first = makeShreds(blockOf([new Uint8Array(40_000)]))
  const second = makeShreds(blockOf([new Uint8Array(10)], { slot: 102, parentSlot: 100, chainedRoot: first.lastRoot }))
  const decoded = decodeSlot(packetsOf(second), leader.publicKey)
  assert.deepEqual(Uint8Array.from(decoded.firstChainedRoot), Uint8Array.from(first.lastRoot))
  assert.equal(decoded.parentSlot, 100n)
})

test('only the last FEC set of a slot is of the resigned kind, and only when it fits', () => {
  const kinds = (lengths: number[]) =>
    makeShreds(blockOf(lengths.map((length) => new Uint8Array(length)))).sets.map(({ data, code }) => [
      (data[0] as Uint8Array)[64],
      (code[0] as Uint8Array)[64],
    ])
  assert.deepEqual(kinds([30_817]), [
    [0x96, 0x66],
    [0xb6, 0x76],
  ])
  assert.deepEqual(kinds([28_769]), [[0x96, 0x66]])
  assert.deepEqual(kinds([5, 5]), [
    [0x96, 0x66],
    [0xb6, 0x76],
  ])
})

test('detects the signature of another leader and changed bytes', () => {
  const block = makeShreds(blockOf([new Uint8Array(500)]))
  const packets = packetsOf(block)
  const other = createSigningKey(new Uint8Array(32).fill(4))
  assert.throws(() => decodeSlot(packets, other.publicKey), /not signed by the leader/)
  const changed = packets.map((packet, i) => (i === 7 ? packet.with(200, (packet[200] as number) ^ 1) : packet))
  assert.throws(() => decodeSlot(changed, leader.publicKey))
})

test('refuses a block of more than 1024 FEC sets', () => {
  const batches = Array.from({ length: 1025 }, () => new Uint8Array(1))
  assert.throws(() => makeShreds(blockOf(batches)), RangeError)
})

test('caps the reference tick at six bits', () => {
  const { sets } = makeShreds(blockOf([new Uint8Array(1)], { referenceTick: 200 }))
  const shred = decodeShred(sets[0]?.data[0] as Uint8Array)
  assert.equal(shred.flags, 0x3f)
  assert.equal(merkleRoot(shred).length, 32)
})

/** `count` items in random order. */
function pick<T>(items: readonly T[], count: number, random: (below: number) => number): T[] {
  const rest = [...items]
  return Array.from({ length: count }, () => rest.splice(random(rest.length), 1)[0] as T)
}
