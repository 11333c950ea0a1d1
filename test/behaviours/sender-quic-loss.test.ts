import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { loadNativeSeal } from '../../src/platform/quic/native-seal.ts'
import { startQuicPath, windowBytesFor } from '../../src/sender/dispatch/quic-path.ts'
import { parseSenderOptions } from '../../src/sender/options.ts'
import type { Job } from '../../src/sender/receipts/receipt.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { startUdpFaultProxy } from '../faults/udp-fault-proxy.ts'
import { seedOf } from '../support/process/property.ts'
import { QUIC_CLIENT } from '../support/sender/quic-client.ts'
import { hasPeer, startQuicPeer } from '../support/sender/quic-peer.ts'

const withDeno = { skip: hasPeer('deno') ? false : 'no deno for this machine is installed' }
const TRANSACTIONS = 600
/** At most 125 a second; the default of `perLeaderPerSecond` is 180. */
const EVERY_MS = 8

test('a leader 100 ms away gets every transaction in time though 5 % of the packets are lost', withDeno, async (t) => {
  await using peer = await startQuicPeer('deno')
  const faults = { delayMs: 50 }
  const random = createSeededRandom(seedOf(t))
  await using proxy = await startUdpFaultProxy({ target: { host: '127.0.0.1', port: peer.port }, faults }, { random })
  const identity = encodeBase58(peer.publicKey)
  const results: Record<string, unknown> = {
    getClusterNodes: [{ pubkey: identity, tpuQuic: `127.0.0.1:${proxy.port}` }],
    getSlotLeaders: Array.from({ length: 1000 }, () => identity),
  }
  const { quic: options } = parseSenderOptions({ quic: { allowPrivate: true, leaders: 1 } })
  using quic = startQuicPath(options, {
    callNode: async (method) => results[method],
    slot: () => 100,
    slotMs: () => 400,
    identity: QUIC_CLIENT,
    clock: systemClock,
    random: secureRandom,
    seal: await loadNativeSeal(),
  })
  await until('the leader is connected', () => quic.connections === 1)
  proxy.set({ ...faults, lossRate: 0.05 })
  const responses: string[] = []
  for (let sent = 0; sent < TRANSACTIONS; sent++) {
    const wire = new Uint8Array(700).fill(1)
    new DataView(wire.buffer).setUint32(0, sent)
    quic.path.send({ wire } as Job, ({ response }) => responses.push(response))
    // A pause of the machine is not made up for: more at once than a tenth of the rate would be refused.
    await new Promise((resolve) => setTimeout(resolve, EVERY_MS))
  }
  // A loss costs a round trip or two. A window that every loss halves would take ten seconds more.
  await until('all have a response', () => responses.length === TRANSACTIONS, 4000)
  assert.deepEqual(new Set(responses), new Set(['taken']))
  assert.ok(proxy.counts.upstream.lost > 0)
})

test('the window of a leader is that of the rate it may get over a long way', () => {
  assert.equal(windowBytesFor({ perLeaderPerSecond: 180 }), 128 * 1232)
  assert.equal(windowBytesFor({ perLeaderPerSecond: 10_000 }), 3_500_000)
})
