import type { IdleTimeout } from './idle-timeout.ts'
import type { KeyRing } from './key-ring.ts'
import type { Outbox } from './outbox.ts'
import type { Level } from './packet.ts'
import type { ReceivedPackets } from './received-packets.ts'
import type { Recovery } from './recovery.ts'

export type DeadlinesDeps = {
  readonly idleTimeout: IdleTimeout
  readonly recovery: Recovery
  readonly keys: KeyRing
  readonly outbox: Outbox
}

/** Acknowledgements of application data are delayed by this, or until two packets came (RFC 9000 section 13.2). */
const ACK_DELAY_MS = 20
const ACK_EVERY = 2

/** When a connection that is not over has to act without a packet from its peer. It has no timer: `nextMs` returns when to check. */
export class Deadlines {
  readonly #deps: DeadlinesDeps
  readonly #hasKeys: (level: Level) => boolean
  #ackDueMs = Number.POSITIVE_INFINITY
  /** The last flush ended with the burst, not for want of data or window. */
  isFlushCut = false

  constructor(deps: DeadlinesDeps) {
    this.#deps = deps
    this.#hasKeys = (level) => deps.keys.has(level)
  }

  /** An ack-eliciting packet came. */
  planAck(level: Level, received: ReceivedPackets, nowMs: number): void {
    received.unacked += 1
    const isLate = level !== 'application' || received.unacked >= ACK_EVERY
    this.#ackDueMs = Math.min(this.#ackDueMs, isLate ? nowMs : nowMs + ACK_DELAY_MS)
  }

  isAckDue(nowMs: number): boolean {
    return nowMs >= this.#ackDueMs
  }

  clearAck(): void {
    this.#ackDueMs = Number.POSITIVE_INFINITY
  }

  /** When packets count as lost, or a probe is to be sent. */
  recovery(nowMs: number): ReturnType<Recovery['deadlineMs']> {
    return this.#deps.recovery.deadlineMs(this.#hasKeys, nowMs)
  }

  get idleAtMs(): number {
    const { idleTimeout, outbox, recovery } = this.#deps
    return idleTimeout.idleAtMs(outbox, recovery.ptoMs)
  }

  handshakeAtMs(state: 'handshaking' | 'open'): number {
    return state === 'handshaking' ? this.#deps.idleTimeout.handshakeAtMs : Number.POSITIVE_INFINITY
  }

  keepAliveAtMs(state: 'handshaking' | 'open'): number {
    return state === 'open' ? this.#deps.idleTimeout.keepAliveAtMs(this.#deps.outbox) : Number.POSITIVE_INFINITY
  }

  nextMs(state: 'handshaking' | 'open', nowMs: number): number {
    return Math.min(
      this.recovery(nowMs).atMs,
      this.#ackDueMs,
      this.idleAtMs,
      this.keepAliveAtMs(state),
      this.handshakeAtMs(state),
      this.isFlushCut ? nowMs : Number.POSITIVE_INFINITY,
    )
  }
}
