import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, seedOf } from '../../../test/support/process/property.ts'
import { blockPackets, LEADER, LEADER_ID, VERSION } from '../../../test/support/shreds/rig.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSigningKey } from '../../solana/crypto/ed25519.ts'
import { encodeBlockMarker, encodeOpaqueMarker } from '../../solana/shred/block-marker.ts'
import { encodeEntries } from '../../solana/shred/entry.ts'
import { makeShreds } from '../../solana/shred/make.ts'
import { challengePacket } from '../destinations/challenge.ts'
import { createListener } from './listen.ts'

const LEADERS = [{ fromSlot: 0, toSlot: 10_000, identities: [LEADER_ID] }]

/** A block of encoded entries, 700 per batch. */
function entryBlock(slot: number, batches = 1) {
  const bytes = Array.from({ length: batches }, (_, at) =>
    encodeEntries(
      Array.from({ length: 700 }, (_, i) => ({
        numHashes: BigInt(i),
        hash: new Uint8Array(32).fill(slot + at + i),
        transactions: [],
      })),
    ),
  )
  const { sets } = makeShreds({
    slot,
    parentSlot: slot - 2,
    version: VERSION,
    batches: bytes,
    chainedRoot: new Uint8Array(32),
    leader: LEADER,
  })
  return { bytes: Buffer.concat(bytes), packets: sets.flatMap(({ data, code }) => [...data, ...code]) }
}

test('rebuilds the block from any half of each FEC set, in any order', (t) => {
  const random = createRandom(seedOf(t))
  const { bytes, packets } = entryBlock(100, 2)
  const blocks: Buffer[] = []
  const listener = createListener({
    slotMs: 400,
    leaders: LEADERS,
    onBlock: (_, batches) => void blocks.push(Buffer.concat(batches)),
  })
  const kept: Uint8Array[] = []
  for (let at = 0; at < packets.length; at += 64) {
    const set = packets.slice(at, at + 64)
    while (set.length > 32) set.splice(random(set.length), 1)
    kept.push(...set)
  }
  while (kept.length > 0) listener.receive(kept.splice(random(kept.length), 1)[0] as Uint8Array, 5)
  const { lines, totals } = listener.end()
  assert.deepEqual(blocks, [bytes])
  const [line] = lines
  assert.deepEqual(
    [line?.slot, line?.parentSlot, line?.isComplete, line?.signature, line?.block?.entries, line?.block?.undecodable],
    [100, 98, true, 'good', 1400, 0],
  )
  const data = packets.length / 2
  assert.equal((line?.data ?? 0) + (line?.recovered ?? 0), data)
  assert.deepEqual([totals.missing, totals.slotsComplete], [0, 1])
})

test('reports gaps by index and counts duplicates and late shreds', () => {
  const { packets } = entryBlock(100)
  const listener = createListener({ slotMs: 400 })
  const isLost = (packet: Uint8Array) => {
    const index = Buffer.from(packet).readUInt32LE(73)
    return (packet[64] as number) >> 4 < 8 || (index >= 3 && index <= 7) || index === 33
  }
  for (const packet of packets) if (!isLost(packet)) listener.receive(packet, 0)
  listener.receive(packets[0] as Uint8Array, 0)
  const { lines, totals } = listener.end()
  assert.deepEqual(lines[0]?.gaps, [
    [3, 7],
    [33, 33],
  ])
  assert.deepEqual([lines[0]?.isComplete, lines[0]?.missing, lines[0]?.duplicates], [false, 6, 1])
  assert.deepEqual([totals.duplicates, totals.missing, totals.slotsComplete], [1, 6, 0])
  listener.receive(packets[0] as Uint8Array, 0)
  assert.equal(listener.totals().late, 1)
})

