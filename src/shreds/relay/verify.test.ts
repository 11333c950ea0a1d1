import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { brokenRule, decodeShred, merkleRoot } from '../../../test/support/shreds/decoder.ts'
import { blockPackets, LEADER_ID } from '../../../test/support/shreds/rig.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createSigningKey } from '../../solana/crypto/ed25519.ts'
import { createNodeSha256 } from '../../solana/crypto/node-sha256.ts'
import { createFecSetProofs, rootOfPacket } from '../../solana/shred/fec-set-proofs.ts'
import { createShredHead, scanShred } from '../../solana/shred/shred.ts'
import { createSignatureMemory, openSignatureReader, openSignatureSubmitter } from './signature-ring.ts'
import { createVerifier, type Verdict, type Verifier } from './verify.ts'

const MALLORY = createSigningKey(new Uint8Array(32).fill(66))

function check(verifier: Verifier, packet: Uint8Array, nowMs = 0): Verdict {
  const head = createShredHead()
  assert.equal(scanShred(packet, 0, packet.length, head), undefined)
  return verifier.verify(packet, 0, head, nowMs)
}

function newVerifier(failuresPerSecond = 1000): Verifier {
  const verifier = createVerifier({ failuresPerSecond }, { sha256: createNodeSha256() })
  verifier.setLeaders([{ fromSlot: 0, toSlot: 1000, identities: [LEADER_ID] }])
  return verifier
}

test('accepts every shred of a signed FEC set in any order; refuses another leader, slot or signature', () => {
  const verifier = newVerifier()
  const packets = blockPackets(10, { sets: 2 })
  for (const packet of packets.toReversed()) assert.equal(check(verifier, packet), 'signed')
  for (const packet of blockPackets(10, { leader: MALLORY })) assert.equal(check(verifier, packet), 'forged')
  const moved = Uint8Array.from(packets[0] as Uint8Array)
  moved[65] = 11
  assert.equal(check(verifier, moved), 'forged')
})

test('does not check a slot without a known leader; follows a schedule by slots', () => {
  const verifier = createVerifier({ failuresPerSecond: 1000 }, { sha256: createNodeSha256() })
  const [packet] = blockPackets(10) as [Uint8Array]
  assert.equal(check(verifier, packet), 'unchecked')
  const mallory = encodeBase58(MALLORY.publicKey)
  // Slots 8 to 11 belong to the leader, 12 and 13 to Mallory, 14 and 15 have no known leader.
  const leaderOfSlot = Uint32Array.of(1, 1, 1, 1, 2, 2, 0, 0)
  verifier.setLeaders([{ fromSlot: 8, toSlot: 16, identities: [LEADER_ID, mallory], leaderOfSlot }])
  assert.equal(check(verifier, packet), 'signed')
  assert.equal(check(verifier, blockPackets(12)[0] as Uint8Array), 'forged')
  assert.equal(check(verifier, blockPackets(12, { leader: MALLORY })[0] as Uint8Array), 'signed')
  assert.equal(check(verifier, blockPackets(14)[0] as Uint8Array), 'unchecked')
  assert.equal(check(verifier, blockPackets(16)[0] as Uint8Array), 'unchecked')
})

test('a damaged shred that arrives first does not affect its FEC set', () => {
  const verifier = newVerifier()
  const packets = blockPackets(10)
  const damaged = Uint8Array.from(packets[3] as Uint8Array)
  damaged[500] = (damaged[500] as number) ^ 1
  assert.equal(check(verifier, damaged), 'forged')
  for (const packet of packets) assert.equal(check(verifier, packet), 'signed')
  assert.equal(check(verifier, damaged), 'forged')
})

test('limits failed checks per second; signed FEC sets are not affected', () => {
  const verifier = newVerifier(5)
  const [known, ...others] = blockPackets(10) as [Uint8Array, ...Uint8Array[]]
  assert.equal(check(verifier, known), 'signed')
  const junk = blockPackets(11, { leader: MALLORY })
  const verdicts = junk.map((packet) => check(verifier, packet, 0))
  assert.deepEqual([...new Set(verdicts)], ['forged', 'too-many-forged'])
  assert.equal(verdicts.filter((verdict) => verdict === 'forged').length, 5)
  for (const packet of others) assert.equal(check(verifier, packet, 0), 'signed')
  assert.equal(check(verifier, blockPackets(12)[0] as Uint8Array, 0), 'too-many-forged')
  assert.equal(check(verifier, blockPackets(12)[0] as Uint8Array, 300), 'signed')
})

test('with part of the tree known, detects any changed byte covered by the signature, compared with a second implementation', (t) => {
  const random = createRandom(seedOf(t))
  const packets = blockPackets(10, { sets: 2 })
  const head = createShredHead()
  for (const set of [packets.slice(0, 64), packets.slice(64)]) {
    const [first] = set as [Uint8Array]
    const root = merkleRoot(decodeShred(first))
    scanShred(first, 0, first.length, head)
    assert.deepEqual(Buffer.from(rootOfPacket(first, 0, head)), root)
    const proofs = createFecSetProofs(root)
    const runs = repeatsOf({ short: 6_000, full: 200_000 })
    for (let run = 0; run < runs; run++) {
      const packet = Uint8Array.from(set[random(64)] as Uint8Array)
      const isChanged = random(3) > 0
      // Not the retransmitter's signature, which is outside the tree.
      const at = 64 + random(packet.length - 64 - 64 - 1)
      if (isChanged) packet[at] = (packet[at] as number) ^ (1 + random(255))
      if (brokenRule(packet) !== undefined) continue
      scanShred(packet, 0, packet.length, head)
      const expected = Buffer.compare(merkleRoot(decodeShred(packet)), root) === 0
      assert.equal(proofs.isUnder(packet, 0, head), expected, `byte ${isChanged ? at : 'none'}`)
    }
  }
})

test('a set that is checked here while its check waits in the other thread is decided once', () => {
  const memory = createSignatureMemory()
  const reader = openSignatureReader(memory)
  reader.setAlive(true)
  const ring = openSignatureSubmitter(memory)
  const verifier = createVerifier({ failuresPerSecond: 1000 }, { sha256: createNodeSha256(), ring })
  verifier.setLeaders([{ fromSlot: 0, toSlot: 1000, identities: [LEADER_ID] }])
  const takeDecided = () => {
    const decided: number[] = []
    for (let set = verifier.takeDecided(); set >= 0; set = verifier.takeDecided()) decided.push(set)
    return decided
  }
  for (const [slot, leader, isSigned] of [
    [10, undefined, true],
    [11, MALLORY, false],
  ] as const) {
    const packets = blockPackets(slot, leader === undefined ? {} : { leader })
    assert.equal(check(verifier, packets[0] as Uint8Array), 'pending')
    const set = verifier.pendingSet()
    assert.equal(verifier.pending(), 1)
    verifier.decideHere(set)
    assert.deepEqual([verifier.pending(), takeDecided(), verifier.isSigned(set)], [0, [set], isSigned])
    // The verdict of the other thread comes later.
    assert.equal(
      reader.read(
        () => isSigned,
        () => {},
      ),
      1,
    )
    verifier.takeVerdicts(0)
    assert.deepEqual([verifier.pending(), takeDecided(), verifier.isSigned(set)], [0, [], isSigned])
  }
  // Later sets are pending as before.
  assert.equal(check(verifier, blockPackets(12)[0] as Uint8Array), 'pending')
  assert.equal(check(verifier, blockPackets(12)[1] as Uint8Array), 'pending')
  assert.equal(verifier.pending(), 1)
})
