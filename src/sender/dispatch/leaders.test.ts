import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { QuicConnection } from '../../platform/quic/connection.ts'
import { QUIC_DEFAULTS } from '../../platform/quic/connection-options.ts'
import type { StreamDone } from '../../platform/quic/send-streams.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { createLeaderConnections, type OpenLeader } from './leader-connections.ts'
import { leadersWithin, startLeaders } from './leaders.ts'

const leader = (n: number) => ({
  identity: `leader ${n}`,
  ip: '192.0.2.1',
  port: 8000 + n,
  address: `192.0.2.1:${8000 + n}`,
})

const [A, B, C, D, E] = [1, 2, 3, 4, 5].map((n) => encodeBase58(new Uint8Array(32).fill(n)))

test('returns the current and following leaders that have an allowed address', async () => {
  const clock = createManualClock()
  let slot = 0
  const asked: string[] = []
  const callNode = async (method: string, params: readonly unknown[]) => {
    asked.push(method)
    if (method === 'getClusterNodes') {
      return [
        { pubkey: A, tpuQuic: '203.0.113.5:8009' },
        { pubkey: B, tpuQuic: '10.0.0.1:8009' },
        { pubkey: C, tpuQuic: '[2600:1f18::5]:8010' },
        { pubkey: D, tpuQuic: null },
        { pubkey: E, tpuQuic: '169.254.169.254:80' },
      ]
    }
    const from = params[0] as number
    return Array.from({ length: 1000 }, (_, at) => [A, B, C, D, E][Math.floor((from + at) / 4) % 5])
  }
  using leaders = startLeaders({ callNode, slot: () => slot, slotMs: () => 400, clock, allowPrivate: false })
  await clock.advanceAsync(2000)
  assert.deepEqual([leaders.next(3), asked], [[], []], 'no call before the slot is known')
  slot = 40
  await clock.advanceAsync(1000)
  // 203.0.113.0/24 is for documentation and never allowed; a private address only with allowPrivate.
  assert.deepEqual(
    leaders.next(3).map(({ identity }) => identity),
    [C],
  )
  assert.equal(asked.filter((method) => method === 'getSlotLeaders').length, 1)
  slot = 900
  await clock.advanceAsync(3000)
  assert.equal(
    asked.filter((method) => method === 'getSlotLeaders').length,
    2,
    'the schedule is fetched again before it ends',
  )
})

test('caches the leaders until the slot, the schedule or the addresses change', async () => {
  const clock = createManualClock()
  let slot = 4
  let port = 8009
  const callNode = async (method: string, params: readonly unknown[]) => {
    if (method === 'getClusterNodes') return [A, B, C].map((pubkey, n) => ({ pubkey, tpuQuic: `10.0.0.${n}:${port}` }))
    return Array.from({ length: 1000 }, (_, at) => [A, B, C][Math.floor(((params[0] as number) + at) / 4) % 3])
  }
  using leaders = startLeaders({ callNode, slot: () => slot, slotMs: () => 400, clock, allowPrivate: true })
  const names = (count: number) => leaders.next(count).map(({ identity }) => identity)
  assert.deepEqual(names(2), [])
  await clock.advanceAsync(1000)
  assert.deepEqual(
    [names(2), names(3), names(2)],
    [
      [B, C],
      [B, C, A],
      [B, C],
    ],
  )
  slot = 8
  assert.deepEqual(names(2), [C, A])
  port = 9000
  await clock.advanceAsync(61_000)
  assert.equal(leaders.next(1)[0]?.port, 9000)
})

