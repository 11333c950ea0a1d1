import type { Duplex } from 'node:stream'
import type { Clock, Timer } from '../../core/clock.ts'
import type { FrameConsumer, SharedPart } from '../net/shared-frames.ts'
import { encodeTextFrame, type JoinedFrames } from './frame.ts'
import type { WsSocket } from './socket.ts'

/** Close codes (RFC 6455 section 7.4 and its registry). Clients of Solana take 1000 for wanted and do not come back. */
export const WsCloseCode = {
  normal: 1000,
  goingAway: 1001,
  protocolError: 1002,
  unsupportedData: 1003,
  notUtf8: 1007,
  policyViolation: 1008,
  messageTooBig: 1009,
  internalError: 1011,
  serviceRestart: 1012,
  tryAgainLater: 1013,
} as const

export type WsConnection = {
  readonly remoteAddress: string
  readonly isOpen: boolean
  /** Bytes taken by `send` that have not left the process. */
  readonly pendingBytes: number
  /** Bytes of all messages handed to the socket so far. */
  readonly bytesOut: number
  send(text: string): void
  /** A frame of `encodeTextFrame`. What is sent within one turn of the event loop leaves in one write. */
  readonly sendFrame: (frame: Buffer) => void
  /** Gets frames that are the same for many, in the order they and those of `sendFrame` came. */
  readonly consumer: FrameConsumer<Buffer>
  /** For a sender with a queue of its own: true while nothing waits here, so that `write` will not pile up. */
  readonly isClear: boolean
  /** Frames of `encodeTextFrame`, one or several, at once. Called only while `isClear`; neither bounded nor watched here. */
  write(frames: Buffer): void
  /** `isClear` has become true again. */
  onDrain(listener: () => void): void
  /** Sends what is due, then the close frame; cuts the socket when the peer does not answer in time. */
  close(code: number, reason?: string): void
  terminate(): void
  /**
   * Text messages, and binary ones that are UTF-8; other binary ones close with 1003. The close frame of a peer is answered when all promises
   * that the listener returned are settled, so that what was asked before it is still answered.
   */
  onMessage(listener: (text: string) => void | Promise<void>): void
  /** Called exactly once: with code and reason of this side where it closed first, else with the peer's code. 1006 means that no close frame came. */
  onClose(listener: (code: number, reason: string) => void): void
}

export type WsConnectionOptions = {
  /** More than this waiting for a client means that it is too slow: it is closed with 1013. */
  readonly pendingBytesMax: number
  /** The same for a client that takes nothing at all for so long. */
  readonly stallMs: number
  /** How long a peer may take to answer a close frame. */
  readonly closeGraceMs: number
  /** How long a peer that has closed waits for what it asked before; then it gets its close frame without. */
  readonly responseGraceMs: number
  /** Pings and pongs of a client within a second; one more closes with 1008. */
  readonly controlPerSecondMax: number
}

/** Told as it happens, for counters. */
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
  /** Asks for `flush` soon. */
  readonly onDirty: () => void
}

const CONTROL_WINDOW_MS = 1000
const UTF8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** The codes the library closes with (ws: lib/receiver.js); all others are 1002. */
const VIOLATIONS: Readonly<Record<string, number>> = {
  WS_ERR_INVALID_UTF8: WsCloseCode.notUtf8,
  WS_ERR_TOO_MANY_BUFFERED_PARTS: WsCloseCode.policyViolation,
  WS_ERR_UNSUPPORTED_DATA_PAYLOAD_LENGTH: WsCloseCode.messageTooBig,
  WS_ERR_UNSUPPORTED_MESSAGE_LENGTH: WsCloseCode.messageTooBig,
}

