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

/** Follows nodes that have had this epoch and the next, and those after them. */
async function followEpochs(starts: readonly [number, number, number], hash?: string) {
  const slotsInEpoch = 432_000
  const responses = new Map<string, unknown>()
  if (hash !== undefined) responses.set('getGenesisHash', hash)
  const moveTo = (fromSlot: number, leader: string): void => {
    responses.set('getEpochInfo', { absoluteSlot: fromSlot + 7, slotIndex: 7, slotsInEpoch })
    for (const slot of [fromSlot, fromSlot + slotsInEpoch])
      responses.set(`getLeaderSchedule ${slot}`, { [leader]: [0, 1, 2, 3] })
  }
  const node = fakeNode(responses)
  const clock = createManualClock()
  const schedule = createLeaderSchedule()
  moveTo(starts[0], 'before')
  const following = schedule.follow(node, { clock, log: silentLogger })
  await clock.advanceAsync(0)
  moveTo(starts[1], 'before')
  await clock.advanceAsync(60_000)
  const fromSlots = (): number[] => schedule.ranges().map(({ fromSlot }) => fromSlot)
  assert.deepEqual(fromSlots(), starts)
  return { responses, moveTo, node, clock, schedule, fromSlots, [Symbol.dispose]: () => following[Symbol.dispose]() }
}

test('the epochs of nodes of another chain, with lower slots, are kept and requested once', async () => {
  for (const hash of [undefined, 'genesis-1']) {
    using followed = await followEpochs([864_000, 1_296_000, 1_728_000], hash)
    const { moveTo, node, clock, fromSlots } = followed
    if (hash !== undefined) followed.responses.set('getGenesisHash', 'genesis-2')
    moveTo(0, 'after')
    await clock.advanceAsync(62_000)
    assert.ok(fromSlots().includes(0) && fromSlots().includes(432_000), fromSlots().join())
    if (hash !== undefined) assert.deepEqual(fromSlots(), [0, 432_000])
    await clock.advanceAsync(120_000)
    assert.equal(node.asked.filter((key) => key === 'getLeaderSchedule 0').length, 1)
    assert.ok(fromSlots().length <= 3)
  }
})

test('the same epochs of another chain are loaded again, and its leaders are unknown until then', async () => {
  using followed = await followEpochs([864_000, 1_296_000, 1_728_000], 'genesis-1')
  const { responses, moveTo, clock, schedule } = followed
  const leaders = (): string[] => schedule.ranges().flatMap(({ identities }) => identities)
  const seen: string[] = []
  using _watching = schedule.onChange(() => void seen.push(leaders().join()))
  // A node that gives no hash at the moment changes nothing.
  responses.delete('getGenesisHash')
  await clock.advanceAsync(60_000)
  assert.deepEqual(seen, [])
  // Nor does one of them that is on another chain by mistake.
  responses.set('getGenesisHash', 'genesis-2')
  await clock.advanceAsync(60_000)
  responses.set('getGenesisHash', 'genesis-1')
  await clock.advanceAsync(60_000)
  assert.deepEqual(seen, [])
  responses.set('getGenesisHash', 'genesis-2')
  moveTo(1_296_000, 'after')
  await clock.advanceAsync(62_000)
  assert.deepEqual(seen, ['', 'after', 'after,after'])
  assert.deepEqual(followed.fromSlots(), [1_296_000, 1_728_000])
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
