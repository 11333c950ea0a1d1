import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../../test/support/process/property.ts'
import { blockPackets, LEADER, LEADER_ID, VERSION } from '../../../../test/support/shreds/rig.ts'
import { createTestLanes } from '../../../../test/support/shreds/sha256-lanes.ts'
import { BATCH_PACKETS, CELL_BYTES, type PacketArena } from '../../../platform/udp/port.ts'
import { createSigningKey, importPublicKey, verifyEd25519 } from '../../../solana/crypto/ed25519.ts'
import { createNodeSha256 } from '../../../solana/crypto/node-sha256.ts'
import { CHECK_LATE_MS, LATE_PAUSE_MS } from '../pending-checks.ts'
import {
  CHECKS_MAX,
  createSignatureMemory,
  openSignatureReader,
  openSignatureSubmitter,
  type SignatureReader,
} from '../signature-ring.ts'
import { createVerifier } from '../verify.ts'
import type { RelayedBatch } from './relayed-batch.ts'
import { createSelector } from './select.ts'

const LIMITS = { shredsPerSlotMax: 32_768, window: { backSlots: 64, aheadSlots: 32 } }
const SCHEDULE_END = 10_000
const SCHEDULE = [{ fromSlot: 0, toSlot: SCHEDULE_END, identities: [LEADER_ID] }]
const MALLORY = createSigningKey(new Uint8Array(32).fill(66))

function createArena(spare: number): PacketArena {
  const cells = BATCH_PACKETS + spare
  const buffer = new ArrayBuffer(cells * CELL_BYTES)
  return {
    bytes: new Uint8Array(buffer),
    words: new Int32Array(buffer),
    lengths: new Int32Array(cells),
    sources: new Int8Array(cells),
    arrivals: new Float64Array(cells),
    timeMicros: new Float64Array(1),
  }
}

/** A selector whose checking thread is the test. */
function start(
  spare = 128,
  settings: {
    version?: number | undefined
    lanes?: ReturnType<typeof createTestLanes> | undefined
    failuresPerSecond?: number
  } = {},
) {
  const { failuresPerSecond = 100_000 } = settings
  const version = 'version' in settings ? settings.version : VERSION
  const memory = createSignatureMemory()
  const arena = createArena(spare)
  const verifier = createVerifier(
    { failuresPerSecond },
    { sha256: createNodeSha256(), lanes: settings.lanes, ring: openSignatureSubmitter(memory) },
  )
  verifier.setLeaders(SCHEDULE)
  const options = { version, signatures: 'auto', limits: LIMITS, limitsMax: LIMITS, sources: 1 } as const
  const selector = createSelector(arena, options, verifier)
  const sent: string[] = []
  const note = ({ order, data, coding }: RelayedBatch): void => {
    for (const cell of order.subarray(0, data + coding))
      sent.push(textOf(arena.bytes.subarray(cell * CELL_BYTES), arena.lengths[cell] as number))
  }
  return {
    sent,
    selector,
    verifier,
    openReader: () => openSignatureReader(memory),
    receive(packets: readonly Uint8Array[], nowMs: number, source = 0) {
      packets.forEach((packet, cell) => {
        arena.sources[cell] = source
        arena.bytes.set(packet, cell * CELL_BYTES)
        arena.lengths[cell] = packet.length
      })
      note(selector.select(packets.length, nowMs))
    },
    release(nowMs: number) {
      for (let batch = selector.release(nowMs); batch !== undefined; batch = selector.release(nowMs)) note(batch)
    },
  }
}

const textOf = (bytes: Uint8Array, length: number): string => Buffer.from(bytes.subarray(0, length)).toString('latin1')

const slotOf = (text: string): number => Number(Buffer.from(text, 'latin1').readBigUInt64LE(65))

/** Without the texts in an error: they are packets. */
function isSame(a: readonly string[], b: readonly string[]): boolean {
  const [sortedA, sortedB] = [a.toSorted(), b.toSorted()]
  return a.length === b.length && sortedA.every((text, at) => text === sortedB[at])
}

function check(reader: SignatureReader): number {
  return reader.read(
    (root, signature, key) =>
      verifyEd25519(root, signature, importPublicKey(key) as NonNullable<ReturnType<typeof importPublicKey>>),
    () => {},
  )
}

