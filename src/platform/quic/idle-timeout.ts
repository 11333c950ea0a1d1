import type { QuicOptions } from './connection-options.ts'

/** The last packet sent, as far as idle time is counted from it. */
export type SentTimes = { readonly firstUnheardAtMs: number; readonly lastElicitingAtMs: number }

/** The timeouts of a connection: of the handshake, of an idle peer, and until its own PING. */
export class IdleTimeout {
  readonly #options: Pick<QuicOptions, 'idleTimeoutMs' | 'keepAliveMs' | 'handshakeTimeoutMs'>
  readonly #startedAtMs: number
  heardAtMs: number
  /** The peer's max_idle_timeout; 0 for none. */
  peerIdleMs = 0

  constructor(options: Pick<QuicOptions, 'idleTimeoutMs' | 'keepAliveMs' | 'handshakeTimeoutMs'>, nowMs: number) {
    this.#options = options
    this.#startedAtMs = nowMs
    this.heardAtMs = nowMs
  }

  get handshakeAtMs(): number {
    return this.#startedAtMs + this.#options.handshakeTimeoutMs
  }

  /** The smaller of both sides' times, but long enough for a lost packet to be sent again (RFC 9000 section 10.1). */
  idleAtMs({ firstUnheardAtMs }: SentTimes, ptoMs: number): number {
    const { idleTimeoutMs } = this.#options
    const idleMs = this.peerIdleMs === 0 ? idleTimeoutMs : Math.min(idleTimeoutMs, this.peerIdleMs)
    return Math.max(this.heardAtMs, firstUnheardAtMs) + Math.max(idleMs, 3 * ptoMs)
  }

  keepAliveAtMs({ lastElicitingAtMs }: SentTimes): number {
    const { keepAliveMs } = this.#options
    if (keepAliveMs === 0) return Number.POSITIVE_INFINITY
    return Math.max(this.heardAtMs, lastElicitingAtMs) + keepAliveMs
  }
}
