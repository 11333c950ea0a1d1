import assert from 'node:assert/strict'
import { createManualClock } from '../../../src/core/clock.ts'
import type { Random } from '../../../src/core/random.ts'
import { QuicConnection } from '../../../src/platform/quic/connection.ts'
import { QUIC_DEFAULTS, type QuicEnd, type QuicOptions } from '../../../src/platform/quic/connection-options.ts'
import type { StreamOutcome } from '../../../src/platform/quic/send-streams.ts'
import { TestServer, type TestServerOptions } from '../../../src/platform/quic/test-server.ts'
import { quicIdentity } from './quic-identity.ts'

const SERVER = quicIdentity(1)
export const CLIENT = quicIdentity(2)

type Network = { loss: number; double: number; delayMs: number; jitterMs: number }
type Given = {
  random: Random
  network?: Partial<Network>
  server?: Partial<TestServerOptions>
  client?: Partial<QuicOptions>
  soon?: (run: () => void) => void
}

/** For tests: a client and a server on a random network, all on one manual clock. */
export function simulate({
  random,
  network: given = {},
  server: serverOptions = {},
  client: clientOptions = {},
  soon = (run) => run(),
}: Given) {
  const clock = createManualClock()
  const network: Network = { loss: 0, double: 0, delayMs: 10, jitterMs: 0, ...given }
  const carry = (deliver: (datagram: Uint8Array) => void) => (datagram: Uint8Array) => {
    const copies = random.float() < network.double ? 2 : 1
    for (let copy = 0; copy < copies; copy++) {
      if (random.float() < network.loss) continue
      clock.setTimer(network.delayMs + random.float() * network.jitterMs, () => deliver(datagram))
    }
  }
  const ends: QuicEnd[] = []
  const state = { isOpen: false, isGone: false }
  const server = new TestServer(
    { ...SERVER, streamsMax: 100_000, ...serverOptions },
    { clock, send: carry((datagram) => connection.receive(datagram)) },
  )
  const connection: QuicConnection = new QuicConnection(
    {
      ...QUIC_DEFAULTS,
      alpn: 'solana-tpu',
      serverName: 'test',
      handshakeTimeoutMs: 60_000,
      certificate: CLIENT,
      ...clientOptions,
    },
    {
      clock,
      randomBytes: (count) => random.bytes(count),
      send: carry((datagram) => server.receive(datagram)),
      soon,
      isPeer: (key) => Buffer.compare(key, SERVER.publicKey) === 0,
      onOpen: () => {
        state.isOpen = true
      },
      onEnd: (end) => ends.push(end),
      onGone: () => {
        state.isGone = true
      },
    },
  )
  const outcomes: StreamOutcome[] = []
  const reasons: string[] = []
  return {
    clock,
    network,
    server,
    connection,
    ends,
    state,
    outcomes,
    reasons,
    send(count: number, bytes = 300): void {
      for (let n = 0; n < count; n++) {
        const data = new Uint8Array(bytes).fill(n & 255)
        const done = (outcome: StreamOutcome, reason: string) => {
          outcomes.push(outcome)
          reasons.push(reason)
        }
        assert.ok(connection.send(data, done))
      }
    },
    until(what: string, holds: () => boolean, withinMs = 300_000): void {
      const endMs = clock.monotonicMs() + withinMs
      while (!holds()) {
        assert.ok(
          clock.monotonicMs() < endMs,
          `within ${withinMs} ms of manual time it did not become true that ${what}`,
        )
        clock.advance(5)
      }
    },
  }
}
