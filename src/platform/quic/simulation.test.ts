import assert from 'node:assert/strict'
import { test } from 'node:test'
import { repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { CLIENT, simulate } from '../../../test/support/sender/quic-simulation.ts'
import { createSeededRandom } from '../../core/random.ts'

test('on a network that loses, duplicates and reorders, every stream arrives complete and is reported once', (t) => {
  const random = createSeededRandom(seedOf(t))
  const runs = repeatsOf({ short: 8, full: 200 })
  for (let run = 0; run < runs; run++) {
    const network = {
      loss: 0.02 + random.float() * 0.2,
      double: 0.05,
      delayMs: 1 + random.float() * 40,
      jitterMs: random.float() * 60,
    }
    const sim = simulate({ random, network, client: { idleTimeoutMs: 120_000, handshakeTimeoutMs: 120_000 } })
    sim.send(40, 1232)
    sim.until('every stream has an outcome', () => sim.outcomes.length === 40)
    assert.deepEqual(new Set(sim.outcomes), new Set(['delivered']), JSON.stringify(network))
    assert.equal(sim.server.whole, 40)
    for (const [id, { bytes, end }] of sim.server.streams) {
      assert.equal(end, 1232)
      assert.ok(
        bytes.subarray(0, 1232).every((byte) => byte === (((id - 2) / 4) & 255)),
        'the bytes of a stream are its own',
      )
    }
    assert.deepEqual(sim.server.clientCertificate, CLIENT.der)
    assert.deepEqual(
      sim.server.seen.filter((word) => word.startsWith('bad')),
      [],
    )
    sim.connection.close()
    sim.until('it is gone', () => sim.state.isGone)
    sim.server.stop()
  }
})

test('without initial credit streams wait, STREAMS_BLOCKED is sent, and they go out when credit arrives', (t) => {
  const sim = simulate({ random: createSeededRandom(seedOf(t)), server: { streamsMax: 0 } })
  sim.send(10)
  sim.until('the handshake is over', () => sim.state.isOpen && sim.server.isDone)
  sim.until('the server knows that streams wait', () => sim.server.seen.includes('blocked streams 0'))
  assert.equal(sim.server.streams.size, 0)
  sim.server.frame((to) => to.u8(0x13).varint(4))
  sim.until('four have come', () => sim.outcomes.length === 4)
  sim.until('and more wait', () => sim.server.seen.includes('blocked streams 4'))
  sim.server.frame((to) => to.u8(0x13).varint(10))
  sim.until('all have come', () => sim.outcomes.length === 10)
  assert.equal(sim.server.whole, 10)
})

test('after a Retry the client starts again with the token, and verifies the connection ids', (t) => {
  const sim = simulate({ random: createSeededRandom(seedOf(t)), server: { sendsRetry: true }, network: { loss: 0.1 } })
  sim.send(5)
  sim.until('all have come', () => sim.outcomes.length === 5)
  assert.equal(sim.connection.stats.hasRetried, true)
  const forged = simulate({ random: createSeededRandom(3) })
  forged.connection.receive(Uint8Array.of(0xf0, 0, 0, 0, 1, 0, 0, ...new Uint8Array(40)))
  assert.equal(forged.connection.stats.hasRetried, false, 'a Retry without a valid tag is ignored')
})

test('key updates of both sides under loss', (t) => {
  const sim = simulate({ random: createSeededRandom(seedOf(t)), network: { loss: 0.05 } })
  for (let round = 1; round <= 5; round++) {
    sim.send(20)
    sim.until('the round is over', () => sim.outcomes.length === round * 20)
    sim.server.updateKeys()
    sim.until('the client has followed', () => sim.connection.stats.keyUpdates === round)
  }
  assert.deepEqual(new Set(sim.outcomes), new Set(['delivered']))
})

test('uses a new connection id of the peer and retires the old one', (t) => {
  const sim = simulate({ random: createSeededRandom(seedOf(t)) })
  sim.until('the handshake is over', () => sim.state.isOpen && sim.server.isDone)
  sim.server.frame((to) => to.u8(0x1a).put(Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)))
  sim.until('the client responds to PATH_CHALLENGE', () => sim.server.seen.includes('path 0102030405060708'))
  const id = Uint8Array.of(0x5e, 0x4e, 0x4e, 0x4e, 0x4e, 0x4e, 0x4e, 1)
  sim.server.frame((to) => to.u8(0x18).varint(1).varint(1).u8(8).put(id).put(new Uint8Array(16).fill(0xcd)))
  sim.until('the old name is retired', () => sim.server.seen.includes('retired 0'))
  sim.connection.receive(Uint8Array.of(0x40, ...new Uint8Array(30), ...new Uint8Array(16).fill(0xab)))
  assert.equal(sim.ends.length, 0, 'the reset token of a retired connection id is ignored')
  sim.send(1)
  sim.connection.receive(Uint8Array.of(0x40, ...new Uint8Array(30), ...new Uint8Array(16).fill(0xcd)))
  assert.deepEqual([sim.ends[0]?.by, sim.outcomes], ['reset', ['lost']])
})

