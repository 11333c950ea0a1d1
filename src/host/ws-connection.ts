import type { Duplex } from 'node:stream'
import type { WebSocket } from 'ws'
import type { Clock, Timer } from '../core/clock.ts'
import { encodeTextFrame } from './ws-frame.ts'

/** Close codes (RFC 6455 section 7.4 and its registry). Clients of Solana take 1000 for wanted and do not come back. */
export const WsCloseCode = {
  normal: 1000,
  goingAway: 1001,
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
  send(text: string): void
  /** A frame of `encodeTextFrame`. What is sent within one turn of the event loop leaves in one write. */
  sendFrame(frame: Buffer): void
  /** Sends what is due, then the close frame; cuts the socket when the peer does not answer in time. */
  close(code: number, reason?: string): void
  terminate(): void
  onMessage(listener: (message: Buffer) => void): void
  /** Called exactly once. 1006 means that no close frame came. */
  onClose(listener: (code: number) => void): void
}

export type WsConnectionOptions = {
  /** More than this waiting for a client means that it is too slow: it is closed with 1013. */
  readonly pendingBytesMax: number
  /** The same for a client that takes nothing at all for so long. */
  readonly stallMs: number
  /** How long a peer may take to answer a close frame. */
  readonly closeGraceMs: number
}

type Parts = {
  readonly ws: WebSocket
  readonly socket: Duplex
  readonly remoteAddress: string
  readonly clock: Clock
  /** Asks for `flush` at the end of this turn. */
  readonly onDirty: () => void
}

/** Frames go to the socket past the library, which takes part only in the handshake, in reading, and in closing. */
export function createWsConnection(
  options: WsConnectionOptions,
  { ws, socket, remoteAddress, clock, onDirty }: Parts,
): WsConnection & { flush(): void; beat(): void } {
  const { pendingBytesMax, stallMs, closeGraceMs } = options
  let queue: Buffer[] = []
  let queuedBytes = 0
  let stall: Timer | undefined
  let grace: Timer | undefined
  let isAlive = true
  let closeListeners: ((code: number) => void)[] = []

  ws.on('pong', () => {
    isAlive = true
  })
  ws.on('ping', (data) => {
    isAlive = true
    // Answered by hand: pongs that are not read would otherwise pile up without a limit.
    if (isOpen() && !isTooSlow()) ws.pong(data)
  })
  ws.on('message', () => {
    isAlive = true
  })
  // Violations of the protocol: the library has chosen the close code and is closing, but would wait half a minute.
  ws.on('error', cutSoon)
  ws.on('close', (code: number) => {
    stall?.cancel()
    grace?.cancel()
    queue = []
    queuedBytes = 0
    for (const listener of closeListeners.splice(0)) listener(code)
    closeListeners = []
  })
  socket.on('drain', () => {
    stall?.cancel()
    stall = undefined
    flush()
  })

  function isOpen(): boolean {
    return ws.readyState === ws.OPEN
  }

  function pendingBytes(): number {
    return queuedBytes + socket.writableLength
  }

  function isTooSlow(): boolean {
    if (pendingBytes() <= pendingBytesMax) return false
    closeSlow()
    return true
  }

  function sendFrame(frame: Buffer): void {
    if (!isOpen()) return
    queue.push(frame)
    queuedBytes += frame.length
    if (isTooSlow() || queue.length > 1) return
    onDirty()
  }

  function flush(): void {
    if (queue.length === 0 || !isOpen() || socket.writableNeedDrain) return
    const frames = queue.length === 1 ? (queue[0] as Buffer) : Buffer.concat(queue, queuedBytes)
    queue = []
    queuedBytes = 0
    if (!socket.write(frames)) stall ??= clock.setTimer(stallMs, closeSlow)
  }

  function closeSlow(): void {
    queue = []
    queuedBytes = 0
    close(1013, 'too slow')
  }

  function close(code: number, reason = ''): void {
    if (!isOpen()) return
    flush()
    // What could not be flushed is dropped: a peer that does not read must not keep its backlog alive.
    queue = []
    queuedBytes = 0
    ws.close(code, reason)
    cutSoon()
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
    send: (text) => sendFrame(encodeTextFrame(text)),
    sendFrame,
    close,
    terminate: () => ws.terminate(),
    onMessage: (listener) => void ws.on('message', (data) => listener(data as Buffer)),
    onClose(listener) {
      if (ws.readyState === ws.CLOSED) listener(1006)
      else closeListeners.push(listener)
    },
    flush,
    /** Called once a ping period: a peer that has said nothing since the last time is gone. */
    beat() {
      if (!isAlive) ws.terminate()
      else if (isOpen()) {
        isAlive = false
        ws.ping()
      }
    },
  }
}
