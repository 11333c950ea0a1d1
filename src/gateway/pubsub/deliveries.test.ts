import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { FrameConsumer, SharedPart } from '../../platform/net/shared-frames.ts'
import { loadCollect } from '../../platform/process/memory-release.ts'
import { createDeliveries, waitingBytesMaxOf } from './deliveries.ts'
import { FanOut, type FanOutSubscriber } from './fan-out.ts'

function setUp(bytesMax?: number) {
  const clock = createManualClock()
  const deferred: (() => void)[] = []
  const deliveries = createDeliveries(clock, {
    defer: (run) => void deferred.push(run),
    ...(bytesMax === undefined ? {} : { bytesMax }),
  })
  return {
    clock,
    deliveries,
    turn: () => deferred.shift()?.(),
    get isIdle() {
      return deferred.length === 0
    },
  }
}

/** Steps of a millisecond each. */
function delivery(clock: { advance(ms: number): void }, steps: number, onStep: () => void) {
  let left = steps
  return {
    bytes: 10,
    step() {
      if (left === 0) return false
      left -= 1
      clock.advance(1)
      onStep()
      return true
    },
  }
}

test('runs deliveries for 5 ms in one turn of the event loop, however many there are, and keeps their order', () => {
  const on = setUp()
  const { clock, deliveries, turn } = on
  const done: string[] = []
  for (const name of ['a', 'b', 'c']) deliveries.add(delivery(clock, 4, () => done.push(name)))
  assert.equal(done.join(''), 'aaaab')
  turn()
  assert.equal(done.join(''), 'aaaabbbbcc')
  turn()
  assert.equal(done.join(''), 'aaaabbbbcccc')
  turn()
  assert.ok(on.isIdle)
  deliveries.add(delivery(clock, 1, () => done.push('d')))
  assert.equal(done.at(-1), 'd')
})

test('refuses a delivery beyond the limit of waiting bytes', () => {
  const { clock, deliveries, turn } = setUp(25)
  let steps = 0
  const add = () => deliveries.add(delivery(clock, 10, () => void (steps += 1)))
  assert.deepEqual([add(), add(), add()], [true, true, false])
  for (let turns = 0; turns < 10; turns++) turn()
  assert.equal(steps, 20)
  assert.equal(add(), true)
})

test('frees what was delivered while more always waits', async () => {
  const { clock, deliveries, turn } = setUp()
  const collect = loadCollect()
  const payloads: WeakRef<object>[] = []
  let delivered = 0
  function add(): void {
    const payload = { share: 0.5 }
    payloads.push(new WeakRef(payload))
    deliveries.add(delivery(clock, 2, () => void (delivered += payload.share)))
  }
  for (let waiting = 0; waiting < 10; waiting++) add()
  // As many are added as are delivered in a turn.
  for (let turns = 0; turns < 2000; turns++) {
    for (let added = 0; added < 2 + (turns % 2); added++) add()
    turn()
  }
  const waiting = payloads.length - delivered
  assert.ok(waiting > 0)
  // A reference is strong in the turn that made it.
  await new Promise((resolve) => setImmediate(resolve))
  collect()
  const held = payloads.filter((payload) => payload.deref() !== undefined).length
  assert.ok(held <= waiting + 1, `${held} are held, ${waiting} wait`)
  for (let turns = 0; turns < 20; turns++) turn()
  assert.equal(delivered, payloads.length, 'none is skipped')
})

/** A subscriber and its consumer, with every text it got. */
function subscriber(id: number, onFrame: () => void = () => {}) {
  const got: string[] = []
  const text = (frame: Buffer) => frame.subarray(2).toString()
  const one: FanOutSubscriber & { got: string[]; consumer: FrameConsumer<Buffer>; isOpen: boolean } = {
    id,
    got,
    isOpen: true,
    onFrame(frame) {
      got.push(text(frame))
      onFrame()
    },
    consumer: {
      offer(part: SharedPart<Buffer>) {
        for (const frame of part.take(one.consumer).frames) got.push(text(frame))
        onFrame()
      },
      seal() {},
      get isOpen() {
        return one.isOpen
      },
    },
  }
  return one
}

const payload = (text: string) => ({ bytes: Buffer.from(`${text}:0`), idFrom: text.length + 1, idTo: text.length + 2 })

test('delivers each notification once to each subscriber under its own id, also to one that is shared during the delivery', () => {
  const { clock, deliveries, turn } = setUp()
  const fanOut = new FanOut(deliveries)
  const tick = () => clock.advance(5)
  const [shared, early, late, left] = [
    subscriber(1, tick),
    subscriber(1, tick),
    subscriber(2, tick),
    subscriber(3, tick),
  ]
  for (const one of [shared, early, late, left]) fanOut.add(one)
  fanOut.share(shared, shared.consumer)
  const [first4, second4] = [subscriber(4, tick), subscriber(4, tick)]
  for (const one of [first4, second4]) fanOut.add(one)
  fanOut.share(first4, first4.consumer)
  let isDone = false
  fanOut.push(payload('a'), () => {
    isDone = true
  })
  // Id 1 has been delivered to the subscribers that share it; the others are still due.
  assert.deepEqual([shared.got, early.got, late.got], [['a:1'], [], []])
  fanOut.share(early, early.consumer)
  fanOut.share(late, late.consumer)
  fanOut.share(second4, second4.consumer)
  fanOut.remove(left)
  fanOut.push(payload('b'))
  for (let turns = 0; turns < 10; turns++) turn()
  assert.ok(isDone)
  assert.deepEqual(
    [shared.got, early.got, late.got],
    [
      ['a:1', 'b:1'],
      ['a:1', 'b:1'],
      ['a:2', 'b:2'],
    ],
  )
  assert.deepEqual(first4.got, ['a:4', 'b:4'])
  assert.deepEqual(second4.got, ['a:4', 'b:4'])
  assert.deepEqual(left.got, [])
})

test('builds no frame for a closing connection', () => {
  const { deliveries } = setUp()
  const fanOut = new FanOut(deliveries)
  const closing = subscriber(1)
  fanOut.add(closing)
  fanOut.share(closing, closing.consumer)
  closing.isOpen = false
  fanOut.push(payload('a'))
  assert.deepEqual(closing.got, [])
})

test('each of many threads has room for the notification of a block, as far as the memory of the process allows', () => {
  const MIB = 2 ** 20
  const mib = (threads?: number, residentMib?: number): number =>
    waitingBytesMaxOf({ threads, residentBytesMax: residentMib === undefined ? undefined : residentMib * MIB }) / MIB
  assert.deepEqual([mib(), mib(1, 1536), mib(4, 1536)], [64, 64, 16])
  assert.deepEqual([mib(8, 1536), mib(12, 1536), mib(32, 1536)], [16, 16, 6])
  assert.equal(mib(32, 16_384), 16)
  assert.equal(mib(16, 256), 4, 'no less than the share of 64 MiB')
})