test('counts damaged, forged and malformed packets separately; the block is still rebuilt', () => {
  const { bytes, packets } = entryBlock(100)
  const blocks: Buffer[] = []
  const listener = createListener({
    slotMs: 400,
    leaders: LEADERS,
    onBlock: (_, batches) => void blocks.push(Buffer.concat(batches)),
  })
  const damaged = Uint8Array.from(packets[2] as Uint8Array)
  damaged[300] = (damaged[300] as number) ^ 255
  const forged = blockPackets(100, { leader: createSigningKey(new Uint8Array(32).fill(9)) })
  for (const packet of [damaged, ...forged.slice(0, 40), new Uint8Array(1203), new Uint8Array(3)])
    listener.receive(packet, 0)
  for (const packet of packets) listener.receive(packet, 0)
  const { lines, totals } = listener.end()
  assert.deepEqual(blocks, [bytes])
  assert.deepEqual([lines[0]?.signature, lines[0]?.inconsistent, lines[0]?.isComplete], ['good', 41, true])
  assert.deepEqual([totals.malformed, totals.faults], [2, { variant: 1, 'too-short': 1 }])
})

test('the signature is unknown without a leader and bad with another leader', () => {
  for (const [identities, expected] of [
    [[], 'unknown'],
    [['no key at all'], 'unknown'],
    [[encodeBase58(createSigningKey(new Uint8Array(32).fill(9)).publicKey)], 'bad'],
  ] as const) {
    const listener = createListener({ slotMs: 400, leaders: [{ fromSlot: 0, toSlot: 1000, identities }] })
    for (const packet of blockPackets(5)) listener.receive(packet, 0)
    assert.equal(listener.end().lines[0]?.signature, expected, identities.join())
  }
})

test('measures latency against the earliest slot plus slotMs per slot, and counts missing slots', () => {
  const listener = createListener({ slotMs: 400 })
  const arrivals = [
    [10, 1000],
    [11, 1400],
    [12, 1950],
    [15, 3000],
  ] as const
  for (const [slot, atMs] of arrivals) for (const packet of blockPackets(slot)) listener.receive(packet, atMs)
  const { lines, totals } = listener.end()
  assert.deepEqual(
    lines.map(({ latencyMs }) => Math.round(latencyMs)),
    [0, 0, 150, 0],
  )
  assert.deepEqual([totals.slots, totals.slotsMissing], [4, 2])
})

test('returns a challenge unchanged and does not count it as a shred', () => {
  const listener = createListener({ slotMs: 400 })
  const challenge = challengePacket('ab'.repeat(16))
  assert.equal(listener.receive(challenge, 0), challenge)
  assert.deepEqual([listener.totals().challenges, listener.totals().packets], [1, 0])
})

test('reports a complete slot at once and an incomplete one when newer slots have arrived', () => {
  const listener = createListener({ slotMs: 400 })
  for (const packet of blockPackets(100)) listener.receive(packet, 0)
  for (const packet of blockPackets(101).slice(0, 20)) listener.receive(packet, 0)
  assert.deepEqual(
    listener.lines().map(({ slot }) => slot),
    [100],
  )
  for (const packet of blockPackets(110).slice(0, 1)) listener.receive(packet, 0)
  assert.deepEqual(
    listener.lines().map(({ slot, isComplete }) => [slot, isComplete]),
    [[101, false]],
  )
})

test('holds at most slotsMax slots', () => {
  const listener = createListener({ slotMs: 400, slotsMax: 3 })
  for (let slot = 100; slot < 110; slot++) listener.receive(blockPackets(slot)[0] as Uint8Array, 0)
  assert.equal(listener.end().lines.length, 10)
})

