import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import type { StreamOutcome } from '../../src/platform/quic/send-streams.ts'
import { startUdpFaultProxy } from '../faults/udp-fault-proxy.ts'
import { seedOf } from '../support/process/property.ts'
import { CADDY, hasCaddy, startCaddyPeer } from '../support/sender/caddy-peer.ts'
import { connectQuic, numberedStream, QUIC_CLIENT, sendMany } from '../support/sender/quic-client.ts'
import { quicIdentity } from '../support/sender/quic-identity.ts'

const withCaddy = { skip: hasCaddy ? false : 'no caddy is installed' }
/** Its limit of unidirectional streams; since it reads none of them, it never grants more. */
const STREAMS_MAX = 100
/** The offset of TLS alerts in QUIC error codes (RFC 9001 section 4.8). */
const CRYPTO_ERROR = 0x100
const BAD_CERTIFICATE = 42
const DECRYPT_ERROR = 51

test(
  "caddy: connects with a validator's certificate, uses all stream credit, and reports the rest as lost",
  withCaddy,
  async () => {
    await using peer = await startCaddyPeer()
    const client = connectQuic(peer.port, peer, { ...CADDY, keepAliveMs: 100, streamsQueuedMax: 200 })
    const outcomes: StreamOutcome[] = []
    for (let n = 0; n < STREAMS_MAX + 50; n++)
      assert.ok(client.connection.send(numberedStream(n), (outcome) => outcomes.push(outcome)))
    await until('all that may be sent is acknowledged', () => outcomes.length === STREAMS_MAX, 30_000)
    assert.deepEqual(client.connection.peerKey, peer.publicKey)
    const { active, queued } = client.connection.stats
    assert.deepEqual([active, queued, client.ends], [0, 50, []])
    client.connection.close()
    assert.deepEqual(
      [outcomes.filter((outcome) => outcome === 'delivered').length, outcomes.slice(STREAMS_MAX)],
      [STREAMS_MAX, Array.from({ length: 50 }, () => 'lost')],
    )
  },
)

test(
  'caddy: the peer refuses a client without a certificate, and one without the private key of its certificate',
  withCaddy,
  async () => {
    await using peer = await startCaddyPeer()
    const cases = [
      [undefined, BAD_CERTIFICATE],
      [{ der: QUIC_CLIENT.der, privateKey: quicIdentity(6).privateKey }, DECRYPT_ERROR],
    ] as const
    for (const [certificate, alert] of cases) {
      const client = connectQuic(peer.port, peer, { ...CADDY, certificate })
      const outcomes = await sendMany(client, 5)
      assert.equal(outcomes.lost + outcomes['not-taken'], 5)
      const { by, code, isApplication } = client.ends[0] ?? {}
      assert.deepEqual([by, code, isApplication], ['peer', CRYPTO_ERROR + alert, false])
    }
  },
)

test('caddy: delivers every stream within the credit despite loss, duplicates and reordering', withCaddy, async (t) => {
  await using peer = await startCaddyPeer()
  const faults = { lossRate: 0.05, reorderRate: 0.05, duplicateRate: 0.02, damageRate: 0.01, delayMs: 3, jitterMs: 2 }
  const random = createSeededRandom(seedOf(t))
  await using proxy = await startUdpFaultProxy({ target: { host: '127.0.0.1', port: peer.port }, faults }, { random })
  const client = connectQuic(proxy.port, peer, CADDY)
  const outcomes = await sendMany(client, STREAMS_MAX)
  assert.deepEqual(outcomes, { delivered: STREAMS_MAX, refused: 0, busy: 0, lost: 0, 'not-taken': 0 })
  assert.ok(proxy.counts.upstream.lost > 0, 'nothing was lost on the way')
  t.diagnostic(JSON.stringify(client.connection.stats))
  client.connection.close()
})

test('caddy: closes a connection at the idle timeout, unless it is kept alive', withCaddy, async () => {
  await using peer = await startCaddyPeer()
  const kept = connectQuic(peer.port, peer, { ...CADDY, keepAliveMs: 200, idleTimeoutMs: 1000 })
  const silent = connectQuic(peer.port, peer, { ...CADDY, idleTimeoutMs: 1000 })
  await until('the silent one has ended', () => silent.ends.length === 1, 30_000)
  assert.ok(['idle', 'peer'].includes(silent.ends[0]?.by ?? ''))
  assert.equal((await sendMany(kept, 5)).delivered, 5)
  kept.connection.close()
})

test('caddy: reports every stream as lost or not taken when the peer dies', withCaddy, async () => {
  await using peer = await startCaddyPeer()
  const client = connectQuic(peer.port, peer, { ...CADDY, keepAliveMs: 200, idleTimeoutMs: 1000 })
  assert.equal((await sendMany(client, 5)).delivered, 5)
  await peer.kill()
  const outcomes = await sendMany(client, 10)
  assert.equal(outcomes.lost + outcomes['not-taken'], 10)
  assert.equal(client.ends[0]?.by, 'idle')
})
