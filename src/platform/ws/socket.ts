import { WebSocket } from 'ws'
import type { Clock, Timer } from '../../core/clock.ts'

/** The owner of a socket, called for its events. An object and not functions: closures for each connection would cost memory. */
export type WsSocketOwner = {
  messageReceived(text: string): void
  /** A message that is not UTF-8. */
  undecodableReceived(isBinary: boolean): void
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

/** Messages that are delivered within one turn of the event loop. One read may have ten thousand, and other connections are served in between. */
const TURN_MESSAGES = 16
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/**
 * A WebSocket of the server whose owner decides when the peer's close frame is replied to. The library replies at once, and requests that came
 * before the close frame would get no response. The library also delivers all messages of a read at once; here some wait for a later turn, or for the
 * end of a pause.
 */
export class WsSocket extends WebSocket {
  owner: WsSocketOwner | undefined
  #pause: Timer | undefined
  #reply: { readonly code?: number | undefined; readonly reason?: string | Buffer | undefined } | undefined
  /** Messages of the last read that wait. Nothing more is read meanwhile. */
  #waiting: string[] = []
  #turnMessages = 0
  /** The peer's close frame came behind messages that wait. */
  #isCloseWaiting = false

  attach(owner: WsSocketOwner): void {
    this.owner = owner
    this.on('message', onMessage)
    this.on('ping', onPing)
    this.on('pong', onPong)
    this.on('error', onError)
    this.on('close', onClosed)
  }

  /** Whether messages wait that have arrived. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0
  }

  receive(data: Buffer, isBinary: boolean): void {
    // This side has closed; the rest of the read still comes.
    if (this.readyState !== this.OPEN) return
    let text: string
    try {
      text = UTF8.decode(data)
    } catch {
      return this.owner?.undecodableReceived(isBinary)
    }
    if (!this.hasWaiting && this.#mayDeliver()) return this.#deliver(text)
    this.#waiting.push(text)
    this.pause()
  }

  /** Replies to the peer's close frame, or ends the socket where that frame was itself the reply. */
  replyToClose(): void {
    super.close(this.#reply?.code, this.#reply?.reason)
  }

  /** Neither reads nor delivers for so long. A later call replaces the time of an earlier one. */
  pauseFor(ms: number, clock: Clock): void {
    this.pause()
    this.#pause?.cancel()
    this.#pause = clock.setTimer(ms, () => {
      this.#pause = undefined
      this.#deliverWaiting()
    })
    this.#pause.unref?.()
  }

  /** Closes from this side. The peer's reply must be read. */
  closeNow(code: number, reason: string): void {
    this.dropWaiting()
    this.resume()
    super.close(code, reason)
  }

  /** Nothing that waits is delivered any more: the connection is closing or closed. */
  dropWaiting(): void {
    this.#pause?.cancel()
    this.#pause = undefined
    this.#waiting = []
    this.#isCloseWaiting = false
  }

  /** Called by the library only: for the peer's close frame with its code and reason, or neither; for a violation with a code only. */
  override close(code?: number, reason?: string | Buffer): void {
    const isViolation = code !== undefined && reason === undefined
    if (isViolation) {
      this.dropWaiting()
      return super.close(code, this.owner?.reasonForViolation(code))
    }
    if (this.owner === undefined) return super.close(code, reason)
    this.#reply = { code, reason }
    if (this.hasWaiting) this.#isCloseWaiting = true
    else this.owner.closeReceived()
  }

  #mayDeliver(): boolean {
    return this.#pause === undefined && this.#turnMessages < TURN_MESSAGES
  }

  #deliver(text: string): void {
    this.#turnMessages += 1
    if (this.#turnMessages === TURN_MESSAGES) {
      setImmediate(() => {
        this.#turnMessages = 0
        this.#deliverWaiting()
      })
    }
    this.owner?.messageReceived(text)
  }

  #deliverWaiting(): void {
    while (this.hasWaiting && this.#mayDeliver()) this.#deliver(this.#waiting.shift() as string)
    if (this.hasWaiting || this.#pause !== undefined) return
    if (this.#isCloseWaiting) {
      this.#isCloseWaiting = false
      this.owner?.closeReceived()
    }
    this.resume()
  }
}

function ownerOf(socket: WebSocket): WsSocketOwner | undefined {
  return (socket as WsSocket).owner
}

function onMessage(this: WebSocket, data: unknown, isBinary: boolean): void {
  ;(this as WsSocket).receive(data as Buffer, isBinary)
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
  ;(this as WsSocket).dropWaiting()
  ownerOf(this)?.closed(code)
}
