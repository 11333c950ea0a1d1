import { WebSocket } from 'ws'

/**
 * A WebSocket of the server whose owner decides when the peer's close frame is replied to. The library replies at once, and requests that came
 * before the close frame would get no response.
 */
export class WsSocket extends WebSocket {
  #onPeerClose: (() => void) | undefined
  #onViolation: (code: number) => string = () => ''
  #reply: { readonly code?: number | undefined; readonly reason?: string | Buffer | undefined } = {}

  /** Called when the peer's close frame has come. No message follows it; `replyToClose` completes the closing handshake. */
  onPeerClose(listener: () => void): void {
    this.#onPeerClose = listener
  }

  /** Called before the library closes because the peer broke the protocol or a limit. Returns the reason that is sent. */
  onViolation(listener: (code: number) => string): void {
    this.#onViolation = listener
  }

  /** Replies to the peer's close frame, or ends the socket where that frame was itself the reply. */
  replyToClose(): void {
    super.close(this.#reply.code, this.#reply.reason)
  }

  /** Closes from this side. */
  closeNow(code: number, reason: string): void {
    super.close(code, reason)
  }

  /** Called by the library only: for the peer's close frame with its code and reason, or neither; for a violation with a code only. */
  override close(code?: number, reason?: string | Buffer): void {
    const isViolation = code !== undefined && reason === undefined
    if (isViolation) return super.close(code, this.#onViolation(code))
    if (this.#onPeerClose === undefined) return super.close(code, reason)
    this.#reply = { code, reason }
    this.#onPeerClose()
  }
}