test('while no node reports a slot the slots pass by time, up to 16 of them', async () => {
  for (const slotMs of [400, 200]) {
    const clock = createManualClock()
    let slot = 4
    const callNode = async (method: string, params: readonly unknown[]) => {
      const names = [A, B, C, D, E]
      if (method === 'getClusterNodes') return names.map((pubkey, n) => ({ pubkey, tpuQuic: `10.0.0.${n}:8009` }))
      return Array.from({ length: 1000 }, (_, at) => names[Math.floor(((params[0] as number) + at) / 4) % 5])
    }
    using leaders = startLeaders({ callNode, slot: () => slot, slotMs: () => slotMs, clock, allowPrivate: true })
    await clock.advanceAsync(1000)
    const current = () => leaders.next(1)[0]?.identity
    slot = 7
    assert.equal(current(), B)
    clock.advance(slotMs - 1)
    assert.equal(current(), B, 'the last slot of its four')
    clock.advance(1)
    assert.equal(current(), C)
    slot = 8
    assert.equal(current(), C)
    clock.advance(4 * slotMs)
    assert.equal(current(), D)
    slot = 9
    assert.equal(current(), C, 'what a node reports counts')
    clock.advance(15 * slotMs)
    assert.equal(current(), B, 'slot 24')
    // Slot 25. The chain may have stopped.
    clock.advance(1000 * slotMs)
    assert.equal(current(), B)
    slot = 12
    assert.equal(current(), D)
  }
})

test('opens connections in advance, limited in number and rate', () => {
  const clock = createManualClock()
  const opened: string[] = []
  const ends: (() => void)[] = []
  const sent: [string, StreamDone][] = []
  const open: OpenLeader = (to, on) => {
    opened.push(to.identity)
    let isOver = false
    const end = () => {
      if (isOver) return
      isOver = true
      on.onEnd({ by: 'peer', code: 4, isApplication: true, message: 'too_many' })
    }
    ends.push(end)
    return {
      get state() {
        return isOver ? ('gone' as const) : ('open' as const)
      },
      send(_bytes, done) {
        sent.push([to.identity, done])
        return !isOver
      },
      close: end,
    }
  }
  using connections = createLeaderConnections({ connectionsMax: 3, perLeaderPerSecond: 100 }, { clock, open })
  connections.warm([leader(1), leader(2)])
  connections.warm([leader(1), leader(2)])
  assert.deepEqual([opened, connections.open], [['leader 1', 'leader 2'], 2])

  const responses: string[] = []
  const send = (n: number) =>
    connections.send(leader(n), new Uint8Array(1), (outcome, message) => responses.push(`${outcome} ${message}`.trim()))
  send(1)
  sent[0]?.[1]('delivered', '')
  send(1)
  sent[1]?.[1]('refused', 'too long')
  assert.deepEqual(responses, ['delivered', 'refused too long'])
  for (let n = 0; n < 20; n++) send(1)
  assert.ok(responses.includes('busy 100 per second to one leader'), 'the rate a leader allows is kept')

  ends[0]?.()
  responses.length = 0
  for (let n = 0; n < 10; n++) {
    send(1)
    clock.advance(100)
  }
  assert.equal(opened.filter((identity) => identity === 'leader 1').length, 1, 'not again in the same second')
  assert.ok(responses.some((response) => response.startsWith('unreachable peer 4: too_many')))

  clock.advance(1000)
  connections.warm([leader(3), leader(4), leader(5)])
  assert.equal(connections.open <= 3, true)
  clock.advance(40_000)
  assert.equal(connections.open, 0, 'connections to unused leaders are closed')
})

test('a transaction that is lost with its connection has the reason for which that connection ended', () => {
  const clock = createManualClock()
  const ends = [
    // No response comes: the handshake times out.
    (connection: QuicConnection) => void connection,
    (connection: QuicConnection) => connection.abandon('no route to host'),
  ]
  const open: OpenLeader = (_to, on) => {
    const options = { ...QUIC_DEFAULTS, alpn: 'solana-tpu', serverName: '', handshakeTimeoutMs: 1000 }
    const connection = new QuicConnection(options, {
      clock,
      randomBytes: (count) => new Uint8Array(count).fill(1),
      send() {},
      soon: (run) => run(),
      isPeer: () => true,
      onGone() {},
      ...on,
    })
    const end = ends.shift()
    clock.setTimer(500, () => end?.(connection))
    return connection
  }
  using connections = createLeaderConnections({ connectionsMax: 3, perLeaderPerSecond: 100 }, { clock, open })
  const responses: string[] = []
  for (const _ of [1, 2]) {
    connections.send(leader(1), new Uint8Array(1), (outcome, message) => responses.push(`${outcome} ${message}`))
    clock.advance(4000)
  }
  assert.deepEqual(responses, [
    'lost handshake-timeout 0: the handshake took too long',
    'lost unreachable 0: no route to host',
  ])
})

