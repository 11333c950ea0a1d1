import type { SubscribeRequest } from './protocol.ts'

export type StreamOptions = {
  /** Address of the execution service: `http://host:8443` or `ws://host:8443`. */
  readonly url: string | URL
  /** The subscription; the four default kinds without it. */
  readonly subscribe?: SubscribeRequest
  /** A cursor from an earlier run. */
  readonly resumeFrom?: number
  /** Maximum number of unread events. */
  readonly bufferedEventsMax?: number
  /**
   * What to do when the buffer is full. `resume` disconnects and, once half of the buffer is read, resumes after the last buffered
   * event: nothing is lost while the service still has it. `drop-oldest` stays connected and reports dropped frames in a `gap` event.
   */
  readonly whenFull?: 'resume' | 'drop-oldest'
  readonly firstDelayMs?: number
  readonly maxDelayMs?: number
  /**
   * A connection without a message for this long is closed. The default is 60 s for subscriptions with TPS or Lifecycle, which come with every
   * block, and no limit for others, which may have nothing to send. The service itself closes 35 s after the last event of the chain.
   */
  readonly silenceMs?: number
  /** Returns a ticket for services that require a token; called before each connection. */
  readonly ticket?: () => Promise<string>
  readonly signal?: AbortSignal
}

/** Dependencies of a stream; each has a default. */
export type StreamDeps = {
  readonly connect: (url: string) => Socket
  /** Uniform in [0, 1). */
  readonly random: () => number
  readonly setTimer: (delayMs: number, run: () => void) => { cancel(): void }
}

/** The part of a WebSocket that is used, in Node and in browsers. */
export type Socket = {
  onmessage: ((event: { data: unknown }) => void) | null
  onclose: ((event: { code: number; reason: string }) => void) | null
  onerror: ((event: never) => void) | null
  close(code?: number, reason?: string): void
}

export const BUFFERED_EVENTS_MAX = 10_000
export const FIRST_DELAY_MS = 500
export const MAX_DELAY_MS = 30_000
export const SILENCE_MS = 60_000

export const systemDeps: StreamDeps = {
  connect: (url) => new WebSocket(url) as unknown as Socket,
  random: Math.random,
  setTimer(delayMs, run) {
    const timer = setTimeout(run, delayMs)
    return { cancel: () => clearTimeout(timer) }
  },
}
