import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import type { StreamOutcome } from '../../src/platform/quic/send-streams.ts'
import { startUdpFaultProxy } from '../faults/udp-fault-proxy.ts'
import { isFull, seedOf } from '../support/process/property.ts'
import { connectQuic, numberedStream, sendMany } from '../support/sender/quic-client.ts'
import { hasPeer, makeClientCertificate, type PeerKind, startQuicPeer } from '../support/sender/quic-peer.ts'

const KINDS: readonly PeerKind[] = ['deno', 'bun']

for (const kind of KINDS) {
  const withPeer = { skip: hasPeer(kind) ? false : `no ${kind} for this machine is installed` }

  test(`${kind}: completes the handshake and delivers every transaction`, withPeer, async () => {
    await using peer = await startQuicPeer(kind)
    const client = connectQuic(peer.port, peer)
    const count = isFull ? 10_000 : 500
    const outcomes = await sendMany(client, count)
    assert.deepEqual(outcomes, { delivered: count, refused: 0, busy: 0, lost: 0, 'not-taken': 0 })
    assert.deepEqual(client.connection.peerKey, peer.publicKey)
    // The peer's transport acknowledges before the program behind it has read.
    await until('all of them are read', async () => (await peer.report()).distinct === count)
    assert.equal((await peer.report()).streams, count, 'each exactly once')
    client.connection.close(7, 'bye')
    assert.deepEqual(client.ends, [{ by: 'us', code: 7, isApplication: true, message: 'bye' }])
    await until('the peer has received the close', () =>
      peer.events.some(({ event, code }) => event === 'closed' && code === 7),
    )
    assert.equal(client.connection.send(numberedStream(1), assert.fail), false)
    await until('the connection is gone', () => client.connection.state === 'gone')
  })

  test(
    `${kind}: delivers every transaction despite 5 % loss, reordering, duplicates and damage in both directions`,
    withPeer,
    async (t) => {
      await using peer = await startQuicPeer(kind)
      const faults = {
        lossRate: 0.05,
        reorderRate: 0.05,
        duplicateRate: 0.02,
        damageRate: 0.01,
        delayMs: 3,
        jitterMs: 2,
      }
      const random = createSeededRandom(seedOf(t))
      await using proxy = await startUdpFaultProxy(
        { target: { host: '127.0.0.1', port: peer.port }, faults },
        { random },
      )
      const client = connectQuic(proxy.port, peer)
      const count = isFull ? 10_000 : 500
      const outcomes = await sendMany(client, count)
      assert.deepEqual(outcomes, { delivered: count, refused: 0, busy: 0, lost: 0, 'not-taken': 0 })
      await until('all of them are read', async () => (await peer.report()).distinct === count)
      assert.ok(proxy.counts.upstream.lost > 0 && client.connection.stats.lostPackets > 0)
      t.diagnostic(JSON.stringify(client.connection.stats))
      client.connection.close()
    },
  )

  test(`${kind}: delivers with a low stream limit and across key updates`, withPeer, async () => {
    const few =
      kind === 'deno' ? { maxConcurrentUnidirectionalStreams: 4 } : { transportParams: { initialMaxStreamsUni: 4 } }
    await using peer = await startQuicPeer(kind, few)
    const client = connectQuic(peer.port, peer, { keyUpdatePackets: 50 })
    const outcomes = await sendMany(client, 300)
    assert.equal(outcomes.delivered, 300)
    assert.ok(client.connection.stats.keyUpdates > 1)
    await until('all of them are read', async () => (await peer.report()).distinct === 300)
    client.connection.close()
  })

  test(`${kind}: sends nothing without stream credit, and reports all of it as lost`, withPeer, async () => {
    const none =
      kind === 'deno' ? { maxConcurrentUnidirectionalStreams: 0 } : { transportParams: { initialMaxStreamsUni: 0 } }
    await using peer = await startQuicPeer(kind, none)
    const client = connectQuic(peer.port, peer, { streamsQueuedMax: 20 })
    const outcomes: StreamOutcome[] = []
    for (let n = 0; n < 20; n++)
      assert.ok(client.connection.send(numberedStream(n), (outcome) => outcomes.push(outcome)))
    assert.equal(client.connection.send(numberedStream(20), assert.fail), false, 'the queue is full')
    await until('the handshake is over', () => client.isOpen())
    await until('the peer has seen the client', () => peer.events.some(({ event }) => event === 'session'))
    assert.equal((await peer.report()).streams, 0)
    assert.deepEqual(outcomes, [])
    client.connection.close()
    assert.deepEqual(new Set(outcomes), new Set(['lost']))
    assert.equal(outcomes.length, 20)
  })

  test(`${kind}: reports a close by the peer, and accepts no streams afterwards`, withPeer, async () => {
    await using peer = await startQuicPeer(kind)
    const client = connectQuic(peer.port, peer, { keepAliveMs: 100 })
    assert.equal((await sendMany(client, 20)).delivered, 20)
    peer.write('close')
    await until('the close is received', () => client.ends.length === 1)
    // Bun drops the connection silently, and responds to the next packet with a stateless reset.
    assert.equal(client.ends[0]?.by, kind === 'deno' ? 'peer' : 'reset')
    if (kind === 'deno') assert.deepEqual([client.ends[0]?.code, client.ends[0]?.message], [4, 'too_many'])
    assert.equal((await sendMany(client, 5))['not-taken'], 5)
  })

  test(`${kind}: closes a connection at the idle timeout, unless it is kept alive`, withPeer, async () => {
    const idle = kind === 'deno' ? { maxIdleTimeout: 1000 } : { transportParams: { maxIdleTimeout: 1000 } }
    await using peer = await startQuicPeer(kind, idle)
    const kept = connectQuic(peer.port, peer, { keepAliveMs: 200 })
    const silent = connectQuic(peer.port, peer, { idleTimeoutMs: 1200 })
    await until('both are open', () => kept.isOpen() && silent.isOpen(), 30_000)
    await until('the silent one has ended', () => silent.ends.length === 1, 30_000)
    assert.ok(['idle', 'peer'].includes(silent.ends[0]?.by ?? ''))
    assert.equal((await sendMany(kept, 5)).delivered, 5)
    kept.connection.close()
  })

  test(`${kind}: reports every stream as lost or not taken when the peer dies`, withPeer, async () => {
    await using peer = await startQuicPeer(kind)
    const client = connectQuic(peer.port, peer, { idleTimeoutMs: 1000 })
    assert.equal((await sendMany(client, 5)).delivered, 5)
    await peer.kill()
    const outcomes = await sendMany(client, 10)
    assert.equal(outcomes.lost + outcomes['not-taken'], 10)
    assert.equal(client.ends[0]?.by, 'idle')
  })

  test(`${kind}: fails the handshake with a key other than the leader's`, withPeer, async () => {
    await using peer = await startQuicPeer(kind)
    const client = connectQuic(peer.port, { publicKey: new Uint8Array(32) })
    const outcomes = await sendMany(client, 3)
    assert.equal(outcomes.lost + outcomes['not-taken'], 3)
    assert.deepEqual([client.ends[0]?.by, client.isOpen()], ['fault', false])
    assert.equal((await peer.report()).streams, 0)
  })
}

test('bun: a server that requires a trusted client certificate accepts only that one', {
  skip: !hasPeer('bun') && 'no bun',
}, async () => {
  const certificate = makeClientCertificate()
  await using peer = await startQuicPeer('bun', { ca: certificate.pem })
  const client = connectQuic(peer.port, peer, { certificate })
  assert.equal((await sendMany(client, 10)).delivered, 10)
  await until('the peer has seen it', () =>
    peer.events.some(
      ({ event, certificate: seen }) => event === 'session' && seen === Buffer.from(certificate.der).toString('hex'),
    ),
  )
  const stranger = connectQuic(peer.port, peer)
  await until('another certificate is refused', () => stranger.ends.length === 1)
  assert.equal(stranger.ends[0]?.by, 'peer')
  const nameless = connectQuic(peer.port, peer, { certificate: undefined })
  await until('a client without one is refused', () => nameless.ends.length === 1)
  client.connection.close()
})
