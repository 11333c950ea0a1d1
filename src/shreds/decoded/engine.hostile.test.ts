import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { createRandom, mutate, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { type MadeBlock, makeBlock } from '../../../test/support/shreds/decoded-blocks.ts'
import { LEADER, LEADER_ID, VERSION } from '../../../test/support/shreds/rig.ts'
import { createSigningKey, signEd25519 } from '../../solana/crypto/ed25519.ts'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { buildTree, hashLeaf, writeProof } from '../../solana/shred/merkle.ts'
import { encodeShards } from '../../solana/shred/reed-solomon.ts'
import { createShredHead, LAYOUTS, type ShredLayout, scanShred } from '../../solana/shred/shred.ts'
import { parseShredsOptions } from '../options.ts'
import { decodedLimitsOf, slotLimitsOf } from '../relay/slot-limits.ts'
import { createSlotWindow } from '../relay/slot-window.ts'
import { createVerifier } from '../relay/verify.ts'
import { Engine } from './engine.ts'
import type { DataSet, DecodedEvent } from './events.ts'
import { FEC_SET_BYTES } from './shred-cells.ts'

const MUTATIONS = repeatsOf({ short: 3000, full: 100_000 })
const OPTIONS = { slotsMax: 128, slotsBehindMax: 32, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }
const STRANGER = createSigningKey(new Uint8Array(32).fill(8))

type Below = (below: number) => number

test(`${MUTATIONS} mutated shreds, of the leader and of a stranger, change nothing that is delivered`, (t) => {
  for (const [mode, aheadSlots] of [
    ['verified by the relay', 32],
    ['verified by the relay', 64],
    ['not verified', 32],
    ['not verified', 64],
  ] as const) {
    const random = createRandom(seedOf(t))
    const verifier = createVerifier({ failuresPerSecond: 1e9 }, { sha256: createNodeSha256() })
    verifier.setLeaders([{ fromSlot: 0, toSlot: Number.MAX_SAFE_INTEGER, identities: [LEADER_ID] }])
    const events: DecodedEvent[] = []
    const engine = new Engine({ ...OPTIONS, slotsBehindMax: aheadSlots }, (event) => events.push(event))
    const window = createSlotWindow({ backSlots: 2 * aheadSlots, aheadSlots, version: VERSION })
    const head = createShredHead()
    const made = new Map<number, MadeBlock>()
    let slot = 1000
    let refused = 0
    let heldMax = 0

    const push = (packet: Uint8Array): void => {
      if (scanShred(packet, 0, packet.length, head) !== undefined) return
      if (window.classify(head.slot, head.version, 0) !== 'current') return
      let isVerified = false
      if (mode === 'verified by the relay') {
        if (verifier.verify(packet, 0, head, 0) !== 'signed') {
          refused += 1
          return
        }
        isVerified = true
      }
      window.advance(head.slot, head.version, 0)
      engine.push(packet, 0, packet.length, slot, isVerified)
      heldMax = Math.max(heldMax, engine.heldSets)
    }

    // The relay's window starts with a true packet.
    push(makeBlock({ slot, parentSlot: slot - 1, batchBytes: [500] }, random).fecSets.flat()[0] as Uint8Array)
    slot += 1
    for (let mutations = 0; mutations < MUTATIONS / 2; slot++) {
      const block = makeBlock({ slot, parentSlot: slot - 1, batchBytes: [500, 35_000] }, random)
      const fake = makeBlock({ slot, parentSlot: slot - 1, batchBytes: [500, 35_000], leader: STRANGER }, random)
      made.set(slot, block)
      for (const packet of block.fecSets.flat()) {
        // A third of the packets is lost; mutations come before and after the rest.
        const forged = mutate(random(4) === 0 ? (fake.fecSets.flat()[random(64)] as Uint8Array) : packet, random)
        mutations += 1
        const isFirst = random(2) === 0
        if (isFirst) push(forged)
        if (random(3) > 0) push(packet)
        if (!isFirst) push(forged)
      }
    }
    engine.end()
    for (const set of events.filter((event): event is DataSet => event.kind === 'data-set')) {
      const truth = made.get(set.slot)?.dataSets.find(({ from }) => from * 32 === set.startIndex)
      assert.ok(truth, `slot ${set.slot} index ${set.startIndex}`)
      assert.equal(Buffer.compare(set.entriesBytes, truth.bytes), 0)
    }
    assert.ok(heldMax * FEC_SET_BYTES <= OPTIONS.bytesMax)
    const { dataSets, shreds } = engine.counts
    t.diagnostic(
      `${mode}, ${aheadSlots} slots ahead: ${dataSets} data sets of ${2 * made.size}, ${refused} refused before, ${JSON.stringify(shreds)}`,
    )
    assert.ok(dataSets > made.size * (mode === 'not verified' ? 0.5 : 1.8))
  }
})

test('a leader that signs wrong coding shreds or headers makes its own FEC set unusable and no other', (t) => {
  const random = createRandom(seedOf(t))
  let recoveryFailed = 0
  const runs = repeatsOf({ short: 40, full: 500 })
  for (let run = 0; run < runs; run++) {
    const block = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [500, 500] }, random)
    const [first, second] = block.fecSets as [Uint8Array[], Uint8Array[]]
    const victim = random(64)
    const damaged = resigned(first, victim, random)
    const events: DecodedEvent[] = []
    const engine = new Engine(OPTIONS, (event) => events.push(event))
    const arrived = damaged.filter(() => random(3) > 0)
    for (const packet of [...arrived, ...second]) engine.push(packet, 0, packet.length, 0, true)
    // Data shreds that arrive complete a set whose coding shreds are wrong.
    if (victim >= 32) for (const packet of damaged.slice(0, 32)) engine.push(packet, 0, packet.length, 0, true)
    engine.end()
    recoveryFailed += engine.counts.fecSetsRecoveryFailed
    const sets = events.filter((event): event is DataSet => event.kind === 'data-set')
    for (const set of sets) {
      if (set.startIndex !== 0) assert.fail('the second set follows another root')
      if (victim >= 32) assert.equal(Buffer.compare(set.entriesBytes, block.dataSets[0]?.bytes ?? Buffer.of()), 0)
    }
    if (victim >= 32) assert.equal(sets.length, 1, `run ${run}`)
  }
  assert.ok(recoveryFailed > 0)
})

