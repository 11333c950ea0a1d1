import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { createRelayWindow } from './relay-window.ts'
import { createSlotWindow } from './slot-window.ts'

const [BACK_MS, AHEAD_MS] = [25_600, 12_800]
const VERSION = 7

/** A window as the relay uses it, for packets that pass every other check. */
function open(slotMs = 400, version?: number) {
  const length = { backSlots: Math.ceil(BACK_MS / slotMs), aheadSlots: Math.ceil(AHEAD_MS / slotMs) }
  const window = createRelayWindow({ ...length, version, reachSlots: 64 })
  /** Whether a packet is relayed, and whether the engine of Decoded gets it. */
  const take = (slot: number, ms: number, isSigned = false, packetVersion = VERSION) => {
    const verdict = window.classify(slot, packetVersion, ms)
    assert.equal(window.isCurrent(slot, packetVersion), verdict === 'current')
    if (verdict !== 'current') return { isRelayed: false, isDecoded: false }
    if (!isSigned && window.classifyUnchecked(slot, packetVersion, ms) !== 'current')
      return { isRelayed: false, isDecoded: false }
    window.advance(slot, packetVersion, ms, isSigned)
    return { isRelayed: true, isDecoded: window.isOfMainChain(slot, packetVersion) }
  }
  return { window, take, ...length }
}

/** Calls for each packet of a feed, with its time. */
function eachPacket(fromMs: number, toMs: number, everyMs: number, packet: (ms: number) => void): void {
  for (let ms = fromMs; ms < toMs; ms += everyMs) packet(ms)
}

const FIRST = 100_000
const slotAt = (ms: number, slotMs = 400): number => FIRST + Math.floor(ms / slotMs)

test('three packets of rising slots and one each second do not make the live feed late', () => {
  for (const [everyMs, slotMs] of [
    [1, 400],
    [5, 200],
    [20, 400],
  ] as const) {
    const { window, take, aheadSlots } = open(slotMs)
    eachPacket(0, 20_000, everyMs, (ms) => {
      if (ms === 3000) for (const step of [1, 2, 3]) take(slotAt(ms, slotMs) + step * aheadSlots, ms)
      if (ms > 3000 && ms % 1000 === 0) take((window.newest() as number) + aheadSlots, ms)
      assert.deepEqual(take(slotAt(ms, slotMs), ms), { isRelayed: true, isDecoded: true }, `at ${ms} ms`)
    })
    assert.equal(window.generation(), 0)
  }
})

test('complete FEC sets far ahead are relayed as long as they are current, and do not reach the engine', () => {
  const { take, aheadSlots } = open()
  let ahead = FIRST
  const decoded: boolean[] = []
  eachPacket(0, 10_000, 1, (ms) => {
    take(slotAt(ms), ms)
    if (ms < 2000 || ms % 400 !== 0) return
    ahead = Math.max(ahead, slotAt(ms)) + aheadSlots
    for (let shred = 0; shred < 32; shred++) decoded.push(take(ahead, ms).isDecoded)
  })
  assert.deepEqual([decoded.slice(0, 64).includes(true), decoded.slice(64).includes(true)], [true, false])
})

test('a source that lags and comes first holds the live feed off for three seconds at most', () => {
  for (const lag of [33, 40, 100, 5000]) {
    const { window, take } = open()
    eachPacket(0, 20_000, 5, (ms) => {
      take(slotAt(ms), ms)
      const { isRelayed, isDecoded } = take(slotAt(ms) + lag, ms)
      if (ms > 3000) assert.ok(isRelayed && isDecoded, `${lag} slots, ${ms} ms`)
    })
    const behind = slotAt(19_995) + lag - (window.newest() as number)
    assert.ok(behind >= 0 && behind <= 5, `${behind} slots`)
    assert.equal(window.isBehindMainChain(slotAt(19_995), VERSION), lag > 64)
  }
})

test('a cluster that restarts with lower slots is followed beside remains of the old one, in a new generation', () => {
  for (const version of [VERSION, 9]) {
    const { window, take } = open()
    eachPacket(0, 5000, 2, (ms) => take(slotAt(ms), ms))
    eachPacket(8000, 20_000, 2, (ms) => {
      if (ms % 1000 === 0) take(slotAt(5000), ms)
      const { isRelayed, isDecoded } = take(3 + Math.floor((ms - 8000) / 400), ms, false, version)
      if (ms > 11_500) assert.ok(isRelayed && isDecoded, `${ms} ms`)
    })
    assert.deepEqual([window.generation(), window.version()], [1, version])
    assert.ok((window.newest() as number) <= 32)
  }
})

