import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { until } from '../../../src/platform/process/test-wait.ts'
import type { QuicConnection } from '../../../src/platform/quic/connection.ts'
import type { QuicEnd } from '../../../src/platform/quic/connection-options.ts'
import { type OpenQuicOptions, openQuic } from '../../../src/platform/quic/open-quic.ts'
import type { StreamOutcome } from '../../../src/platform/quic/send-streams.ts'
import { TPU_ALPN } from '../../../src/solana/crypto/tpu-certificate.ts'
import { quicIdentity } from './quic-identity.ts'

/** The client's identity. */
export const QUIC_CLIENT = quicIdentity(5)
const WAIT_MS = 120_000

export type QuicClient = { readonly connection: QuicConnection; readonly ends: QuicEnd[]; isOpen(): boolean }

/** A connection to a loopback port, where a peer with this key is expected. */
export function connectQuic(
  port: number,
  peer: { readonly publicKey: Uint8Array },
  options: Partial<OpenQuicOptions> = {},
): QuicClient {
  const ends: QuicEnd[] = []
  let isOpen = false
  const connection = openQuic(
    {
      to: { ip: '127.0.0.1', port },
      alpn: TPU_ALPN,
      serverName: '127.0.0.1.8009.sol',
      certificate: QUIC_CLIENT,
      initialWindowBytes: 128 * 1232,
      handshakeTimeoutMs: 30_000,
      ...options,
    },
    {
      clock: systemClock,
      random: secureRandom,
      isPeer: (key) => Buffer.compare(key, peer.publicKey) === 0,
      onOpen: () => {
        isOpen = true
      },
      onEnd: (end) => ends.push(end),
    },
  )
  return { connection, ends, isOpen: () => isOpen }
}

/** Sends numbered streams as fast as they are accepted and waits for the outcome of each. */
export async function sendMany(
  client: QuicClient,
  count: number,
): Promise<Record<StreamOutcome | 'not-taken', number>> {
  const outcomes = { delivered: 0, refused: 0, busy: 0, lost: 0, 'not-taken': 0 }
  const settled = () => Object.values(outcomes).reduce((sum, count) => sum + count)
  let next = 0
  await until(
    'every stream has an outcome',
    () => {
      while (next < count) {
        const isTaken = client.connection.send(numberedStream(next), (outcome) => (outcomes[outcome] += 1))
        if (!isTaken && client.ends.length === 0) break
        if (!isTaken) outcomes['not-taken'] += 1
        next += 1
      }
      return settled() === count
    },
    WAIT_MS,
  )
  return outcomes
}

/** Up to the size of a packet, and sometimes the maximum size of a transaction. */
export function numberedStream(n: number): Uint8Array {
  const bytes = new Uint8Array(n % 50 === 49 ? 4096 : 200 + ((n * 37) % 1033))
  new DataView(bytes.buffer).setUint32(0, n)
  return bytes
}
