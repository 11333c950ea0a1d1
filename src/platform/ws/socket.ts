import { WebSocket } from 'ws'
import type { Clock, Timer } from '../../core/clock.ts'

/** The owner of a socket, called for its events. An object and not functions: closures for each connection would cost memory. */
export type WsSocketOwner = {
  messageReceived(data: Buffer, isBinary: boolean): void
  pingReceived(data: Buffer): void
  pongReceived(): void
  /** The peer broke the protocol or a limit; the library has chosen the close code and closes. */
  failed(error: NodeJS.ErrnoException): void
  /** The peer's close frame has come. No message follows it; `replyToClose` completes the closing handshake. */
  closeReceived(): void
  /** The reason that is sent when the library closes because the peer broke the protocol or a limit. */
  reasonForViolation(code: number): string
  closed(code: number): void
}

/**
 * A WebSocket of the server whose owner decides when the peer's close frame is replied to. The library replies at once, and requests that came
 * before the close frame would get no response.
 */
export class WsSocket extends WebSocket {
  owner: WsSocketOwner | undefined
  #pause: Timer | undefined
  #reply: { readonly code?: number | undefined; readonly reason?: string | Buffer | undefined } | undefined

  attach(owner: WsSocketOwner): void {
    this.owner = owner
    this.on('message', onMessage)
    this.on('ping', onPing)
    this.on('pong', onPong)
    this.on('error', onError)
    this.on('close', onClosed)
  }

  /** Replies to the peer's close frame, or ends the socket where that frame was itself the reply. */
  replyToClose(): void {
    super.close(this.#reply?.code, this.#reply?.reason)
  }

  /** A later call replaces the time of an earlier one. */
  pauseFor(ms: number, clock: Clock): void {
    this.pause()
    this.#pause?.cancel()
    this.#pause = clock.setTimer(ms, () => this.resume())
    this.#pause.unref?.()
  }

  /** Closes from this side. The peer's reply must be read. */
  closeNow(code: number, reason: string): void {
    this.#pause?.cancel()
    this.resume()
    super.close(code, reason)
  }

  /** Called by the library only: for the peer's close frame with its code and reason, or neither; for a violation with a code only. */
  override close(code?: number, reason?: string | Buffer): void {
    const isViolation = code !== undefined && reason === undefined
    if (isViolation) return super.close(code, this.owner?.reasonForViolation(code))
    if (this.owner === undefined) return super.close(code, reason)
    this.#reply = { code, reason }
    this.owner.closeReceived()
  }
}

function ownerOf(socket: WebSocket): WsSocketOwner | undefined {
  return (socket as WsSocket).owner
}

function onMessage(this: WebSocket, data: unknown, isBinary: boolean): void {
  ownerOf(this)?.messageReceived(data as Buffer, isBinary)
}

function onPing(this: WebSocket, data: Buffer): void {
  ownerOf(this)?.pingReceived(data)
}

function onPong(this: WebSocket): void {
  ownerOf(this)?.pongReceived()
}

function onError(this: WebSocket, error: Error): void {
  ownerOf(this)?.failed(error)
}

function onClosed(this: WebSocket, code: number): void {
  ownerOf(this)?.closed(code)
}