test('a complete FEC set as early as the relay takes it closes no other slot, whatever the length of a slot', () => {
  const random = createRandom(1)
  for (const options of [parseShredsOptions(), parseShredsOptions({ window: { aheadMs: 30_000 } })]) {
    const limits = decodedLimitsOf(options)
    for (const slotMs of [400, 350, 300, 250, 200]) {
      const { aheadSlots } = slotLimitsOf(options, slotMs).window
      const engine = new Engine({ ...OPTIONS, ...limits, silentSlotsMax: 8 }, () => undefined)
      engine.setSlotMs(slotMs)
      const push = (slot: number, atSlot: number): void => {
        const block = makeBlock({ slot, parentSlot: slot - 1, batchBytes: [100] }, random).fecSets.flat()
        for (const packet of block.slice(0, 32)) engine.push(packet, 0, packet.length, atSlot * slotMs * 1e6, true)
      }
      push(1000, 1000)
      push(1000 + aheadSlots, 1000)
      for (let slot = 1001; slot < 1000 + aheadSlots; slot++) push(slot, slot)
      const { late, accepted } = engine.counts.shreds
      assert.deepEqual({ late, accepted }, { late: 0, accepted: 32 * (aheadSlots + 1) }, `${slotMs} ms`)
    }
  }
})

/** A set of the leader with a coding shred that does not match, in an engine that holds the shreds of another set too. */
test('wrong coding shreds are tried once; data shreds that arrive later complete the set, and no other set is touched', () => {
  const [first, second] = [10, 11].map((slot) =>
    makeBlock({ slot, parentSlot: slot - 1, batchBytes: [25_000] }, createRandom(slot)),
  ) as [MadeBlock, MadeBlock]
  const set = signed(first.fecSets[0] ?? [], (packets) => packets[40]?.fill(1, 200, 300))
  const other = second.fecSets[0] ?? []
  const { push, engine, sets } = open()
  push([...set.slice(0, 20), ...set.slice(33, 44)])
  push(other.slice(0, 31))
  push(set.slice(44, 45))
  assert.equal(engine.counts.fecSetsRecoveryFailed, 1)
  push([...set.slice(45, 50), ...set.slice(20, 31), ...other.slice(31, 32), ...set.slice(31, 32)])
  assert.equal(engine.counts.fecSetsRecoveryFailed, 1)
  for (const [slot, block] of [
    [10, first],
    [11, second],
  ] as const) {
    const delivered = sets().find((each) => each.slot === slot)
    assert.equal(Buffer.compare(delivered?.entriesBytes ?? Buffer.of(), block.dataSets[0]?.bytes ?? Buffer.of(1)), 0)
  }
})

test('a rebuilt shred of another slot, index, version, parent or kind, or of a wrong size, makes the set unusable, although the leader signed it', () => {
  const made = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [25_000] }, createRandom(1)).fecSets[0] ?? []
  for (const [field, at, change] of [
    ['slot', 65, 1],
    ['index', 73, 1],
    ['version', 77, 1],
    ['parent', 83, 1],
    ['size', 87, 1],
    ['kind', 64, LAYOUTS.data.variant - LAYOUTS.resignedData.variant],
  ] as const) {
    const set = signed(made, ([, , , , , sixth], encode) => {
      if (sixth !== undefined) sixth[at] = (sixth[at] as number) + change
      encode()
    })
    const { push, engine, sets } = open()
    push(set.filter((_, position) => position !== 5 && position < 33))
    assert.deepEqual([engine.counts.fecSetsRecoveryFailed, sets().length], [1, 0], field)
  }
})

