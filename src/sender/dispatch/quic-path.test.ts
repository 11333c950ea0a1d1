import assert from 'node:assert/strict'
import { createSocket, type RemoteInfo } from 'node:dgram'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { quicIdentity } from '../../../test/support/sender/quic-identity.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { until } from '../../platform/process/test-wait.ts'
import { TestServer } from '../../platform/quic/test-server.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { parseSenderOptions } from '../options.ts'
import type { AttemptReport, Job } from '../receipts/receipt.ts'
import { startQuicPath } from './quic-path.ts'

const [A, B] = [quicIdentity(11), quicIdentity(12)].map(({ publicKey }) => encodeBase58(publicKey)) as [string, string]
/** An identity that is neither leader. */
const RELAY = quicIdentity(13)

async function startWithRelay() {
  const clock = createManualClock()
  const socket = createSocket('udp4').bind(0, '127.0.0.1')
  await once(socket, 'listening')
  const address = `127.0.0.1:${(socket.address() as AddressInfo).port}`
  const clientPorts = new Set<number>()
  let client: RemoteInfo | undefined
  const send = (datagram: Uint8Array) => {
    if (client !== undefined) socket.send(datagram, client.port, client.address)
  }
  const relay = new TestServer({ ...RELAY, streamsMax: 128 }, { clock, send })
  socket.on('message', (datagram, from) => {
    clientPorts.add(from.port)
    client = from
    relay.receive(datagram)
  })
  const results: Record<string, unknown> = {
    getClusterNodes: [A, B].map((pubkey) => ({ pubkey, tpuQuic: address })),
    getSlotLeaders: Array.from({ length: 1000 }, (_, at) => [A, B][Math.floor(at / 4) % 2]),
  }
  let slot = 100
  const quic = startQuicPath(parseSenderOptions({ quic: { allowPrivate: true } }).quic, {
    callNode: async (method) => results[method],
    slot: () => slot,
    slotMs: () => 400,
    identity: quicIdentity(14),
    clock,
    random: createSeededRandom(1),
  })
  return {
    clock,
    quic,
    relay,
    clientPorts,
    setSlot: (to: number) => (slot = to),
    [Symbol.dispose]() {
      quic[Symbol.dispose]()
      relay.stop()
      socket.close()
    },
  }
}

test('leaders behind a relay, whose certificate has a key of its own, share a connection and get a transaction once', async () => {
  using run = await startWithRelay()
  await run.clock.advanceAsync(1000)
  await until('the relay is connected', () => run.quic.connections === 1)
  const reports: Omit<AttemptReport, 'path'>[] = []
  const send = () => run.quic.path.send({ wire: new Uint8Array(300) } as Job, (report) => reports.push(report))
  send()
  await until('the transaction has a response', () => reports.length === 1)
  // The leader after the current one has the same address.
  run.setSlot(104)
  send()
  await until('the second has a response', () => reports.length === 2)
  assert.deepEqual(reports, [
    { to: A, response: 'taken', message: '' },
    { to: B, response: 'taken', message: '' },
  ])
  assert.deepEqual([run.relay.whole, run.clientPorts.size], [2, 1])
})