test('a first packet of another version or of an absurd slot, repeated each second, holds the feed off for three seconds at most', () => {
  for (const [slot, version] of [
    [FIRST, 9],
    [2 ** 52, VERSION],
  ] as const) {
    const { window, take } = open()
    eachPacket(0, 20_000, 2, (ms) => {
      if (ms % 1000 === 0) take(slot, ms, false, version)
      const { isRelayed, isDecoded } = take(slotAt(ms), ms)
      if (ms > 3000) assert.ok(isRelayed && isDecoded, `${ms} ms`)
    })
    assert.deepEqual([window.version(), window.generation()], [VERSION, 1])
  }
})

test('a configured version is kept, whatever comes', () => {
  const { window, take } = open(400, VERSION)
  eachPacket(0, 10_000, 1, (ms) => {
    if (ms % 100 === 0) assert.ok(take(slotAt(ms), ms).isRelayed)
    assert.equal(window.classify(slotAt(ms), 9, ms), 'version')
  })
  assert.deepEqual([window.version(), window.generation(), window.resets()], [VERSION, 0, 0])
})

test('beside signed packets those that cannot be checked count for nothing, however many there are', () => {
  for (const distance of ['newest', 32, 3000, -3000] as const) {
    const { window, take, aheadSlots } = open()
    eachPacket(0, 10_000, 2, (ms) => {
      const slot = distance === 'newest' ? (window.newest() ?? FIRST) + aheadSlots : slotAt(ms) + distance
      if (ms > 2000) for (let i = 0; i < 20; i++) take(slot, ms)
      assert.deepEqual(take(slotAt(ms), ms, true), { isRelayed: true, isDecoded: true }, `at ${ms} ms`)
    })
    assert.equal(window.generation(), 0)
  }
})

test('in a pause of the chain a few packets ahead do not move it', () => {
  const { window, take, aheadSlots } = open()
  const takeLive = (ms: number) => assert.ok(take(slotAt(ms), ms).isDecoded, `at ${ms} ms`)
  eachPacket(0, 5000, 1, takeLive)
  eachPacket(5000, 8600, 100, (ms) => take((window.newest() as number) + aheadSlots, ms))
  eachPacket(8600, 12_000, 1, takeLive)
})

test('after a pause almost as long as the window, a chain of one packet a slot is decoded', () => {
  const { take } = open(200)
  for (const slot of [1, 63, 64, 65, 66, 67, 130, 131, 132]) assert.ok(take(slot, slot * 200).isDecoded, `slot ${slot}`)
})

test('a pause of the live feed is no reason to go back to a source that lags', () => {
  for (const [slotMs, lag, pauseMs] of [
    [400, 100, 3500],
    [200, 60, 1600],
  ] as const) {
    const { window, take } = open(slotMs)
    eachPacket(0, 20_000, 4, (ms) => {
      take(slotAt(ms, slotMs) - lag, ms)
      if (ms >= 7400 && ms < 7400 + pauseMs) return
      const { isRelayed, isDecoded } = take(slotAt(ms, slotMs), ms)
      if (ms > 3000) assert.ok(isRelayed && isDecoded, `at ${ms} ms`)
    })
    assert.equal(window.generation(), 0)
  }
})

test('sources that replay old slots are late beside the live one, though they have more packets', () => {
  for (const everyMs of [5, 10]) {
    const { window, take } = open()
    eachPacket(0, 20_000, everyMs, (ms) => {
      assert.ok(take(slotAt(ms), ms).isDecoded)
      for (const lag of [100, 100, 500, 5000]) assert.equal(take(slotAt(ms) - lag, ms).isRelayed, false)
    })
    assert.equal(window.generation(), 0)
  }
})

test('a fixed slot and slots that rise faster than a chain are no chain', () => {
  for (const slotsPerMs of [0, 1]) {
    const { window, take } = open()
    eachPacket(0, 10_000, 10, (ms) => {
      assert.ok(take(slotAt(ms), ms).isDecoded)
      for (let i = 0; i < 10; i++) assert.equal(take(FIRST + 5000 + ms * slotsPerMs, ms).isRelayed, false)
    })
    assert.equal(window.newest(), slotAt(9990))
  }
})

test('a live feed that ends is replaced by one that lags, and is followed again when it returns', () => {
  const { window, take } = open()
  eachPacket(0, 10_000, 2, (ms) => take(slotAt(ms), ms))
  eachPacket(10_000, 60_000, 2, (ms) => {
    const { isRelayed, isDecoded } = take(slotAt(ms) - 100, ms)
    if (ms > 13_000) assert.ok(isRelayed && isDecoded, `${ms} ms`)
  })
  assert.equal(window.generation(), 1)
  eachPacket(60_000, 80_000, 2, (ms) => {
    take(slotAt(ms) - 100, ms)
    const { isRelayed, isDecoded } = take(slotAt(ms), ms)
    if (ms > 63_000) assert.ok(isRelayed && isDecoded, `${ms} ms`)
  })
  assert.equal(window.generation(), 1)
})

