import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { test } from 'node:test'
import { type MadeBlock, makeBlock } from '../../../test/support/decoded-blocks.ts'
import { createRandom, isFull, mutate, randomBytesOf, seedOf } from '../../../test/support/property.ts'
import { LEADER, LEADER_ID, VERSION } from '../../../test/support/shreds.ts'
import { createSigningKey, signEd25519 } from '../../solana/crypto/ed25519.ts'
import { buildTree, hashLeaf, writeProof } from '../../solana/shred/merkle.ts'
import { createShredHead, LAYOUTS, scanShred } from '../../solana/shred/shred.ts'
import { createSlotWindow } from '../relay/slot-window.ts'
import { createVerifier } from '../relay/verify.ts'
import { Engine } from './engine.ts'
import type { DataSet, DecodedEvent } from './events.ts'
import { FEC_SET_BYTES } from './shred-cells.ts'

const MUTATIONS = isFull ? 100_000 : 3000
const OPTIONS = { slotsMax: 128, slotsBehindMax: 32, bytesMax: 64 * 1024 * 1024, shredsPerSlotMax: 32_768 }
const STRANGER = createSigningKey(new Uint8Array(32).fill(8))

type Below = (below: number) => number

test(`${MUTATIONS} mutated shreds, of the leader and of a stranger, change nothing that is delivered`, (t) => {
  for (const mode of ['verified by the relay', 'not verified'] as const) {
    const random = createRandom(seedOf(t))
    const verifier = createVerifier({ failuresPerSecond: 1e9, slots: 64 })
    verifier.setLeaders([{ fromSlot: 0, toSlot: Number.MAX_SAFE_INTEGER, identities: [LEADER_ID] }])
    const events: DecodedEvent[] = []
    const engine = new Engine(OPTIONS, (event) => events.push(event))
    const window = createSlotWindow({ backSlots: 64, aheadSlots: 32, version: VERSION })
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
        if (verifier.check(packet, 0, head, 0) !== 'signed') {
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
    for (let mutations = 0; mutations < MUTATIONS; slot++) {
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
      `${mode}: ${dataSets} data sets of ${2 * made.size}, ${refused} refused before, ${JSON.stringify(shreds)}`,
    )
    assert.ok(dataSets > made.size * (mode === 'not verified' ? 0.5 : 1.8))
  }
})

test('a leader that signs wrong coding shreds or headers makes its own FEC set unusable and no other', (t) => {
  const random = createRandom(seedOf(t))
  let recoveryFailed = 0
  for (let run = 0; run < (isFull ? 3000 : 100); run++) {
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

/** The FEC set with some bytes of one shred changed, and signed again by the leader. */
function resigned(set: readonly Uint8Array[], victim: number, random: Below): Uint8Array[] {
  const copies = set.map((packet) => Uint8Array.from(packet))
  const layoutOf = (position: number) => {
    const isResigned = (copies[position]?.[64] ?? 0) >> 4 === (position < 32 ? 0xb : 0x7)
    if (position < 32) return isResigned ? LAYOUTS.resignedData : LAYOUTS.data
    return isResigned ? LAYOUTS.resignedCode : LAYOUTS.code
  }
  const layouts = copies.map((_, position) => layoutOf(position))
  const target = copies[victim] as Uint8Array
  const { chainedRootAt } = layouts[victim] as (typeof layouts)[number]
  // Behind the headers, or in them.
  const from = random(4) === 0 ? 65 : 100
  target.set(randomBytesOf(random, 8), from + random(chainedRootAt - from - 8))
  const tree = buildTree(
    copies.map((packet, position) => hashLeaf(packet, layouts[position] as (typeof layouts)[number])),
  )
  const signature = signEd25519(tree.root, LEADER)
  for (const [position, packet] of copies.entries()) {
    writeProof(packet, layouts[position] as (typeof layouts)[number], tree, position)
    packet.set(signature)
  }
  return copies
}
