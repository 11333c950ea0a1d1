import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { EVENT } from '../event/type.ts'
import { type OpenedRing, RingFollower } from './follow.ts'
import { createSmallRing, makeEvent, SMALL_LIMITS, type SmallRing } from './test-ring.ts'

/** A path that holds one ring after another. */
function createPath() {
  let now: SmallRing | undefined
  const closed: SmallRing[] = []
  const open = (): OpenedRing | undefined => {
    const ring = now
    if (ring === undefined) return undefined
    return { ...ring.source, isReplaced: () => now !== ring, close: () => closed.push(ring) }
  }
  return {
    open,
    closed,
    hold(ring: SmallRing | undefined) {
      now = ring
      return ring
    },
  }
}

function follow(path: ReturnType<typeof createPath>) {
  return new RingFollower(path.open, { reader: { limits: SMALL_LIMITS } })
}

function ringOf(events: number): SmallRing {
  const ring = createSmallRing({ capacity: 64 })
  for (let mark = 1; mark <= events; mark++) ring.writer.record(makeEvent(mark, 8))
  return ring
}

describe('following a path', () => {
  test('waits for a missing ring and checks once a second', () => {
    const path = createPath()
    const follower = follow(path)
    assert.deepEqual(follower.poll(0), { kind: 'missing' })
    path.hold(ringOf(1))
    assert.deepEqual(follower.poll(999), { kind: 'missing' })
    assert.deepEqual(follower.poll(1000), { kind: 'opened', previousSeqno: undefined, mode: undefined })
    assert.equal(follower.poll(1000).kind, 'events')
  })

  test('reads the old ring to its end, then the new one from its first event', () => {
    const path = createPath()
    const old = ringOf(3)
    path.hold(old)
    const follower = follow(path)
    assert.equal(follower.poll(0).kind, 'opened')
    assert.equal(follower.poll(0).kind, 'events')
    assert.equal(follower.poll(1).kind, 'idle')
    assert.equal(follower.stats.eventsRead, 1, 'without a block it begins with the newest event')
    // The node records two more, dies while it writes a third, and is restarted.
    old.writer.record(makeEvent(4, 8))
    old.writer.steps([makeEvent(5, 8)]).next()
    old.writer.record(makeEvent(6, 8))
    const young = ringOf(2)
    path.hold(young)
    assert.equal(follower.poll(1000).kind, 'events')
    assert.deepEqual(follower.poll(1001), { kind: 'gap', from: 5, to: 5, cause: 'uncommitted' })
    assert.equal(follower.poll(1002).kind, 'events')
    assert.equal(follower.cursor, 6)
    assert.deepEqual(follower.poll(1003), { kind: 'opened', previousSeqno: 6, mode: undefined })
    assert.deepEqual(path.closed, [old])
    assert.equal(follower.poll(1003).kind, 'events')
    assert.equal(follower.batch?.seqno(0), 1)
    assert.deepEqual(follower.stats, { eventsRead: 5, eventsLost: 1, gaps: 1, payloadsLost: 0 })
  })

  test('waits for the next ring after the node unlinked the old one', () => {
    const path = createPath()
    path.hold(ringOf(1))
    const follower = follow(path)
    follower.poll(0)
    follower.poll(0)
    path.hold(undefined)
    assert.equal(follower.poll(500).kind, 'idle')
    assert.equal(follower.poll(1000).kind, 'missing')
    assert.equal(follower.cursor, 1)
    path.hold(ringOf(1))
    assert.deepEqual(follower.poll(2000), { kind: 'opened', previousSeqno: 1, mode: undefined })
  })

  test('opens a ring again that was restarted in the same file', () => {
    const path = createPath()
    const ring = ringOf(5)
    path.hold(ring)
    const follower = follow(path)
    follower.poll(0)
    follower.poll(0)
    ring.image.set(ringOf(1).image)
    assert.deepEqual(follower.poll(1), { kind: 'opened', previousSeqno: 5, mode: undefined })
    assert.equal(follower.poll(1).kind, 'events')
    assert.equal(follower.batch?.seqno(0), 1)
  })

  test('reports a ring that cannot be read and tries again', () => {
    const path = createPath()
    const odd = ringOf(1)
    odd.image.fill(0xab, 8, 40)
    path.hold(odd)
    const follower = follow(path)
    const result = follower.poll(0)
    assert(result.kind === 'refused')
    assert.match(result.refusal.message, /(ab){32}/)
    assert.deepEqual(path.closed, [odd])
    assert.equal(follower.poll(1).kind, 'refused')
    path.hold(ringOf(1))
    assert.equal(follower.poll(1000).kind, 'opened')
  })

  test('reports a ring that cannot be opened until it can be', () => {
    const path = createPath()
    let tries = 0
    const open = (): OpenedRing | undefined => {
      tries += 1
      if (tries < 3) throw new Error("EACCES: permission denied, open '/x/ring'")
      return path.open()
    }
    const follower = new RingFollower(open, { reader: { limits: SMALL_LIMITS } })
    const unreadable = { kind: 'unreadable', message: "EACCES: permission denied, open '/x/ring'" }
    for (const nowMs of [0, 1, 999, 1000, 1001]) assert.deepEqual(follower.poll(nowMs), unreadable)
    assert.equal(tries, 2)
    path.hold(ringOf(1))
    assert.equal(follower.poll(2000).kind, 'opened')
  })

  test('closes a ring that is opened and cannot be read, and tries again', () => {
    const ring = ringOf(1)
    let isBroken = true
    let closed = 0
    const read: OpenedRing['read'] = (...range) => {
      if (isBroken) throw new Error('EIO: i/o error, read')
      ring.source.read(...range)
    }
    const open = (): OpenedRing => ({ ...ring.source, read, isReplaced: () => false, close: () => void (closed += 1) })
    const follower = new RingFollower(open, { reader: { limits: SMALL_LIMITS } })
    assert.deepEqual(follower.poll(0), { kind: 'unreadable', message: 'EIO: i/o error, read' })
    assert.equal(closed, 1)
    isBroken = false
    assert.equal(follower.poll(1000).kind, 'opened')
    isBroken = true
    assert.equal(follower.poll(1001).kind, 'unreadable')
    isBroken = false
    assert.equal(follower.poll(1002).kind, 'events')
    assert.equal(closed, 1, 'a ring that was read before stays open')
  })

  test('starts with the newest block, or with the oldest when configured', () => {
    const ring = createSmallRing({ capacity: 64 })
    for (const blockSeqno of [1, 3]) {
      ring.writer.record(makeEvent(blockSeqno, 8, { type: EVENT.BLOCK_START, blockSeqno }))
      ring.writer.record(makeEvent(blockSeqno, 8, { blockSeqno }))
    }
    for (const [start, first] of [
      ['newest-block', 3],
      ['oldest', 1],
    ] as const) {
      const path = createPath()
      path.hold(ring)
      using follower = new RingFollower(path.open, { start, reader: { limits: SMALL_LIMITS } })
      follower.poll(0)
      follower.poll(0)
      assert.equal(follower.batch?.seqno(0), first)
    }
  })

  test('reports how the ring is read', () => {
    const ring = ringOf(1)
    const open = (): OpenedRing => ({ ...ring.source, mode: 'mapped', isReplaced: () => false, close() {} })
    const follower = new RingFollower(open, { reader: { limits: SMALL_LIMITS } })
    assert.deepEqual(follower.poll(0), { kind: 'opened', previousSeqno: undefined, mode: 'mapped' })
  })

  test('closes every ring it opened', () => {
    const path = createPath()
    const ring = ringOf(1)
    path.hold(ring)
    {
      using follower = follow(path)
      follower.poll(0)
    }
    assert.deepEqual(path.closed, [ring])
  })
})
