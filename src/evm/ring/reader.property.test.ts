import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createSeededRandom, type Random, randomInt } from '../../core/random.ts'
import { seedFor } from '../../core/test-seed.ts'
import { alignPayload, type RingControl } from './layout.ts'
import type { RingReader } from './reader.ts'
import { makeEvent, openReader } from './test-ring.ts'
import { RingStorm } from './test-storm.ts'
import type { RingEvent } from './writer.ts'

const ABANDONED_MS = 3000

type Account = { whole: number; payloadLost: number; inGaps: number; next: number }

/** Checks the result of one poll against what was recorded. */
function account(storm: RingStorm, reader: RingReader, nowMs: number, so: Account): boolean {
  const cursor = reader.cursor
  const result = reader.poll(nowMs)
  if (result.kind === 'gap') {
    assert.equal(result.from, so.next, 'a gap begins where reading stopped')
    assert(result.to >= result.from)
    if (result.cause === 'lapped') assert(result.from + storm.geometry.capacity <= storm.lastSeqno(), 'lapped in truth')
    else
      for (let seqno = result.from; seqno <= result.to; seqno++)
        assert(storm.dead.has(seqno), `${seqno} is dead in truth`)
    so.inGaps += result.to - result.from + 1
    so.next = result.to + 1
    return true
  }
  if (result.kind !== 'events') {
    assert.equal(reader.cursor, cursor)
    return false
  }
  const { batch } = reader
  assert(batch.count > 0)
  for (let at = 0; at < batch.count; at++) {
    const seqno = batch.seqno(at)
    assert.equal(seqno, so.next, 'each event once and in order')
    const event = storm.recorded.get(seqno) as RingEvent
    assert.deepEqual(
      [batch.type(at), batch.timeNs(at), batch.blockSeqno(at), batch.txnIndex(at), batch.payloadSize(at)],
      [event.type, event.timeNs, event.blockSeqno, event.txnIndex, event.payload.length],
      `descriptor of ${seqno}`,
    )
    const payload = batch.payload(at)
    if (payload === undefined) {
      assert(batch.payloadOffset(at) < storm.writer.control.windowStart, 'expired in truth')
      so.payloadLost += 1
    } else {
      assert.deepEqual(payload, event.payload, `payload of ${seqno}`)
      so.whole += 1
    }
    so.next += 1
  }
  return true
}

/** The counters of a new ring, or of one where the lower half of a number is about to overflow; payload offsets do so every few minutes. */
function chooseControl(random: Random): RingControl {
  if (random.float() < 0.4) return { lastSeqno: 0, nextPayloadByte: 0, windowStart: 0 }
  const justBefore = (): number => (1 + randomInt(random, 4)) * 2 ** 31 - 16 * randomInt(random, 16)
  const nextPayloadByte = justBefore()
  return { lastSeqno: justBefore(), nextPayloadByte, windowStart: nextPayloadByte }
}

function runStorm(seed: number): Account & { recorded: number } {
  const random = createSeededRandom(seed)
  const capacity = 2 ** (2 + randomInt(random, 4))
  const payloadBytes = 2 ** (9 + randomInt(random, 3))
  const windowStepBytes = payloadBytes / 8
  // With small payloads a complete event is written between two pieces of one read.
  const sizeMax = random.float() < 0.5 ? 16 : payloadBytes / 8
  const makeEvents = (firstSeqno: number): RingEvent[] => {
    let room = payloadBytes - 2 * windowStepBytes - 16
    const events: RingEvent[] = []
    const count = 1 + randomInt(random, Math.min(4, capacity / 2))
    for (let at = 0; at < count; at++) {
      const seqno = firstSeqno + at
      const size = random.float() < 0.2 ? 0 : 1 + randomInt(random, sizeMax)
      room -= alignPayload(size)
      if (room < 0) break
      events.push(makeEvent(seqno, size, { type: 1 + (seqno % 24), blockSeqno: seqno, txnIndex: (seqno % 7) - 1 }))
    }
    return events
  }
  const control = chooseControl(random)
  const before = control.lastSeqno
  const threads = 1 + randomInt(random, 3)
  const storm = new RingStorm(
    {
      geometry: { capacity, payloadBytes, contextBytes: 0 },
      windowStepBytes,
      threads,
      random,
      control,
      isMapped: random.float() < 0.5,
    },
    makeEvents,
  )
  const options = {
    eventsMax: 1 + randomInt(random, 12),
    payloadBytes: 2 ** (6 + randomInt(random, 4)),
    abandonedMs: ABANDONED_MS,
  }
  const reader = openReader(storm.source, { seqno: before + 1 }, options)
  const so: Account = { whole: 0, payloadLost: 0, inGaps: 0, next: before + 1 }
  for (let round = 0; round < 60; round++) {
    // Sometimes the writers overtake a reader during a poll, sometimes they make a single store at the worst moment.
    storm.haste = random.float() ** 3
    storm.burst = random.float() < 0.5 ? 4 : 100
    const steps = randomInt(random, random.float() < 0.1 ? 2000 : 60)
    for (let step = 0; step < steps; step++) storm.step()
    if (random.float() < 0.03) storm.kill(randomInt(random, threads))
    account(storm, reader, 0, so)
  }
  storm.haste = 0
  storm.settle()
  // Abandoned events are distinguished from slow ones by time only, so time passes only after the live threads are done.
  for (let round = 0; round < 10_000; round++) {
    if (!account(storm, reader, round * ABANDONED_MS, so) && so.next > lastAlive(storm)) break
  }
  reader.finish()
  while (account(storm, reader, 0, so));
  assert.equal(so.next, storm.lastSeqno() + 1, 'everything is accounted for')
  assert.equal(so.whole + so.payloadLost + so.inGaps, storm.lastSeqno() - before)
  assert.deepEqual(
    [reader.stats.eventsRead, reader.stats.payloadsLost, reader.stats.eventsLost],
    [so.whole + so.payloadLost, so.payloadLost, so.inGaps],
  )
  return { ...so, recorded: storm.lastSeqno() - before }
}

function lastAlive(storm: RingStorm): number {
  let seqno = storm.lastSeqno()
  while (storm.dead.has(seqno)) seqno -= 1
  return seqno
}

test('under concurrent writers every event is read completely, reported as expired, or in exactly one gap', () => {
  const sums = { whole: 0, payloadLost: 0, inGaps: 0, recorded: 0 }
  const settings = seedFor('ring-reader storm', 120)
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const so = runStorm(seed)
      for (const name of ['whole', 'payloadLost', 'inGaps', 'recorded'] as const) sums[name] += so[name]
    }),
    settings,
  )
  // All three outcomes must have occurred.
  assert(
    sums.whole > settings.numRuns && sums.payloadLost > settings.numRuns && sums.inGaps > settings.numRuns,
    JSON.stringify(sums),
  )
})