test('a parent update voids the batches before it; markers are listed and are no decode errors', () => {
  const entriesOf = (byte: number, count: number) =>
    encodeEntries(
      Array.from({ length: count }, () => ({
        numHashes: 0n,
        hash: new Uint8Array(32).fill(byte),
        transactions: [],
      })),
    )
  const id = (byte: number) => new Uint8Array(32).fill(byte)
  const kept = entriesOf(3, 5)
  const batches = [
    encodeBlockMarker({ variant: 'block-header', parentSlot: 98, parentBlockId: id(8) }),
    entriesOf(1, 7),
    new Uint8Array(100).fill(0xff),
    encodeBlockMarker({ variant: 'update-parent', parentSlot: 95, parentBlockId: id(5) }),
    kept,
    encodeOpaqueMarker({ version: 1, kind: 200, body: Uint8Array.of(1, 2, 3) }),
    encodeOpaqueMarker({ version: 9, kind: undefined, body: Uint8Array.of(4) }),
    encodeBlockMarker({
      variant: 'block-footer',
      bankHash: id(6),
      producerTimeNanos: 2n ** 63n,
      userAgent: 'agave/4.3',
    }),
  ]
  const blocks: Buffer[] = []
  const listener = createListener({
    slotMs: 400,
    onBlock: (_, rebuilt) => void blocks.push(Buffer.concat(rebuilt)),
  })
  const shreds = { slot: 100, parentSlot: 98, version: VERSION, chainedRoot: new Uint8Array(32), leader: LEADER }
  for (const { data } of makeShreds({ ...shreds, batches }).sets) for (const packet of data) listener.receive(packet, 0)
  const [line] = listener.end().lines
  assert.deepEqual(blocks, [Buffer.from(kept)])
  const { parentSlot, entries, undecodable, markers, blockhash } = line?.block ?? {}
  assert.deepEqual([line?.parentSlot, parentSlot], [95, 95])
  assert.deepEqual([entries, undecodable, markers, blockhash], [5, 0, 5, encodeBase58(id(3))])
  assert.deepEqual(line?.block?.markersListed, [
    { variant: 'block-header', version: 1, kind: 1, shred: 0, parentSlot: 98, parentBlockId: encodeBase58(id(8)) },
    { variant: 'update-parent', version: 1, kind: 2, shred: 96, parentSlot: 95, parentBlockId: encodeBase58(id(5)) },
    { variant: 'unknown', version: 1, kind: 200, shred: 160, body: '010203' },
    { variant: 'unknown', version: 9, kind: undefined, shred: 192, body: '04' },
    {
      variant: 'block-footer',
      version: 1,
      kind: 0,
      shred: 224,
      bankHash: encodeBase58(id(6)),
      producerTimeNanos: '9223372036854775808',
      userAgent: 'agave/4.3',
    },
  ])
})

test('after a parent update that cannot be read the parent is unknown, and the batches before it are void', () => {
  const entries = encodeEntries([{ numHashes: 0n, hash: new Uint8Array(32).fill(1), transactions: [] }])
  const batches = [entries, encodeOpaqueMarker({ version: 1, kind: 2, body: new Uint8Array(7) })]
  const listener = createListener({ slotMs: 400 })
  const shreds = { slot: 100, parentSlot: 98, version: VERSION, chainedRoot: new Uint8Array(32), leader: LEADER }
  for (const { data } of makeShreds({ ...shreds, batches }).sets) for (const packet of data) listener.receive(packet, 0)
  const [line] = listener.end().lines
  assert.deepEqual(
    [line?.isComplete, line?.parentSlot, line?.block?.entries, line?.block?.blockhash],
    [true, undefined, 0, undefined],
  )
})

test('lists at most 64 markers of a slot and counts all', () => {
  const marker = encodeOpaqueMarker({ version: 1, kind: 9, body: new Uint8Array(0) })
  const listener = createListener({ slotMs: 400 })
  const shreds = { slot: 100, parentSlot: 98, version: VERSION, chainedRoot: new Uint8Array(32), leader: LEADER }
  for (const { data } of makeShreds({ ...shreds, batches: Array.from({ length: 70 }, () => marker) }).sets)
    for (const packet of data) listener.receive(packet, 0)
  const [line] = listener.end().lines
  assert.deepEqual([line?.block?.markers, line?.block?.markersListed.length], [70, 64])
})
