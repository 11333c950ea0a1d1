import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../core/clock.ts'
import type { Seal } from './keys.ts'

export type QuicOptions = {
  readonly alpn: string
  /** Sent as server name; empty for none. */
  readonly serverName: string
  readonly certificate?: { readonly der: Uint8Array; readonly privateKey: KeyObject } | undefined
  readonly idleTimeoutMs: number
  /** The interval of PINGs on an idle connection; 0 for none. */
  readonly keepAliveMs: number
  readonly handshakeTimeoutMs: number
  readonly initialWindowBytes: number
  /**
   * The smallest congestion window: a loss does not make it smaller, only persistent congestion does. RFC 9002 has two datagrams; more is for data whose
   * rate is limited elsewhere.
   */
  readonly windowBytesMin: number
  /** Streams that wait for flow-control credit; another one is refused. */
  readonly streamsQueuedMax: number
  /** Streams open at once on our side, whatever the peer allows. */
  readonly streamsActiveMax: number
  /** Keys are updated after this many packets. AES-GCM allows 2^23 (RFC 9001 section 6.6). */
  readonly keyUpdatePackets: number
}

export const QUIC_DEFAULTS = {
  idleTimeoutMs: 30_000,
  keepAliveMs: 0,
  handshakeTimeoutMs: 5000,
  initialWindowBytes: 12_000,
  windowBytesMin: 2400,
  streamsQueuedMax: 1024,
  streamsActiveMax: 512,
  keyUpdatePackets: 2 ** 22,
} as const

/** How a connection ended. `code` is QUIC's own or, for `application`, the peer's. */
export type QuicEnd = {
  readonly by: 'us' | 'peer' | 'idle' | 'handshake-timeout' | 'reset' | 'fault' | 'version' | 'unreachable'
  readonly code: number
  readonly isApplication: boolean
  readonly message: string
}

/** Ends without a CONNECTION_CLOSE, concluded locally. */
export const ENDS = {
  idle: {
    by: 'idle',
    code: 0,
    isApplication: false,
    message: 'the connection timed out without a packet from the peer',
  },
  handshakeTimeout: { by: 'handshake-timeout', code: 0, isApplication: false, message: 'the handshake took too long' },
  reset: { by: 'reset', code: 0, isApplication: false, message: 'the peer sent a stateless reset' },
  version: { by: 'version', code: 0, isApplication: false, message: 'the peer does not support QUIC version 1' },
  unreachable: { by: 'unreachable', code: 0, isApplication: false, message: 'the peer cannot be reached' },
} as const satisfies Record<string, QuicEnd>

/** In one line, for the receipts of what was lost with the connection. */
export function printEnd({ by, code, message }: QuicEnd): string {
  return `${by} ${code}${message === '' ? '' : `: ${message}`}`
}

export type QuicDeps = {
  readonly clock: Clock
  randomBytes(count: number): Uint8Array
  /** By default that of node:crypto. */
  readonly seal?: Seal | undefined
  send(datagram: Uint8Array): void
  /** Runs before anything else is read or waited for. */
  soon(run: () => void): void
  /** Whether the ed25519 key that the server proved to hold is the right one. */
  isPeer(publicKey: Uint8Array): boolean
  onOpen(): void
  /** Called once, after the `done` of all undelivered streams. */
  onEnd(end: QuicEnd): void
  /** The socket is not needed any more. */
  onGone(): void
}

export type QuicState = 'handshaking' | 'open' | 'closing' | 'draining' | 'gone'
