import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Seal } from '../../platform/quic/keys.ts'
import { openQuic } from '../../platform/quic/open-quic.ts'
import { TPU_ALPN, tpuCertificate } from '../../solana/crypto/tpu-certificate.ts'
import type { CallNode } from '../../upstreams/call-node.ts'
import type { QuicOptions } from '../options.ts'
import type { Path } from './dispatch.ts'
import { createLeaderConnections } from './leader-connections.ts'
import { leadersWithin, startLeaders } from './leaders.ts'

export type QuicPathDeps = {
  readonly identity: { readonly publicKey: Uint8Array; readonly privateKey: KeyObject }
  readonly callNode: CallNode
  slot(): number
  /** The length of a slot. */
  readonly slotMs: () => number
  readonly clock: Clock
  readonly random: Random
  /** By default that of node:crypto. */
  readonly seal?: Seal | undefined
}

export type QuicPath = Disposable & {
  readonly path: Path
  /** Connections that can carry transactions. */
  readonly connections: number
  message(): string
}

const WARM_MS = 200
/** Connections are opened this long before the leader's first slot: a handshake over a lossy path takes several round trips. */
const WARM_AHEAD_MS = 12_800
const WARM_LEADERS_MAX = 32
/** The values of Agave's quic-client. */
const CONNECTION = {
  idleTimeoutMs: 10_000,
  keepAliveMs: 1000,
  handshakeTimeoutMs: 4000,
  streamsQueuedMax: 512,
} as const
/** As Agave's initial window. */
const WINDOW_BYTES_MIN = 128 * 1232
/** The largest transaction, in two packets. */
const TRANSACTION_BYTES = 1400
/** The longest round trip, with the delay of acknowledgements, over which the whole rate to a leader is in flight. */
const ROUND_TRIP_MS = 250

/**
 * The congestion window of a connection, which loss does not make smaller: with every loss it would be halved, and at 1 % over 100 ms transactions would wait
 * for seconds. What may be sent to a leader is limited by `perLeaderPerSecond` already.
 */
export function windowBytesFor({ perLeaderPerSecond }: Pick<QuicOptions, 'perLeaderPerSecond'>): number {
  return Math.max(WINDOW_BYTES_MIN, (perLeaderPerSecond * TRANSACTION_BYTES * ROUND_TRIP_MS) / 1000)
}

/** Sends to the current and the following leaders: one stream per transaction, over connections opened in advance. */
export function startQuicPath(options: QuicOptions, deps: QuicPathDeps): QuicPath {
  const { clock, random, seal, identity, slotMs } = deps
  const warmLeaders = () => options.warmLeaders ?? Math.min(WARM_LEADERS_MAX, leadersWithin(WARM_AHEAD_MS, slotMs()))
  using opening = new DisposableStack()
  const windowBytes = windowBytesFor(options)
  const connection = { ...CONNECTION, initialWindowBytes: windowBytes, windowBytesMin: windowBytes }
  const certificate = { der: tpuCertificate(identity.publicKey), privateKey: identity.privateKey }
  const leaders = opening.use(startLeaders({ ...deps, allowPrivate: options.allowPrivate }))
  const connections = opening.use(
    createLeaderConnections(options, {
      clock,
      open(leader, on) {
        return openQuic(
          { ...connection, to: leader, alpn: TPU_ALPN, serverName: `${leader.ip}.${leader.port}.sol`, certificate },
          // The key of the certificate is not compared with the identity: many leaders announce the address of a relay, which has a key of its own.
          { clock, random, seal, isPeer: () => true, ...on },
        )
      },
    }),
  )
  const warming = clock.setRepeating(WARM_MS, () => connections.warm(leaders.next(warmLeaders())))
  warming.unref?.()
  opening.use(warming)

  const path: Path = {
    name: 'quic',
    get isOpen() {
      return leaders.next(options.leaders).some(connections.isUsable)
    },
    get hasSpare() {
      return leaders.next(options.leaders).every(connections.hasSpare)
    },
    send(job, report) {
      for (const leader of leaders.next(options.leaders)) {
        connections.send(leader, job.wire, (outcome, message) =>
          report({
            to: leader.identity,
            response:
              outcome === 'delivered' ? 'taken' : outcome === 'busy' || outcome === 'refused' ? outcome : 'failed',
            message: outcome === 'delivered' ? '' : message || outcome,
          }),
        )
      }
    },
  }
  const opened = opening.move()
  return {
    path,
    get connections() {
      return connections.open
    },
    message: () =>
      leaders.known === 0
        ? 'no QUIC address of a leader is known'
        : `${connections.open} connections to leaders, ${leaders.known} known`,
    [Symbol.dispose]: () => opened.dispose(),
  }
}
