import type { SubscribeRequest } from './stream-address.ts'

export type StreamOptions = {
  /** Address of the execution service: `http://host:8443` or `ws://host:8443`. */
  readonly url: string | URL
  /** What to hear; without it the four metric kinds. */
  readonly subscribe?: SubscribeRequest
  /** A cursor kept from an earlier run. */
  readonly resumeFrom?: number
  /** How many unread events are kept. */
  readonly bufferedEventsMax?: number
  /**
   * The answer when nobody reads. `resume` hangs up and, once half of the buffer is read, resumes after the last kept event:
   * nothing is lost while the service still keeps it. `drop-oldest` stays and tells what it dropped in a `gap` event.
   */
  readonly whenFull?: 'resume' | 'drop-oldest'
  readonly firstDelayMs?: number
  readonly maxDelayMs?: number
  /** A connection that says nothing for this long is taken for dead. The service itself hangs up 35 s after the chain fell silent. */
  readonly silenceMs?: number
  /** Where the service asks for a token, a browser brings a ticket: called before each connection. */
  readonly ticket?: () => Promise<string>
  readonly signal?: AbortSignal
}

/** The parts of the world a stream needs; each has a default. */
export type StreamDeps = {
  readonly connect: (url: string) => Socket
  /** Evenly spread in [0, 1). */
  readonly random: () => number
  readonly setTimer: (delayMs: number, run: () => void) => { cancel(): void }
}

/** What is used of a WebSocket, in Node and in browsers. */
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
