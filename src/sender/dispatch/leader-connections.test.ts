import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createLeaderConnections, type OpenLeader } from './leader-connections.ts'

const leader = (identity: string, port: number) => ({
  identity,
  ip: '192.0.2.1',
  port,
  address: `192.0.2.1:${port}`,
})

/** Connections that end when the test says so, with the times at which they were opened by address. */
function start(connectionsMax = 8) {
  const clock = createManualClock()
  const openedAtMs = new Map<string, number[]>()
  const opens = new Map<string, () => void>()
  const ends = new Map<string, () => void>()
  const open: OpenLeader = ({ address }, on) => {
    openedAtMs.set(address, [...(openedAtMs.get(address) ?? []), clock.monotonicMs()])
    opens.set(address, on.onOpen)
    ends.set(address, () => on.onEnd({ by: 'peer', code: 4, isApplication: true, message: 'too_many' }))
    return { state: 'open', send: () => true, close() {} }
  }
  const connections = createLeaderConnections({ connectionsMax, perLeaderPerSecond: 180 }, { clock, open })
  return {
    clock,
    connections,
    open: (address: string) => opens.get(address)?.(),
    end: (address: string) => ends.get(address)?.(),
    openedAtMs: (address: string) => openedAtMs.get(address) ?? [],
    [Symbol.dispose]: () => connections[Symbol.dispose](),
  }
}

test('a relay that closes every connection is tried four times in twelve seconds, then rarely, for all its leaders together', () => {
  using run = start()
  const relayed = ['a', 'b', 'c'].map((identity) => leader(identity, 8009))
  const startMs = run.clock.monotonicMs()
  for (let passedMs = 0; passedMs < 60_000; passedMs += 200) {
    run.connections.warm(relayed)
    for (const one of relayed) run.connections.send(one, new Uint8Array(1), () => {})
    run.end('192.0.2.1:8009')
    run.clock.advance(200)
  }
  const seconds = run.openedAtMs('192.0.2.1:8009').map((atMs) => (atMs - startMs) / 1000)
  assert.deepEqual(seconds, [0, 4, 8, 12, 16, 30, 44.8, 59.8])
})

test('a connection that ends in the slots of its leader is replaced at once, whatever other leaders refuse', () => {
  using run = start()
  const [current, ...next] = Array.from({ length: 6 }, (_, n) => leader(`leader ${n}`, 8000 + n)) as [
    ReturnType<typeof leader>,
    ...ReturnType<typeof leader>[],
  ]
  for (let passedMs = 0; passedMs < 12_800; passedMs += 200) {
    run.connections.warm([current, ...next])
    for (const { address } of next) run.end(address)
    run.clock.advance(200)
  }
  for (let times = 1; times <= 3; times++) {
    run.end(current.address)
    assert.equal(run.connections.isUsable(current), false)
    run.connections.warm([current, ...next])
    assert.equal(run.connections.isUsable(current), true)
    assert.equal(run.openedAtMs(current.address).length, 1 + times)
    run.clock.advance(4000)
  }
})

test('a connection that had opened is replaced at once when it is lost, its replacement after four seconds', () => {
  using run = start()
  const one = leader('a', 8009)
  const startMs = run.clock.monotonicMs()
  for (let passedMs = 0; passedMs < 10_000; passedMs += 200) {
    run.connections.warm([one])
    run.open(one.address)
    run.end(one.address)
    run.clock.advance(200)
  }
  const seconds = run.openedAtMs(one.address).map((atMs) => (atMs - startMs) / 1000)
  assert.deepEqual(seconds, [0, 0.2, 4.2, 4.4])
})

test('the attempts to connect to an address are remembered when it makes room for others, until they no longer limit it', () => {
  using run = start(1)
  const [first, second] = [leader('a', 8001), leader('b', 8002)]
  const startMs = run.clock.monotonicMs()
  for (let passedMs = 0; passedMs < 30_000; passedMs += 200) {
    run.connections.warm([passedMs % 400 === 0 ? first : second])
    run.clock.advance(200)
  }
  const seconds = () => run.openedAtMs(first.address).map((atMs) => (atMs - startMs) / 1000)
  assert.deepEqual(seconds(), [0, 4, 8, 12, 16])
  run.clock.advance(90_000)
  for (let times = 1; times <= 4; times++) {
    run.connections.warm([first])
    run.end(first.address)
    run.clock.advance(4000)
  }
  assert.equal(seconds().length, 9)
})

test('a leader never gets more than a tenth of its rate in 100 ms, and the rate of the second all the same', () => {
  using run = start()
  const one = leader('a', 8009)
  run.connections.warm([one])
  const sentAtMs: number[] = []
  for (let passedMs = 0; passedMs < 2000; passedMs += 0.5) {
    const nowMs = run.clock.monotonicMs()
    let isRefused = false
    run.connections.send(one, new Uint8Array(1), () => void (isRefused = true))
    if (!isRefused) sentAtMs.push(nowMs)
    run.clock.advance(0.5)
  }
  const counts = sentAtMs.map((fromMs) => sentAtMs.filter((ms) => ms >= fromMs && ms < fromMs + 100).length)
  assert.equal(Math.max(...counts), 18)
  assert.ok(sentAtMs.length > 350 && sentAtMs.length <= 360, `${sentAtMs.length} in two seconds`)
})
