import { createBackoff } from '../../../core/backoff.ts'
import type { Timer } from '../../../core/clock.ts'
import { createMessageReader, frameMessage } from '../../../platform/grpc/framing.ts'
import { createPingReply } from '../../../platform/grpc/ping-reply.ts'
import { GrpcCode } from '../../../platform/grpc/status.ts'
import type { GrpcStream } from '../../../platform/grpc/stream.ts'
import type { BaseDeps } from '../../../platform/process/base-deps.ts'

/** Opens a call at a node; undefined where none can be reached now. */
export type OpenStream = (path: string) => Promise<GrpcStream | undefined>

export type StreamHandler = {
  /** The first request of each connection. */
  first(): Uint8Array
  /** The bytes are those of the connection's read buffer: valid until the call returns. */
  onMessage(message: Uint8Array): void
  /** The first message has arrived. */
  onOpen(): void
  /** A stream that was open has ended, or none could be opened. */
  onLost(wasOpen: boolean): void
}

export type FollowedStream = Disposable & {
  readonly isOpen: boolean
  send(message: Uint8Array): void
  replyToPing(): void
}

export type FollowedStreamOptions = {
  readonly path: string
  /** Name in log lines. */
  readonly name: string
  readonly messageBytesMax: number
  /** The message that the node gets for a ping. */
  readonly pingReply: Uint8Array
}

export type FollowedStreamDeps = BaseDeps & { readonly open: OpenStream }

const RETRY = { firstMs: 250, maxMs: 15_000 }
/** A node that does not know the method may know it after an upgrade. */
const UNIMPLEMENTED_RETRY_MS = 60_000
/** Nodes send a ping every 10 to 15 s. */
const SILENCE_MS = 30_000

/** A stream at a node that is opened again, with growing delays, whenever it ends or is silent. */
export function followStream(
  { path, name, messageBytesMax, pingReply }: FollowedStreamOptions,
  { open, clock, random, log }: FollowedStreamDeps,
  handler: StreamHandler,
): FollowedStream {
  const backoff = createBackoff(RETRY, random)
  let stream: GrpcStream | undefined
  let replyToPing: (() => void) | undefined
  let timer: Timer | undefined
  let lastMs = clock.monotonicMs()
  let isOpen = false
  let isClosed = false

  async function connect(): Promise<void> {
    const opening = await open(path)
    if (isClosed) return opening?.cancel()
    if (opening === undefined) return lost(undefined, 'no node can be reached')
    stream = opening
    replyToPing = createPingReply(opening, pingReply)
    lastMs = clock.monotonicMs()
    const reader = createMessageReader({ messageBytesMax }, (message) => {
      if (stream !== opening) return
      if (!isOpen) {
        isOpen = true
        backoff.reset()
        log.info({ stream: name }, 'stream of a node opened')
        handler.onOpen()
      }
      handler.onMessage(message)
    })
    opening.onData((bytes, release) => {
      lastMs = clock.monotonicMs()
      const problem = reader.push(bytes, release)
      if (problem !== undefined) opening.cancel()
    })
    opening.onEnd(({ status }) => {
      if (stream === opening) lost(status.code, status.message || `code ${status.code}`)
    })
    opening.write(frameMessage(handler.first()))
  }

  function lost(code: number | undefined, reason: string): void {
    stream = undefined
    if (isClosed) return
    const wasOpen = isOpen
    isOpen = false
    const delayMs = code === GrpcCode.unimplemented ? UNIMPLEMENTED_RETRY_MS : backoff.nextMs()
    if (code !== undefined) log.warn({ stream: name, reason, delayMs: Math.round(delayMs) }, 'stream of a node ended')
    handler.onLost(wasOpen)
    timer = clock.setTimer(delayMs, () => void connect())
    timer.unref?.()
  }

  const watch = clock.setRepeating(SILENCE_MS / 3, () => {
    if (stream === undefined || clock.monotonicMs() - lastMs <= SILENCE_MS) return
    const silent = stream
    lost(GrpcCode.unavailable, `no message for ${SILENCE_MS} ms`)
    silent.cancel()
  })
  watch.unref?.()
  void connect()

  return {
    get isOpen() {
      return isOpen
    },
    replyToPing: () => replyToPing?.(),
    send: (message) => void stream?.write(frameMessage(message)),
    [Symbol.dispose]() {
      isClosed = true
      watch.cancel()
      timer?.cancel()
      stream?.cancel()
    },
  }
}