/** Frames go to the socket past the library, which takes part only in the handshake, in reading, and in closing. */
export function createWsConnection(
  options: WsConnectionOptions,
  { ws, socket, remoteAddress, clock, meter, onDirty }: Parts,
): WsConnection & { flush(joined?: JoinedFrames): void; beat(missesMax: number): boolean } {
  const { pendingBytesMax, stallMs, closeGraceMs, responseGraceMs, controlPerSecondMax } = options
  let queue: Buffer[] = []
  let queuedBytes = 0
  /** What comes after all in the queue. It is shared with others and may still grow. */
  let shared: SharedPart<Buffer> | undefined
  /** Will be flushed without being asked for it again. */
  let isDue = false
  let bytesOut = 0
  let controls = 0
  let controlsSinceMs = clock.monotonicMs()
  let stall: Timer | undefined
  let grace: Timer | undefined
  let responseGrace: Timer | undefined
  /** Messages whose listener is still at work. */
  let awaitingResponse = 0
  let isPeerClosing = false
  let isLeaving = false
  let isAlive = true
  let misses = 0
  let closeListeners: ((code: number, reason: string) => void)[] = []
  let closing: { readonly code: number; readonly reason: string } | undefined
  const drainListeners: (() => void)[] = []

  ws.on('pong', () => {
    isAlive = true
    isCalm()
  })
  ws.on('ping', (data) => {
    isAlive = true
    if (!isCalm()) return
    // Answered by hand: pongs that are not read would otherwise pile up without a limit.
    if (isOpen() && !isTooSlow()) ws.pong(data)
  })
  ws.on('message', () => {
    isAlive = true
  })
  // Violations of the protocol: the library has chosen the close code and is closing, but would wait half a minute.
  ws.on('error', (error: NodeJS.ErrnoException) => {
    closing ??= { code: VIOLATIONS[error.code ?? ''] ?? WsCloseCode.protocolError, reason: '' }
    cutSoon()
  })
  ws.on('close', (code: number) => {
    isLeaving = true
    stall?.cancel()
    grace?.cancel()
    responseGrace?.cancel()
    dropQueue()
    for (const listener of closeListeners.splice(0)) listener(closing?.code ?? code, closing?.reason ?? '')
    closeListeners = []
  })
  ws.onPeerClose(() => {
    isPeerClosing = true
    if (awaitingResponse === 0) completeClose()
    else responseGrace = clock.setTimer(responseGraceMs, completeClose)
  })
  socket.on('drain', () => {
    stall?.cancel()
    stall = undefined
    flush()
    for (const listener of drainListeners) listener()
  })

  function isCalm(): boolean {
    const nowMs = clock.monotonicMs()
    if (nowMs - controlsSinceMs >= CONTROL_WINDOW_MS) {
      controlsSinceMs = nowMs
      controls = 0
    }
    controls += 1
    if (controls <= controlPerSecondMax) return true
    if (isOpen()) meter?.pings()
    close(WsCloseCode.policyViolation, 'too many pings')
    return false
  }

  function isOpen(): boolean {
    return ws.readyState === ws.OPEN
  }

  function pendingBytes(): number {
    return queuedBytes + (shared?.byteLength ?? 0) + socket.writableLength
  }

  function isTooSlow(): boolean {
    if (pendingBytes() <= pendingBytesMax) return false
    closeSlow()
    return true
  }

  function sendFrame(frame: Buffer): void {
    if (isLeaving) return
    takeShared()
    queue.push(frame)
    queuedBytes += frame.length
    queued()
  }

  const consumer: FrameConsumer<Buffer> = {
    offer(part) {
      if (isLeaving) return
      takeShared()
      shared = part
      queued()
    },
    seal: takeShared,
    get isOpen() {
      return !isLeaving
    },
  }

  /** What waits up to now moves into the queue, where nothing can come before it any more. */
  function takeShared(): void {
    const part = shared
    if (part === undefined) return
    shared = undefined
    const { frames, joined } = part.take(consumer)
    for (const frame of frames) queue.push(frame)
    queuedBytes += joined.length
  }

  /** Looks no further than it must: the rest is looked at once a write. */
  function queued(): void {
    // A socket that takes what it is given holds next to nothing itself.
    if ((stall !== undefined || queuedBytes > pendingBytesMax / 2) && isTooSlow()) return
    if (isDue) return
    isDue = true
    onDirty()
  }

  function flush(joined?: JoinedFrames): void {
    isDue = false
    if (!isOpen() || socket.writableNeedDrain) return
    if (shared !== undefined && queue.length === 0) {
      const part = shared
      shared = undefined
      const taken = part.take(consumer)
      writeOut(taken.joined, taken.frames.length)
      return
    }
    takeShared()
    if (queue.length === 0) return
    const bytes = joined === undefined ? Buffer.concat(queue, queuedBytes) : joined.of(queue, queuedBytes)
    const messages = queue.length
    dropQueue()
    writeOut(bytes, messages)
  }

  function writeOut(bytes: Buffer, messages: number): void {
    bytesOut += bytes.length
    meter?.written(messages, bytes.length)
    if (!socket.write(bytes)) stall ??= clock.setTimer(stallMs, closeSlow)
  }

  function dropQueue(): void {
    queue = []
    queuedBytes = 0
    shared = undefined
  }

  function closeSlow(): void {
    if (isOpen()) meter?.slow()
    dropQueue()
    close(1013, 'too slow')
  }

  function close(code: number, reason = ''): void {
    if (!isOpen()) return
    isLeaving = true
    closing = { code, reason }
    flush()
    // What could not be flushed is dropped: a peer that does not read must not keep its backlog alive.
    dropQueue()
    ws.closeNow(code, reason)
    cutSoon()
  }

  /** Sends what is due, then the answer to the close frame of the peer. */
  function completeClose(): void {
    if (!isOpen()) return
    responseGrace?.cancel()
    isLeaving = true
    flush()
    dropQueue()
    ws.completeClose()
    cutSoon()
  }

  function receive(data: Buffer, isBinary: boolean, listener: (text: string) => void | Promise<void>): void {
    let text: string
    try {
      text = UTF8.decode(data)
    } catch {
      return close(isBinary ? WsCloseCode.unsupportedData : WsCloseCode.notUtf8, 'not UTF-8')
    }
    const work = listener(text)
    if (work === undefined) return
    awaitingResponse += 1
    const onSettled = () => {
      awaitingResponse -= 1
      if (isPeerClosing && awaitingResponse === 0) completeClose()
    }
    work.then(onSettled, onSettled)
  }

  function cutSoon(): void {
    grace ??= clock.setTimer(closeGraceMs, () => ws.terminate())
  }

  return {
    remoteAddress,
    get isOpen() {
      return isOpen()
    },
    get pendingBytes() {
      return pendingBytes()
    },
    get bytesOut() {
      return bytesOut
    },
    send: (text) => sendFrame(encodeTextFrame(text)),
    sendFrame,
    consumer,
    get isClear() {
      return queue.length === 0 && shared === undefined && !socket.writableNeedDrain
    },
    write(frames) {
      if (isOpen()) socket.write(frames)
    },
    onDrain: (listener) => void drainListeners.push(listener),
    close,
    terminate: () => ws.terminate(),
    onMessage: (listener) => void ws.on('message', (data, isBinary) => receive(data as Buffer, isBinary, listener)),
    onClose(listener) {
      if (ws.readyState === ws.CLOSED) listener(closing?.code ?? 1006, closing?.reason ?? '')
      else closeListeners.push(listener)
    },
    flush,
    /** Called once a ping period. False when the peer has said nothing for `missesMax` periods: it is gone, and is cut. */
    beat(missesMax) {
      misses = isAlive ? 0 : misses + 1
      if (misses >= missesMax) {
        ws.terminate()
        return false
      }
      isAlive = false
      if (isOpen()) ws.ping()
      return true
    },
  }
}