test('a stream that the peer stops is refused and reset', (t) => {
  const sim = simulate({ random: createSeededRandom(seedOf(t)), server: { streamsMax: 1 } })
  sim.until('the handshake is over', () => sim.state.isOpen && sim.server.isDone)
  sim.until('credit has come', () => {
    sim.clock.advance(50)
    return true
  })
  sim.network.loss = 1
  sim.send(1)
  sim.clock.advance(20)
  sim.network.loss = 0
  sim.server.frame((to) => to.u8(0x05).varint(2).varint(77))
  sim.until('the stream has an outcome', () => sim.outcomes.length === 1)
  assert.deepEqual(sim.outcomes, ['refused'])
  sim.until('the reset has come', () => sim.server.seen.includes('reset 2 77 300'))
})

test('a stream longer than the window of the peer is refused unsent, and neither delays nor ends what the others share', (t) => {
  const sim = simulate({ random: createSeededRandom(seedOf(t)), server: { streamDataMax: 1232 } })
  sim.send(1, 2000)
  sim.send(5, 500)
  sim.until('all have an outcome', () => sim.outcomes.length === 6, 1000)
  assert.deepEqual(sim.outcomes, ['refused', ...Array(5).fill('delivered')])
  assert.match(sim.reasons[0] ?? '', /1232 bytes, and this one has 2000/)
  sim.send(1, 1233)
  assert.deepEqual([sim.outcomes.length, sim.outcomes[6]], [7, 'refused'], 'at once')
  sim.send(1, 1232)
  sim.until('the one that just fits has come', () => sim.outcomes.length === 8)
  assert.deepEqual([sim.server.whole, sim.server.streams.size, sim.ends.length], [6, 6, 0])
  assert.deepEqual(
    sim.server.seen.filter((one) => /^(blocked (data|stream )|bad|reset)/.test(one)),
    [],
  )
})

test('a forbidden frame ends the connection with its error code', (t) => {
  const random = createSeededRandom(seedOf(t))
  const cases: [
    string,
    number,
    (to: { u8(value: number): { varint(value: number): { varint(value: number): unknown } } }) => unknown,
  ][] = [
    ['a stream of its own', 0x04, (to) => to.u8(0x0a).varint(3).varint(0)],
    ['data on our stream', 0x05, (to) => to.u8(0x0a).varint(2).varint(0)],
    ['credit for no stream', 0x05, (to) => to.u8(0x11).varint(402).varint(5)],
    ['an unknown frame type', 0x07, (to) => to.u8(0x2f).varint(0).varint(0)],
    [
      'an acknowledgement of the future',
      0x0a,
      (to) =>
        (
          to.u8(0x02).varint(9999) as unknown as {
            varint(v: number): { varint(v: number): { varint(v: number): unknown } }
          }
        )
          .varint(0)
          .varint(0)
          .varint(0),
    ],
  ]
  for (const [what, code, frame] of cases) {
    const sim = simulate({ random })
    sim.send(1)
    sim.until('the handshake is over', () => sim.outcomes.length === 1)
    sim.server.frame(frame as never)
    sim.until(what, () => sim.ends.length === 1)
    assert.deepEqual([sim.ends[0]?.by, sim.ends[0]?.code], ['fault', code], what)
    sim.until('the peer receives CONNECTION_CLOSE', () => sim.server.seen.includes(`close ${code}`))
    sim.until('and the socket is free', () => sim.state.isGone)
    sim.server.stop()
  }
})