test('a received shred that contradicts its set is refused by name', () => {
  const made = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [25_000] }, createRandom(1)).fecSets[0] ?? []
  for (const at of [77, 83, LAYOUTS.data.chainedRootAt]) {
    const set = signed(made, (packets) => {
      const sixth = packets[5] as Uint8Array
      const isResigned = sixth[64] === LAYOUTS.resignedData.variant
      const field = isResigned && at === LAYOUTS.data.chainedRootAt ? LAYOUTS.resignedData.chainedRootAt : at
      sixth[field] = (sixth[field] as number) + 1
    })
    const { push } = open()
    assert.deepEqual(push(set.slice(4, 6)), ['accepted', 'inconsistent'], `field at ${at}`)
  }
})

test('a forged shred with the signature of a true one, before its leader was known, is not mixed with what is verified later', () => {
  const block = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [25_000] }, createRandom(1))
  const made = block.fecSets[0] ?? []
  const forged = Uint8Array.from(made[0] ?? [])
  forged[200] = (forged[200] as number) ^ 1
  const { push, engine, sets } = open()
  engine.push(forged, 0, forged.length, 0, false)
  push(made.slice(0, 32))
  assert.equal(Buffer.compare(sets()[0]?.entriesBytes ?? Buffer.of(), block.dataSets[0]?.bytes ?? Buffer.of(1)), 0)
  assert.deepEqual([sets().length, sets()[0]?.isVerified], [1, true])
})

test('a packet that breaks a rule of the format is refused, whatever the relay has checked', () => {
  const [packet] = makeBlock({ slot: 10, parentSlot: 9, batchBytes: [500] }, createRandom(1)).fecSets[0] ?? []
  assert.ok(packet !== undefined)
  const changed = (at: number, value: number): Uint8Array => {
    const copy = Uint8Array.from(packet)
    copy[at] = value
    return copy
  }
  const { push, engine } = open()
  const packets = [
    packet.subarray(0, 1202),
    // Variant, high bytes of slot and index, FEC set index, parent, flags and size.
    ...[changed(64, 0), changed(72, 255), changed(74, 128), changed(79, 1), changed(84, 1), changed(85, 0x80)],
    changed(87, 255),
  ]
  assert.deepEqual(new Set(push(packets)), new Set(['malformed']))
  assert.equal(engine.openSlots, 0)
})

test('FEC sets are joined along the chain of roots only', () => {
  const [one, other] = [1, 2].map((seed) =>
    makeBlock({ slot: 10, parentSlot: 9, batchBytes: [50_000] }, createRandom(seed)),
  ) as [MadeBlock, MadeBlock]
  const { push, engine, sets } = open()
  push(one.fecSets[0] ?? [])
  push(other.fecSets[1] ?? [])
  assert.deepEqual([engine.counts.dataSetsUndecodable, sets().length], [0, 0])
  push(other.fecSets[0] ?? [])
  assert.equal(Buffer.compare(sets()[0]?.entriesBytes ?? Buffer.of(), other.dataSets[0]?.bytes ?? Buffer.of(1)), 0)
})

function open() {
  const events: DecodedEvent[] = []
  const engine = new Engine(OPTIONS, (event) => events.push(event))
  return {
    engine,
    push: (packets: readonly Uint8Array[]) => packets.map((packet) => engine.push(packet, 0, packet.length, 0, true)),
    sets: () => events.filter((event): event is DataSet => event.kind === 'data-set'),
  }
}

/** The FEC set with some bytes of one shred changed, and signed again by the leader. */
function resigned(set: readonly Uint8Array[], victim: number, random: Below): Uint8Array[] {
  return signed(set, (packets) => {
    const target = packets[victim] as Uint8Array
    const { chainedRootAt } = layoutOf(target)
    // Behind the headers, or in them.
    const from = random(4) === 0 ? 65 : 100
    target.set(randomBytesOf(random, 8), from + random(chainedRootAt - from - 8))
  })
}

/** A changed copy of the FEC set with a valid tree and signature of the leader. `encode` makes the coding shreds match the data shreds. */
function signed(set: readonly Uint8Array[], change: (packets: Uint8Array[], encode: () => void) => void): Uint8Array[] {
  const packets = set.map((packet) => Uint8Array.from(packet))
  const layouts = packets.map(layoutOf)
  const shardOf = (packet: Uint8Array, position: number): Uint8Array => {
    const { erasureFrom, chainedRootAt } = layouts[position] as ShredLayout
    return packet.subarray(erasureFrom, chainedRootAt)
  }
  change(packets, () => {
    const code = encodeShards(packets.slice(0, 32).map(shardOf))
    for (const [i, shard] of code.entries()) shardOf(packets[32 + i] as Uint8Array, 32 + i).set(shard)
  })
  const tree = buildTree(packets.map((packet, position) => hashLeaf(packet, layouts[position] as ShredLayout)))
  const signature = signEd25519(tree.root, LEADER)
  for (const [position, packet] of packets.entries()) {
    writeProof(packet, layouts[position] as ShredLayout, tree, position)
    packet.set(signature)
  }
  return packets
}

function layoutOf(packet: Uint8Array): ShredLayout {
  return Object.values(LAYOUTS).find(({ variant }) => variant === packet[64]) as ShredLayout
}
