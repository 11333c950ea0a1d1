import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '../../core/clock.ts'
import type { FrameConsumer } from '../net/shared-frames.ts'
import { closeCodeOf, violationReason, WsCloseCode } from './close-codes.ts'
import { ControlRate } from './control-rate.ts'
import { encodeTextFrame, type JoinedFrames } from './frame.ts'
import { OutgoingFrames } from './outgoing-frames.ts'
import { PeerSilence, type WsHeartbeat } from './peer-silence.ts'
import { PieceWriter } from './piece-writer.ts'
import type { WsSocket, WsSocketOwner } from './socket.ts'

export type WsConnection = {
  readonly remoteAddress: string
  readonly isOpen: boolean
  /** Bytes accepted by `send` that have not left the process. */
  readonly pendingBytes: number
  /** Bytes of all messages handed to the socket so far. */
  readonly bytesOut: number
  send(text: string): void
  /**
   * Sends a frame of `encodeTextFrame`. Frames that are sent within one turn of the event loop leave in one write. `held` is disposed of when the
   * frame has left the process or is dropped.
   */
  sendFrame(frame: Buffer, held?: Disposable): void
  /** Receives frames that many connections share, in order with those of `sendFrame`. */
  readonly consumer: FrameConsumer<Buffer>
  /** For a sender with a queue of its own: true while nothing waits here, so that `write` does not queue up. */
  readonly isClear: boolean
  /** Whether the client accepts frames of `deflateFrame`. */
  readonly isDeflating: boolean
  /** Writes one or several frames of `encodeTextFrame` or `deflateFrame` at once. Called only while `isClear`; neither bounded nor watched here. */
  write(frames: Buffer): void
  /** `isClear` has become true again. */
  onDrain(listener: () => void): void
  /** Sets what is called with the bytes of messages handed to the socket, without the headers of their frames; not for those of `write`. */
  onSent(listener: (payloadBytes: number) => void): void
  /** Sends what is queued, then the close frame; terminates the connection when the peer does not reply in time. */
  close(code: number, reason?: string): void
  terminate(): void
  /** Reads and delivers nothing more from the client for so long; messages that came together with the last one wait too. */
  pauseReading(ms: number): void
  /**
   * Sets what receives text messages, and binary ones that are UTF-8; other binary ones close with 1003. The reply to the peer's close frame waits until all
   * promises that the listener returned are settled, so that earlier requests still get their responses.
   */
  onMessage(listener: MessageListener): void
  /** Called exactly once: with code and reason of this side where it closed first, else with the peer's code. 1006 means that no close frame came. */
  onClose(listener: CloseListener): void
}

type MessageListener = (text: string) => void | Promise<void>
type CloseListener = (code: number, reason: string) => void

export type WsConnectionOptions = {
  /** Bytes of one message, in one or several frames; more closes with 1009. */
  readonly messageBytesMax: number
  /**
   * A client for which more than this waits behind what is being sent is too slow: it is closed with 1013. What is being sent was waiting before, so a
   * client holds at most twice this and one message.
   */
  readonly pendingBytesMax: number
  /** The same for a client that reads nothing for so long. */
  readonly stallMs: number
  /** How long a peer may take to reply to a close frame. */
  readonly closeGraceMs: number
  /** How long the responses that are due may delay the reply to the peer's close frame. */
  readonly responseGraceMs: number
  /** Pings and pongs of a client within a second; one more closes with 1008. */
  readonly controlPerSecondMax: number
}

/** Called as it happens, for counters. */
export type WsMeter = {
  /** So many messages left in one write. */
  written(messages: number, bytes: number): void
  /** A client was closed because it did not read. */
  slow(): void
  /** A client was closed for its pings. */
  pings(): void
}

type Parts = {
  readonly ws: WsSocket
  readonly socket: Duplex
  readonly remoteAddress: string
  readonly clock: Clock
  readonly meter?: WsMeter | undefined
  readonly owner: WsConnectionOwner
}

/** Whose connection it is, with many others. */
export type WsConnectionOwner = {
  /** Frames wait: asks for `flush` soon. */
  onDirty(connection: ServerWsConnection): void
  onClosed(connection: ServerWsConnection): void
}

const NONE: readonly never[] = []

type State =
  | 'open'
  /** The peer has sent its close frame; responses that are due still leave. */
  | 'peer-closing'
  /** This side has sent its close frame. */
  | 'closing'
  | 'closed'

/**
 * One connection of a client. Frames are written to the socket directly: the library does the handshake, reads, and sends control frames. A server has
 * thousands of them, so that they share most of the functions that are called for them.
 */