describe('with a checking thread', () => {
  test('the first shreds of a set wait for its verdict, those of a signed set pass at once', () => {
    const { sent, receive, release, openReader } = start()
    const reader = openReader()
    reader.setAlive(true)
    const [first, second] = [blockPackets(500), blockPackets(501)]
    receive(first.slice(0, 2), 0)
    assert.equal(check(reader), 1, 'one check for both')
    release(0)
    assert.equal(sent.length, 2)
    // The check of the second set is not made, and only its shreds wait.
    receive([second[0], ...first.slice(2, 10)] as Uint8Array[], 1)
    release(1)
    assert.equal(sent.length, 10)
    check(reader)
    release(2)
    assert.equal(sent.length, 11)
  })

  test('packets of an unknown leader before the first signed one make none of its chain late or too early', () => {
    for (const [version, slots, other] of [
      [VERSION, [20_000], VERSION],
      [VERSION, [20_000, 20_020, 20_040], VERSION],
      [undefined, [10_001], VERSION],
      [undefined, [520], VERSION + 1],
    ] as const) {
      const { sent, receive, release, openReader, selector, verifier } = start(128, { version })
      const reader = openReader()
      reader.setAlive(true)
      // The schedule is known a moment after the start.
      if (other !== VERSION) verifier.setLeaders([])
      receive(
        slots.map((slot) => blockPackets(slot, { version: other })[0] as Uint8Array),
        0,
      )
      verifier.setLeaders(SCHEDULE)
      assert.equal(sent.length, slots.length)
      receive([...blockPackets(500).slice(0, 8), ...blockPackets(501).slice(0, 8)], 1)
      check(reader)
      release(1)
      assert.equal(sent.length, slots.length + 16, slots.join())
      assert.deepEqual([selector.window.newest(), selector.window.version()], [501, VERSION])
      // From now on they are not current.
      receive([blockPackets(20_060, { version: other })[0] as Uint8Array], 2)
      receive([blockPackets(600)[0] as Uint8Array], 2)
      check(reader)
      release(2)
      assert.equal(sent.length, slots.length + 16)
    }
  })

  test('without a schedule packets far from the first one are not current', () => {
    const { sent, receive, selector, verifier } = start()
    verifier.setLeaders([])
    receive(
      [500, 501, 5000, 400].map((slot) => blockPackets(slot)[0] as Uint8Array),
      0,
    )
    const { ahead, late } = selector.takeCounts().counts.dropped
    assert.deepEqual([sent.length, ahead, late], [2, 1, 1])
  })

  test('a signed packet of another version than the configured one is not the first one', () => {
    const { sent, receive, release, openReader, selector } = start()
    const reader = openReader()
    reader.setAlive(true)
    receive(blockPackets(500, { version: VERSION + 1 }).slice(0, 2), 0)
    assert.equal(check(reader), 0)
    release(0)
    assert.deepEqual([sent.length, selector.takeCounts().counts.dropped.version], [0, 2])
  })

  test('a thread that sets no verdict is replaced by the relay after CHECK_LATE_MS, until it has set one and the pause is over', () => {
    const { sent, receive, release, openReader, selector } = start()
    const reader = openReader()
    reader.setAlive(true)
    receive(blockPackets(500).slice(0, 3), 0)
    release(CHECK_LATE_MS - 1)
    assert.equal(sent.length, 0)
    release(CHECK_LATE_MS)
    assert.equal(sent.length, 3)
    // The next set does not wait any more.
    receive(blockPackets(501).slice(0, 3), CHECK_LATE_MS + 1)
    assert.equal(sent.length, 6)
    assert.equal(selector.takeCounts().counts.checkedHere, 2)
    // A verdict that comes late changes nothing, and the thread is used again after a pause.
    check(reader)
    release(CHECK_LATE_MS + 2)
    receive(blockPackets(502).slice(0, 3), CHECK_LATE_MS + LATE_PAUSE_MS - 1)
    assert.equal(sent.length, 9)
    assert.equal(selector.takeCounts().counts.checkedHere, 1)
    receive(blockPackets(503).slice(0, 3), CHECK_LATE_MS + LATE_PAUSE_MS)
    assert.equal(sent.length, 9)
    check(reader)
    release(CHECK_LATE_MS + LATE_PAUSE_MS)
    assert.equal(sent.length, 12)
    assert.equal(selector.takeCounts().counts.checkedHere, 0)
  })

  test('a verdict that contradicts that of the relay and comes late changes nothing', () => {
    for (const [leader, verdict] of [
      [LEADER, false],
      [MALLORY, true],
    ] as const) {
      const { sent, receive, release, openReader, selector } = start()
      const reader = openReader()
      reader.setAlive(true)
      const packets = blockPackets(500, { leader })
      receive(packets.slice(0, 3), 0)
      release(CHECK_LATE_MS)
      const relayed = leader === LEADER ? 3 : 0
      assert.equal(sent.length, relayed)
      reader.read(
        () => verdict,
        () => {},
      )
      release(CHECK_LATE_MS + 1)
      receive(packets.slice(3, 6), CHECK_LATE_MS + 1)
      assert.equal(sent.length, 2 * relayed)
      const { forged } = selector.takeCounts().counts.dropped
      assert.equal(forged, 6 - 2 * relayed)
    }
  })

  test('of a thread whose verdicts are always late, about one set a second waits', () => {
    const { receive, release, openReader, selector } = start()
    const reader = openReader()
    reader.setAlive(true)
    const setMs = 10
    let waited = 0
    for (let set = 0; set < 220; set++) {
      const nowMs = set * setMs
      receive([blockPackets(500 + Math.floor(set / 2), { sets: 2 })[(set % 2) * 64] as Uint8Array], nowMs)
      if (selector.isHolding()) waited += 1
      release(nowMs + CHECK_LATE_MS)
      assert.ok(!selector.isHolding())
      check(reader)
      release(nowMs + CHECK_LATE_MS + 1)
    }
    assert.equal(waited, 3)
    assert.equal(selector.takeCounts().counts.checkedHere, 220)
  })

  test('a thread that is known to be dead is not waited for, and no forged set passes', () => {
    const { sent, receive, release, openReader } = start()
    const reader = openReader()
    reader.setAlive(true)
    receive([...blockPackets(500).slice(0, 2), ...blockPackets(501, { leader: MALLORY }).slice(0, 2)], 0)
    reader.setAlive(false)
    release(0)
    assert.equal(sent.length, 2)
    receive([...blockPackets(502).slice(0, 2), ...blockPackets(503, { leader: MALLORY }).slice(0, 2)], 0)
    assert.equal(sent.length, 4)
  })

  test('packets are hashed together that will be verified: no duplicates, and none whose leader is not known', () => {
    const lanes = createTestLanes()
    const { sent, receive, release, openReader, verifier } = start(128, { lanes })
    const reader = openReader()
    reader.setAlive(true)
    const packets = blockPackets(500)
    receive(packets.slice(0, 10), 0)
    assert.deepEqual(lanes.runs.splice(0), [8], 'two are hashed alone')
    check(reader)
    release(0)
    receive([...packets.slice(0, 10), ...packets.slice(20, 24)], 1)
    assert.deepEqual(lanes.runs.splice(0), [4])
    verifier.setLeaders([])
    receive(packets.slice(30, 34), 2)
    assert.deepEqual(lanes.runs, [])
    verifier.setLeaders(SCHEDULE)
    receive(packets.slice(34, 38), 3)
    assert.deepEqual([lanes.runs, sent.length], [[4], 22])
  })

  test('packets that are dropped without a check cost no hashes', () => {
    const lanes = createTestLanes()
    const { receive, release, openReader, selector } = start(128, { lanes, failuresPerSecond: 4 })
    const reader = openReader()
    reader.setAlive(true)
    const packets = blockPackets(500)
    receive(packets.slice(0, 8), 0)
    check(reader)
    release(0)
    assert.deepEqual(lanes.runs.splice(0), [4], 'as many as may be forged')
    const dropped = () => {
      const { late, ahead, version, source, malformed } = selector.takeCounts().counts.dropped
      return { late, ahead, version, source, malformed }
    }
    const none = dropped()
    const pending = blockPackets(501)
    receive(pending.slice(0, 8), 1)
    lanes.runs.length = 0
    const cases: [Partial<typeof none>, Uint8Array[], number?][] = [
      // Their headers are not read, so those of the packets before them are still there.
      [{ source: 8 }, pending.slice(8, 16), -1],
      [{ malformed: 8 }, pending.slice(8, 16).map((packet) => packet.subarray(0, 80))],
      [{ late: 8 }, blockPackets(400).slice(0, 8)],
      [{ ahead: 8 }, blockPackets(700).slice(0, 8)],
      [{ version: 8 }, blockPackets(500, { version: VERSION + 1 }).slice(0, 8)],
    ]
    for (const [expected, sent, source] of cases) {
      receive(sent, 1, source)
      assert.deepEqual([dropped(), lanes.runs], [{ ...none, ...expected }, []])
    }
  })

  test('beyond the failures that are allowed, forged packets cost no hashes, and those of signed sets are hashed together', () => {
    const lanes = createTestLanes()
    const { sent, receive, release, openReader, selector } = start(128, { lanes, failuresPerSecond: 4 })
    const reader = openReader()
    reader.setAlive(true)
    const packets = blockPackets(500)
    receive(packets.slice(0, 1), 0)
    check(reader)
    release(0)
    // Each has a signature of its own.
    const forged = blockPackets(501, { leader: MALLORY }).slice(0, 16)
    forged.forEach((packet, n) => packet.set([n], 0))
    receive(forged.slice(0, 8), 1)
    assert.deepEqual(lanes.runs.splice(0), [4])
    check(reader)
    release(1)
    receive(forged.slice(8), 1)
    assert.deepEqual(lanes.runs, [])
    const { counts } = selector.takeCounts()
    assert.deepEqual([counts.dropped.forged, counts.dropped['too-many-forged']], [8, 8])
    receive(packets.slice(1, 9), 1)
    assert.deepEqual([lanes.runs, sent.length], [[8], 9])
  })

  test('nothing invalid passes and nothing valid is lost while the thread is slow, dies and is restarted', (t) => {
    const random = createRandom(seedOf(t))
    const runs = repeatsOf({ short: 6, full: 100 })
    for (let run = 0; run < runs; run++) {
      const lanes = random(2) === 0 ? createTestLanes() : undefined
      const { sent, receive, release, openReader } = start(random(2) === 0 ? 4 : 256, { lanes })
      let reader = openReader()
      reader.setAlive(true)
      const valid = Array.from({ length: 6 }, (_, slot) => blockPackets(500 + slot)).flat()
      const forged = blockPackets(500, { leader: MALLORY })
      const stream: Uint8Array[] = []
      for (const packet of valid) {
        stream.push(packet)
        if (random(3) === 0) stream.push(forged[random(64)] as Uint8Array)
        if (random(4) === 0) stream.push(packet)
        if (random(3) === 0) {
          const changed = Uint8Array.from(packet)
          const at = 64 + random(1000)
          changed[at] = (changed[at] as number) ^ (1 + random(255))
          // In front of the true one.
          stream.splice(stream.length - 1 - random(2), 0, changed)
        }
      }
      let nowMs = 0
      for (let at = 0; at < stream.length; ) {
        const count = 1 + random(12)
        receive(stream.slice(at, at + count), nowMs)
        at += count
        nowMs += random(8) === 0 ? LATE_PAUSE_MS : random(3)
        const event = random(10)
        if (event < 5) check(reader)
        if (event === 8) reader.setAlive(false)
        if (event === 9) {
          reader = openReader()
          reader.setAlive(true)
        }
        if (random(2) === 0) release(nowMs)
      }
      for (let tick = 0; tick < CHECKS_MAX; tick++) release((nowMs += CHECK_LATE_MS))
      const expected = valid.map((packet) => textOf(packet, packet.length))
      // A changed slot can be one whose leader is not known: its packet cannot be checked.
      const checked = sent.filter((text) => slotOf(text) < SCHEDULE_END)
      assert.ok(isSame(checked, expected), `run ${run}: ${checked.length} packets of ${expected.length}`)
    }
  })
})