test('the handshake times out without a reply; an idle peer ends the connection, unless it is kept alive', (t) => {
  const random = createSeededRandom(seedOf(t))
  const alone = simulate({ random, network: { loss: 1 }, client: { handshakeTimeoutMs: 4000 } })
  alone.send(2)
  alone.until('it has ended', () => alone.ends.length === 1, 5000)
  assert.deepEqual([alone.ends[0]?.by, alone.outcomes], ['handshake-timeout', ['lost', 'lost']])
  assert.equal(alone.clock.pendingTimers(), 1, 'only the timer of the server is left')

  const kept = simulate({ random, client: { idleTimeoutMs: 10_000, keepAliveMs: 1000 } })
  kept.send(1)
  kept.until('it is open', () => kept.outcomes.length === 1)
  kept.clock.advance(120_000)
  assert.equal(kept.ends.length, 0)
  kept.network.loss = 1
  kept.send(1)
  kept.until('it has ended', () => kept.ends.length === 1, 30_000)
  assert.deepEqual([kept.ends[0]?.by, kept.outcomes], ['idle', ['delivered', 'lost']])
  assert.equal(kept.connection.send(new Uint8Array(1), assert.fail), false)
})

test('streams of one event-loop iteration share a packet, which is sent at its end', () => {
  const planned: (() => void)[] = []
  const sluice = simulate({ random: createSeededRandom(1), soon: (run) => planned.push(run) })
  sluice.until('it is open', () => sluice.state.isOpen && sluice.connection.stats.bytesInFlight === 0)
  for (let turn = 0; turn < 3; turn++) {
    const { packetsSent } = sluice.connection.stats
    sluice.send(3, 200)
    assert.deepEqual(
      [planned.length, sluice.connection.stats.packetsSent],
      [1, packetsSent],
      'in the turn nothing is sent',
    )
    planned.pop()?.()
    assert.equal(sluice.connection.stats.packetsSent, packetsSent + 1)
    sluice.until('they are delivered', () => sluice.outcomes.length === 3 * (turn + 1))
  }
})

test('what is more than a burst follows at once, not with the first acknowledgement', () => {
  const planned: (() => void)[] = []
  const sim = simulate({
    random: createSeededRandom(1),
    soon: (run) => planned.push(run),
    network: { delayMs: 50 },
    client: { initialWindowBytes: 1_000_000 },
  })
  sim.until('it is open', () => sim.state.isOpen && sim.connection.stats.bytesInFlight === 0)
  const { packetsSent } = sim.connection.stats
  sim.send(200, 1000)
  planned.pop()?.()
  const burst = sim.connection.stats.packetsSent - packetsSent
  assert.ok(burst < 100, `${burst} packets at once`)
  sim.clock.advance(10)
  assert.equal(sim.connection.stats.packetsSent - packetsSent, 200)
})

test('data within the smallest window does not wait for the congestion window under loss', (t) => {
  const windowBytesMin = 128 * 1232
  const sim = simulate({
    random: createSeededRandom(seedOf(t)),
    network: { delayMs: 50, jitterMs: 1 },
    client: { initialWindowBytes: windowBytesMin, windowBytesMin },
  })
  sim.until('the handshake is over', () => sim.state.isOpen && sim.server.isDone)
  sim.network.loss = 0.05
  // 100 streams a second. With a window of two datagrams only twenty could leave.
  for (let n = 0; n < 500; n++) {
    sim.send(1, 700)
    sim.clock.advance(10)
  }
  sim.clock.advance(1000)
  assert.deepEqual([sim.outcomes.length, sim.server.whole], [500, 500])
  assert.ok(sim.connection.stats.lostPackets > 5)
  assert.ok(sim.connection.stats.windowBytes >= windowBytesMin)
})