test('half of the streams to a leader are kept for new transactions', () => {
  const clock = createManualClock()
  const open: OpenLeader = () => ({ state: 'open', send: () => true, close() {} })
  using connections = createLeaderConnections({ connectionsMax: 3, perLeaderPerSecond: 100 }, { clock, open })
  assert.equal(connections.hasSpare(leader(1)), true, 'one without a connection')
  // The burst is ten.
  for (let sent = 0; sent < 6; sent++) {
    assert.equal(connections.hasSpare(leader(1)), true)
    connections.send(leader(1), new Uint8Array(1), () => {})
  }
  assert.equal(connections.hasSpare(leader(1)), false)
})

test('the schedule is known for the same time ahead at any length of a slot', async () => {
  for (const [slotMs, requested, ahead] of [
    [400, 1000, 200],
    [200, 2000, 400],
    [50, 5000, 1600],
  ] as const) {
    const clock = createManualClock()
    let slot = 1000
    const asked: number[] = []
    const callNode = async (method: string, params: readonly unknown[]) => {
      if (method === 'getClusterNodes') return [{ pubkey: A, tpuQuic: '10.0.0.1:8009' }]
      asked.push(params[1] as number)
      return Array.from({ length: params[1] as number }, () => A)
    }
    using _leaders = startLeaders({ callNode, slot: () => slot, slotMs: () => slotMs, clock, allowPrivate: true })
    await clock.advanceAsync(5000)
    assert.deepEqual(asked, [requested])
    slot = 1000 + requested - ahead
    await clock.advanceAsync(5000)
    assert.deepEqual(asked, [requested])
    slot += 1
    await clock.advanceAsync(5000)
    assert.deepEqual(asked, [requested, requested])
  }
})

test('with short epochs as many slots are requested as the next epoch allows, and the leaders are always known', async () => {
  const clock = createManualClock()
  const epoch = 32
  const start = 1000
  const slot = () => start + Math.floor(clock.monotonicMs() / 400)
  let calls = 0
  const callNode = async (method: string, params: readonly unknown[]) => {
    if (method === 'getClusterNodes') return [{ pubkey: A, tpuQuic: '10.0.0.1:8009' }]
    calls += 1
    const [from, count] = params as [number, number]
    const known = (Math.floor(slot() / epoch) + 2) * epoch
    return from + count > known ? undefined : Array.from({ length: count }, () => A)
  }
  using leaders = startLeaders({ callNode, slot, slotMs: () => 400, clock, allowPrivate: true })
  await clock.advanceAsync(15_000)
  calls = 0
  for (let seconds = 0; seconds < 100; seconds++) {
    await clock.advanceAsync(1000)
    assert.equal(leaders.next(1).length, 1, `after ${seconds} s`)
  }
  assert.ok(calls < 40, `${calls} calls`)
})

test('a schedule that is shorter than what is known, after failures, does not replace it', async () => {
  const clock = createManualClock()
  const slot = () => 1000 + Math.floor(clock.monotonicMs() / 400)
  let isAway = false
  const lengths: number[] = []
  const callNode = async (method: string, params: readonly unknown[]) => {
    if (isAway) return undefined
    if (method === 'getClusterNodes') return [{ pubkey: A, tpuQuic: '10.0.0.1:8009' }]
    lengths.push(Number(params[1]))
    return Array.from({ length: Number(params[1]) }, () => A)
  }
  using leaders = startLeaders({ callNode, slot, slotMs: () => 400, clock, allowPrivate: true })
  await clock.advanceAsync(315_000)
  // The schedule is to be renewed within the outage.
  isAway = true
  await clock.advanceAsync(20_000)
  isAway = false
  await clock.advanceAsync(2500)
  isAway = true
  assert.deepEqual(lengths, [1000, 32])
  for (let seconds = 0; seconds < 40; seconds++) {
    await clock.advanceAsync(1000)
    assert.equal(leaders.next(1).length, 1, `after ${seconds} s`)
  }
})

test('a time holds twice as many leaders when slots are half as long', () => {
  assert.deepEqual([leadersWithin(12_800, 400), leadersWithin(12_800, 200), leadersWithin(12_800, 350)], [8, 16, 10])
})