/** Packets of any slots: near the one before, of several chains, absurd. */
const anyPacket = fc.record({
  slot: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 0, max: 300 }) },
    { weight: 1, arbitrary: fc.constantFrom(0, 500, 5000, 2 ** 52) },
  ),
  version: fc.constantFrom(7, 7, 7, 9),
  afterMs: fc.oneof(
    { weight: 20, arbitrary: fc.integer({ min: 0, max: 50 }) },
    { weight: 1, arbitrary: fc.integer({ min: 500, max: 30_000 }) },
  ),
  copies: fc.oneof(
    { weight: 4, arbitrary: fc.constant(1) },
    { weight: 1, arbitrary: fc.integer({ min: 2, max: 200 }) },
  ),
  isSigned: fc.boolean(),
})

test('every packet that is current around the newest slot is relayed, whatever else comes', (t) => {
  const config = fc.record({
    packets: fc.array(anyPacket, { maxLength: 400 }),
    version: fc.constantFrom(undefined, undefined, 7),
    slotMs: fc.constantFrom(200, 400),
  })
  const dominates = fc.property(config, ({ packets, version, slotMs }) => {
    const { window, take, backSlots, aheadSlots } = open(slotMs, version)
    const newest = createSlotWindow({ backSlots, aheadSlots, version })
    let ms = 0
    for (const packet of packets) {
      ms += packet.afterMs
      for (let copy = 0; copy < packet.copies; copy++, ms += slotMs / 200) {
        const slot = packet.slot + Math.floor(ms / slotMs)
        const isCurrent = newest.classify(slot, packet.version, ms) === 'current'
        if (isCurrent) newest.advance(slot, packet.version, ms)
        const isFirstSigned = packet.isSigned && window.isUnproven()
        const { isRelayed } = take(slot, ms, packet.isSigned, packet.version)
        // The first signed packet moves the window, also away from a few that could not be checked.
        if (isRelayed && !isCurrent && isFirstSigned) newest.moveTo(slot, packet.version, ms)
        assert.ok(isRelayed || !isCurrent, `slot ${slot} at ${ms} ms`)
      }
    }
    assert.equal(window.resets(), newest.resets())
  })
  checkProperty(t, dominates, 300, 20_000)
})

const LIVE_EVERY_MS = 4
/** Fewer than an eighth of the live packets. */
const BURST_MS = 500
const BURST_PACKETS_MAX = 12

/** What an attacker sends, and of which slots: relative to the chain, and how they rise. */
const anyBurst = fc.record({
  packets: fc.integer({ min: 0, max: BURST_PACKETS_MAX }),
  kind: fc.constantFrom('newest', 'ahead', 'far', 'behind', 'absurd', 'version'),
})
/** Sources beside the live one, with a share of its packets and a lag; the attacker; slots that leaders skip. */
const anyFeeds = fc.record({
  slotMs: fc.constantFrom(200, 300, 400),
  sources: fc.array(fc.record({ lag: fc.integer({ min: 1, max: 400 }), everyMs: fc.constantFrom(4, 12, 60) }), {
    maxLength: 3,
  }),
  isLiveFirst: fc.boolean(),
  bursts: fc.array(anyBurst, { minLength: 20, maxLength: 40 }),
  skips: fc.array(fc.integer({ min: 20, max: 80 }), { maxLength: 2 }),
})

