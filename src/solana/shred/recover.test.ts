import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, randomBytesOf, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createSigningKey, importPublicKey } from '../crypto/ed25519.ts'
import { makeShreds } from './make.ts'
import { isSignedBy, rootOf } from './merkle.ts'
import { recoverFecSet } from './recover.ts'
import { parseShred, type Shred } from './shred.ts'

const leader = createSigningKey(new Uint8Array(32).fill(3))

/** FEC sets as lists of 64 packets; the last is of the resigned kind. */
function makeSets(payload: Uint8Array) {
  const { sets } = makeShreds({
    slot: 77,
    parentSlot: 76,
    version: 9,
    batches: [payload],
    chainedRoot: new Uint8Array(32).fill(1),
    leader,
  })
  return sets.map(({ data, code }) => [...data, ...code])
}

function parsed(packet: Uint8Array): Shred {
  const result = parseShred(packet)
  assert.ok(result.ok, result.ok ? '' : result.reason)
  return result.shred
}

test('recovers all 64 shreds byte for byte from any 32, with the root that the leader signed', (t) => {
  const random = createRandom(seedOf(t))
  const sets = makeSets(randomBytesOf(random, 50_000))
  assert.equal(sets.length, 2)
  const key = importPublicKey(leader.publicKey)
  assert.ok(key !== undefined)
  const runs = repeatsOf({ short: 10, full: 300 })
  for (let run = 0; run < runs; run++) {
    for (const packets of sets) {
      const kept = [...packets]
      const lost = 1 + random(32)
      for (let i = 0; i < lost; i++) kept.splice(random(kept.length), 1)
      const shreds = kept.map(parsed)
      const result = recoverFecSet(shreds)
      assert.ok(result.ok)
      assert.deepEqual([...result.data.map((shred) => shred.bytes), ...result.code], packets)
      assert.equal(isSignedBy(shreds[0] as Shred, result.root, key), true)
      for (const shred of result.data) assert.deepEqual(rootOf(shred), result.root)
    }
  }
})

test('recovered shreds of the resigned kind carry the retransmitter signature of a received one', () => {
  const packets = (makeSets(new Uint8Array(100))[0] as Uint8Array[]).map((packet) => {
    const resigned = Uint8Array.from(packet)
    resigned.fill(0xab, resigned.length - 64)
    return resigned
  })
  const result = recoverFecSet(packets.slice(20, 60).map(parsed))
  assert.ok(result.ok)
  assert.deepEqual([...result.data.map((shred) => shred.bytes), ...result.code], packets)
})

test('distinguishes too few shreds, shreds of two FEC sets and wrong bytes', () => {
  const [first, second] = makeSets(new Uint8Array(50_000).fill(8)) as [Uint8Array[], Uint8Array[]]
  const shreds = first.map(parsed)
  assert.deepEqual(recoverFecSet([]), { ok: false, reason: 'too-few' })
  assert.deepEqual(recoverFecSet(shreds.slice(0, 31)), { ok: false, reason: 'too-few' })
  assert.deepEqual(recoverFecSet([...shreds.slice(0, 31), shreds[0] as Shred]), { ok: false, reason: 'too-few' })
  assert.deepEqual(recoverFecSet([...shreds.slice(0, 40), parsed(second[41] as Uint8Array)]), {
    ok: false,
    reason: 'inconsistent',
  })

  const forged = first.map((packet, i) => (i === 3 ? packet.with(500, (packet[500] as number) ^ 1) : packet))
  assert.deepEqual(recoverFecSet(forged.slice(0, 32).map(parsed)), { ok: false, reason: 'root-mismatch' })
  assert.deepEqual(recoverFecSet(forged.map(parsed)), { ok: false, reason: 'root-mismatch' })
  const otherSignature = first.map((packet, i) => (i === 3 ? packet.with(5, (packet[5] as number) ^ 1) : packet))
  assert.deepEqual(recoverFecSet(otherSignature.map(parsed)), { ok: false, reason: 'inconsistent' })
})

test('isSignedBy verifies the leader signature over the root', () => {
  const [packet] = makeSets(new Uint8Array(10))[0] as [Uint8Array]
  const shred = parsed(packet)
  assert.equal(isSignedBy(shred, rootOf(shred), leader.publicKey), true)
  assert.equal(isSignedBy(shred, rootOf(shred), createSigningKey(new Uint8Array(32).fill(4)).publicKey), false)
  for (const at of [64 + 9, 300, 1020, 1138]) {
    const changed = parseShred(packet.with(at, (packet[at] as number) ^ 1))
    assert.ok(!changed.ok || !isSignedBy(changed.shred, rootOf(changed.shred), leader.publicKey), `byte ${at}`)
  }
  // The retransmitter's signature is outside the tree.
  const resigned = parsed(packet.with(1150, 1))
  assert.equal(isSignedBy(resigned, rootOf(resigned), leader.publicKey), true)
})
