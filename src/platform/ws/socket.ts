import { WebSocket } from 'ws'

/**
 * A WebSocket of the server whose owner decides when the close frame of the peer is answered. The library answers at once, and what was asked
 * before the close frame would get no response.
 */
export class WsSocket extends WebSocket {
  #onPeerClose: (() => void) | undefined
  #reply: { readonly code?: number | undefined; readonly reason?: string | Buffer | undefined } = {}

  /** The close frame of the peer is here. Nothing more comes, and it is answered by `completeClose`. */
  onPeerClose(listener: () => void): void {
    this.#onPeerClose = listener
  }

  /** Answers the close frame of the peer. */
  completeClose(): void {
    super.close(this.#reply.code, this.#reply.reason)
  }

  /** Closes from this side. */
  closeNow(code: number, reason: string): void {
    super.close(code, reason)
  }

  /** Called by the library alone: for the peer's close frame with its code and reason, or neither; for a violation with a code only. */
  override close(code?: number, reason?: string | Buffer): void {
    const isViolation = code !== undefined && reason === undefined
    if (isViolation || this.#onPeerClose === undefined) return super.close(code, reason)
    this.#reply = { code, reason }
    this.#onPeerClose()
  }
}
