import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import type { Upstream } from '../../../upstreams/upstream.ts'
import { createLeaderSchedule } from './leader-schedule.ts'

/** A node that responds from a table; other calls get no response. */
function fakeNode(responses: Map<string, unknown>) {
  const asked: string[] = []
  const forward: Upstream['forward'] = ({ body }, done) => {
    const { method, params } = JSON.parse(Buffer.from(body).toString()) as { method: string; params: unknown[] }
    const key = method === 'getLeaderSchedule' ? `${method} ${String(params[0])}` : method
    asked.push(key)
    queueMicrotask(() => {
      if (!responses.has(key)) return done({ kind: 'no-upstream', isSent: false })
      const text = JSON.stringify({ jsonrpc: '2.0', id: 1, result: responses.get(key) })
      const head = { status: 200, contentType: undefined, contentEncoding: undefined, nodeName: 'n' }
      done({ kind: 'responded', ...head, body: Buffer.from(text), rest: undefined })
    })
    return { abort() {} }
  }
  return { forward, asked }
}

const EPOCH = { absoluteSlot: 1005, slotIndex: 5, slotsInEpoch: 8 }

test('polls this epoch and the next until known, and requests each only once', async () => {
  const responses = new Map<string, unknown>()
  const node = fakeNode(responses)
  const clock = createManualClock()
  const upstreamSubscription = createLeaderSchedule()
  let changes = 0
  using _watching = upstreamSubscription.onChange(() => void (changes += 1))
  using _following = upstreamSubscription.follow(node, { clock, log: silentLogger })
  await clock.advanceAsync(0)
  assert.deepEqual(upstreamSubscription.ranges(), [])

  responses.set('getEpochInfo', EPOCH)
  responses.set('getLeaderSchedule 1000', { a: [0, 1, 2, 3], b: [4, 5, 6, 7, 99, -1, 0.5] })
  responses.set('getLeaderSchedule 1008', null)
  await clock.advanceAsync(1000)
  assert.equal(changes, 1)
  const [range] = upstreamSubscription.ranges()
  assert.deepEqual([range?.fromSlot, range?.toSlot, range?.identities], [1000, 1008, ['a', 'b']])
  assert.deepEqual([...(range?.leaderOfSlot ?? [])], [1, 1, 1, 1, 2, 2, 2, 2])

  responses.set('getLeaderSchedule 1008', { b: [0, 1, 2, 3] })
  await clock.advanceAsync(60_000)
  assert.deepEqual(
    upstreamSubscription.ranges().map(({ fromSlot }) => fromSlot),
    [1000, 1008],
  )
  responses.set('getEpochInfo', { ...EPOCH, absoluteSlot: 1010, slotIndex: 2 })
  responses.set('getLeaderSchedule 1016', { a: [0] })
  responses.set('getLeaderSchedule 1024', { a: [0] })
  await clock.advanceAsync(60_000)
  responses.set('getEpochInfo', { ...EPOCH, absoluteSlot: 1016, slotIndex: 0 })
  await clock.advanceAsync(60_000)
  assert.deepEqual(
    upstreamSubscription.ranges().map(({ fromSlot }) => fromSlot),
    [1008, 1016, 1024],
  )
  assert.equal(node.asked.filter((key) => key === 'getLeaderSchedule 1000').length, 1)
})

test('a response that is not a schedule is ignored', async () => {
  for (const [info, schedule] of [
    [null, {}],
    ['text', {}],
    [{ absoluteSlot: 5 }, {}],
    [{ absoluteSlot: 5, slotIndex: 5, slotsInEpoch: 1e12 }, {}],
    [{ absoluteSlot: 5, slotIndex: 5, slotsInEpoch: 8 }, { a: 'all' }],
    [{ absoluteSlot: 5, slotIndex: 5, slotsInEpoch: 8 }, 'text'],
  ] as const) {
    const clock = createManualClock()
    const upstreamSubscription = createLeaderSchedule()
    const node = fakeNode(
      new Map<string, unknown>([
        ['getEpochInfo', info],
        ['getLeaderSchedule 0', schedule],
      ]),
    )
    using _following = upstreamSubscription.follow(node, { clock, log: silentLogger })
    await clock.advanceAsync(3000)
    assert.deepEqual(upstreamSubscription.ranges(), [])
  }
})