test('of several sources the live one is relayed and decoded, whatever an attacker with fewer than an eighth of its packets sends', (t) => {
  const follows = fc.property(anyFeeds, ({ slotMs, sources, isLiveFirst, bursts, skips }) => {
    const { window, take, aheadSlots } = open(slotMs)
    const skipped = new Set(skips.flatMap((slot) => [slot, slot + 1, slot + 2, slot + 3].map((n) => FIRST + n)))
    let far = 0
    const attack = (kind: (typeof bursts)[number]['kind'], chain: number, ms: number): void => {
      const newest = window.newest() ?? chain
      far += 1
      if (kind === 'newest') take(newest + aheadSlots, ms)
      else if (kind === 'ahead') take(chain + aheadSlots, ms)
      else if (kind === 'far') take(chain + 5000 + (far % 3) * aheadSlots, ms)
      else if (kind === 'behind') take(chain - 5000, ms)
      else if (kind === 'absurd') take(2 ** 52, ms)
      else take(chain, ms, false, 9)
    }
    // A source that lags and comes first is followed until the live one is found.
    const graceMs = isLiveFirst || sources.length === 0 ? 0 : 3500
    const attackMs = Math.max(1000, graceMs)
    eachPacket(0, bursts.length * BURST_MS, LIVE_EVERY_MS, (ms) => {
      const chain = slotAt(ms, slotMs)
      const takeLive = (): void => {
        if (skipped.has(chain)) return
        const { isRelayed, isDecoded } = take(chain, ms)
        if (ms >= graceMs) assert.ok(isRelayed && isDecoded, `slot ${chain - FIRST} at ${ms} ms`)
      }
      if (isLiveFirst) takeLive()
      for (const { lag, everyMs } of sources) if (ms % everyMs === 0) take(chain - lag, ms)
      if (!isLiveFirst) takeLive()
      const burst = bursts[Math.floor(ms / BURST_MS)] as (typeof bursts)[number]
      if (ms % BURST_MS === 200 && ms > attackMs) for (let i = 0; i < burst.packets; i++) attack(burst.kind, chain, ms)
    })
  })
  checkProperty(t, follows, 150, 10_000)
})

/** A chain without an attacker: any number of packets in a slot, skipped slots and outages, early slots of a leader, shreds that were repaired. */
const anyChain = fc.record({
  slotMs: fc.constantFrom(200, 300, 400),
  blocks: fc.array(
    fc.record({
      packets: fc.constantFrom(1, 2, 30, 300),
      pause: fc.oneof(
        { weight: 8, arbitrary: fc.constant(1) },
        { weight: 3, arbitrary: fc.integer({ min: 2, max: 24 }) },
        { weight: 1, arbitrary: fc.integer({ min: 25, max: 1000 }) },
      ),
      others: fc.array(fc.integer({ min: -60, max: 8 }), { maxLength: 4 }),
    }),
    { minLength: 1, maxLength: 60 },
  ),
})

test('every packet of a single chain that is relayed is decoded, through skipped slots, outages and any rate', (t) => {
  const follows = fc.property(anyChain, ({ slotMs, blocks }) => {
    const { window, take, backSlots, aheadSlots } = open(slotMs)
    const newest = createSlotWindow({ backSlots, aheadSlots })
    let [slot, ms] = [FIRST, 0]
    for (const { packets, pause, others } of blocks) {
      slot += pause
      ms += pause * slotMs
      for (let packet = 0; packet < packets; packet++) {
        const nowMs = ms + (packet * slotMs) / packets
        for (const number of packet === 0 ? [slot, ...others.map((other) => slot + other)] : [slot]) {
          const isCurrent = newest.classify(number, VERSION, nowMs) === 'current'
          if (isCurrent) newest.advance(number, VERSION, nowMs)
          const { isRelayed, isDecoded } = take(number, nowMs)
          assert.ok(isRelayed || !isCurrent)
          assert.ok(isDecoded || !isRelayed, `slot ${number - FIRST} at ${nowMs} ms`)
        }
      }
    }
    assert.equal(window.generation(), 0)
  })
  checkProperty(t, follows, 300, 20_000)
})

test('a replayed signed packet does not move the window away from a feed whose schedule is not known yet', () => {
  const { window, take } = open()
  eachPacket(0, 1000, 1, (ms) => assert.ok(take(slotAt(ms), ms).isRelayed))
  assert.equal(window.isUnproven(), false)
  assert.equal(window.classify(FIRST - 1000, VERSION, 1000), 'late')
  // Nor would it if it had been checked.
  window.advance(FIRST - 1000, VERSION, 1000, true)
  eachPacket(1000, 5000, 1, (ms) => assert.ok(take(slotAt(ms), ms).isRelayed, `${ms}`))
  assert.equal(window.generation(), 0)
})

test('a replayed signed packet does not move the window in the first second of the feed', () => {
  const { window, take } = open()
  eachPacket(0, 200, 1, (ms) => assert.ok(take(slotAt(ms), ms).isRelayed))
  window.advance(FIRST - 1000, VERSION, 200, true)
  assert.deepEqual([window.isUnproven(), window.newest(), window.generation()], [false, FIRST, 0])
})

test('the first signed packet moves the window away from a few that could not be checked', () => {
  const { window, take } = open()
  for (let at = 0; at < 100; at++) take(FIRST + 5000, at)
  assert.equal(window.isUnproven(), true)
  window.advance(FIRST, VERSION, 100, true)
  assert.equal(window.isUnproven(), false)
  assert.equal(window.newest(), FIRST)
  eachPacket(101, 3000, 1, (ms) => assert.ok(take(slotAt(ms), ms, true).isRelayed, `${ms}`))
})