export class ServerWsConnection implements WsConnection, WsSocketOwner {
  readonly remoteAddress: string
  readonly #options: WsConnectionOptions
  readonly #ws: WsSocket
  readonly #socket: Duplex
  readonly #clock: Clock
  readonly #meter: WsMeter | undefined
  readonly #owner: WsConnectionOwner
  readonly #frames = new OutgoingFrames(this)
  readonly #writer: PieceWriter
  readonly #controls: ControlRate
  readonly #silence = new PeerSilence()
  #messageListener: MessageListener | undefined
  #drainListeners: readonly (() => void)[] = NONE
  #closeListeners: readonly CloseListener[] = NONE
  #state: State = 'open'
  #closedWith: { readonly code: number; readonly reason: string } | undefined
  /** A flush is requested. */
  #isDirty = false
  #bytesOut = 0
  #onSent: ((payloadBytes: number) => void) | undefined
  /** Messages whose listener has not settled. */
  #responsesDue = 0
  /** Payload of the most recent ping that came while a large message was being sent. */
  #pongDue: Buffer | undefined
  #stallTimer: Timer | undefined
  #closeTimer: Timer | undefined
  #responseTimer: Timer | undefined

  constructor(options: WsConnectionOptions, { ws, socket, remoteAddress, clock, meter, owner }: Parts) {
    this.remoteAddress = remoteAddress
    this.#options = options
    this.#ws = ws
    this.#socket = socket
    this.#writer = new PieceWriter(socket)
    this.#clock = clock
    this.#meter = meter
    this.#owner = owner
    this.#controls = new ControlRate(options.controlPerSecondMax, clock.monotonicMs())
    ws.attach(this)
    socket.on('drain', () => this.#onDrain())
  }

  /** The library may close before this side notices, so its state is the one that counts. */
  get isOpen(): boolean {
    return this.#ws.readyState === this.#ws.OPEN
  }

  get pendingBytes(): number {
    return this.#frames.byteLength + this.#writer.restBytes + this.#socket.writableLength
  }

  get bytesOut(): number {
    return this.#bytesOut
  }

  get consumer(): FrameConsumer<Buffer> {
    return this.#frames
  }

  get isClear(): boolean {
    return this.#frames.isEmpty && !this.#socket.writableNeedDrain
  }

  get isDeflating(): boolean {
    return this.#ws.extensions !== ''
  }

  send(text: string): void {
    this.#frames.push(encodeTextFrame(text))
  }

  sendFrame(frame: Buffer, held?: Disposable): void {
    this.#frames.push(frame, held)
  }

  write(frames: Buffer): void {
    if (this.isOpen) this.#socket.write(frames)
  }

  onDrain(listener: () => void): void {
    this.#drainListeners = [...this.#drainListeners, listener]
  }

  onSent(listener: (payloadBytes: number) => void): void {
    this.#onSent = listener
  }

  onMessage(listener: MessageListener): void {
    this.#messageListener = listener
  }

  onClose(listener: CloseListener): void {
    const closed = this.#state === 'closed' ? this.#closedWith : undefined
    if (closed === undefined) this.#closeListeners = [...this.#closeListeners, listener]
    else listener(closed.code, closed.reason)
  }

  /** Writes the frames that wait, in one write unless they are large. */
  flush(joined?: JoinedFrames): void {
    this.#isDirty = false
    if (!this.isOpen || this.#socket.writableNeedDrain) return
    const bytes = this.#frames.take(joined)
    if (bytes === undefined) return
    this.#bytesOut += bytes.length
    this.#meter?.written(this.#frames.takenCount, bytes.length)
    this.#onSent?.(this.#frames.takenPayloadBytes)
    if (!this.#writer.write(bytes, this.#frames.takenHeld)) this.#watchStall()
  }

  /** Called at every beat. Terminates the connection and returns false when its peer was silent for too long. */
  beat(heartbeat: WsHeartbeat): boolean {
    // A ping must not come within a frame. Until its end the stall timer watches the peer. Nor before the response to a request: Solana's blocking Rust
    // client takes the first frame after a subscribe for its response. Nor while nothing is read: its pong would not be.
    if (this.#writer.isSending || this.#responsesDue > 0 || this.#ws.isPaused) {
      this.#silence.heard()
      return true
    }
    const due = this.#silence.beat(heartbeat)
    if (due === 'dead') this.terminate()
    else if (due === 'ping-due' && this.isOpen) this.#ws.ping()
    return due !== 'dead'
  }

  close(code: number, reason = ''): void {
    if (!this.isOpen) return
    this.#closedWith = { code, reason }
    this.#flushLast()
    this.#ws.closeNow(code, reason)
  }

  terminate(): void {
    this.#ws.terminate()
  }

  pauseReading(ms: number): void {
    if (this.isOpen) this.#ws.pauseFor(ms, this.#clock)
  }

  /** Checks only what it must: the rest is checked once a write. */
  onQueued(): void {
    // A socket that takes all it is given holds next to nothing itself.
    const mayBeTooSlow = this.#stallTimer !== undefined || this.#frames.queuedBytes > this.#options.pendingBytesMax / 2
    if ((mayBeTooSlow && this.#closeIfTooSlow()) || this.#isDirty) return
    this.#isDirty = true
    this.#owner.onDirty(this)
  }

  undecodableReceived(isBinary: boolean): void {
    this.close(isBinary ? WsCloseCode.unsupportedData : WsCloseCode.notUtf8, 'not UTF-8')
  }

  messageReceived(text: string): void {
    this.#silence.heard()
    const work = this.#messageListener?.(text)
    if (work === undefined) return
    this.#responsesDue += 1
    const onSettled = () => {
      this.#responsesDue -= 1
      if (this.#state === 'peer-closing' && this.#responsesDue === 0) this.#replyToClose()
    }
    work.then(onSettled, onSettled)
  }

  pingReceived(data: Buffer): void {
    // The library would queue pongs without a limit for a client that does not read them.
    if (!this.#onControl() || !this.isOpen || this.#closeIfTooSlow()) return
    if (this.#writer.isSending) this.#pongDue = data
    else this.#ws.pong(data)
  }

  pongReceived(): void {
    this.#onControl()
  }

  /** The library would wait 30 s for the reply to its close frame. */
  failed(error: NodeJS.ErrnoException): void {
    const code = closeCodeOf(error)
    this.#closedWith ??= { code, reason: violationReason(code, this.#options.messageBytesMax) }
    this.#enterClosing()
  }

  reasonForViolation(code: number): string {
    this.#writer.finish()
    return violationReason(code, this.#options.messageBytesMax)
  }

  closeReceived(): void {
    // The reply to this side's close frame: the library now ends the socket.
    if (this.#state === 'closing') return this.#ws.replyToClose()
    this.#state = 'peer-closing'
    if (this.#responsesDue === 0) this.#replyToClose()
    else this.#responseTimer = this.#clock.setTimer(this.#options.responseGraceMs, () => this.#replyToClose())
  }

  closed(code: number): void {
    this.#state = 'closed'
    this.#closedWith ??= { code, reason: '' }
    this.#stallTimer?.cancel()
    this.#closeTimer?.cancel()
    this.#responseTimer?.cancel()
    this.#frames.close()
    this.#frames.clear()
    this.#writer.clear()
    const listeners = this.#closeListeners
    this.#closeListeners = NONE
    this.#owner.onClosed(this)
    for (const listener of listeners) listener(this.#closedWith.code, this.#closedWith.reason)
  }

  #onDrain(): void {
    this.#stallTimer?.cancel()
    this.#stallTimer = undefined
    const isClear = this.#writer.writeNext()
    if (this.#pongDue !== undefined && !this.#writer.isSending) {
      const data = this.#pongDue
      this.#pongDue = undefined
      if (this.isOpen) this.#ws.pong(data)
    }
    if (!isClear) return this.#watchStall()
    this.flush()
    for (const listener of this.#drainListeners) listener()
  }

  /** Until the socket drains, and from then on again: every piece that leaves is progress. */
  #watchStall(): void {
    this.#stallTimer ??= this.#clock.setTimer(this.#options.stallMs, () => this.#closeSlow())
  }

  /** A ping or pong came. False when there are too many: the connection is then closed. */
  #onControl(): boolean {
    this.#silence.heard()
    if (this.#controls.admit(this.#clock.monotonicMs())) return true
    if (this.isOpen) this.#meter?.pings()
    this.close(WsCloseCode.policyViolation, 'too many pings')
    return false
  }

  #closeIfTooSlow(): boolean {
    const { pendingBytesMax } = this.#options
    // The socket has a piece of what is being sent, and the pongs that the library has written.
    if (this.#frames.byteLength <= pendingBytesMax && this.#socket.writableLength <= pendingBytesMax) return false
    if (this.#socket.writableNeedDrain) {
      this.#closeSlow()
      return true
    }
    // Nothing is being sent: the client has not had the chance to read.
    this.flush()
    return false
  }

  #closeSlow(): void {
    if (this.isOpen) this.#meter?.slow()
    this.#frames.clear()
    this.close(WsCloseCode.tryAgainLater, 'too slow')
  }

  #replyToClose(): void {
    if (!this.isOpen) return
    this.#flushLast()
    this.#ws.replyToClose()
  }

  /** Writes what waits before a close frame. The rest is dropped: a peer that does not read must not keep it in memory. */
  #flushLast(): void {
    this.#enterClosing()
    this.flush()
    this.#writer.finish()
    this.#frames.clear()
  }

  #enterClosing(): void {
    this.#state = 'closing'
    this.#responseTimer?.cancel()
    this.#frames.close()
    this.#closeTimer ??= this.#clock.setTimer(this.#options.closeGraceMs, () => this.terminate())
  }
}
