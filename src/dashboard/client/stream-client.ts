import type { Hello, StreamError, Warning } from '../../contract/stream-events.ts'
import { createEventBuffer } from './event-buffer.ts'
import { type Frame, readFrame } from './read-frame.ts'
import { streamAddress } from './stream-address.ts'
import type { DataEvent, FrameOrigin, GapEvent, StreamEvent } from './stream-event.ts'
import {
  BUFFERED_EVENTS_MAX,
  FIRST_DELAY_MS,
  MAX_DELAY_MS,
  SILENCE_MS,
  type Socket,
  type StreamDeps,
  type StreamOptions,
  systemDeps,
} from './stream-options.ts'

export type ExecutionStream = AsyncIterableIterator<StreamEvent, undefined> &
  AsyncDisposable & {
    /** The cursor of the last event handed to the reader: keep it to resume in another run. */
    cursor(): number | undefined
    /** Unread events. */
    buffered(): number
    close(): void
  }

/** A snapshot is taken whole, beyond the bound of the buffer; a service that announces more than this is not believed. */
const SNAPSHOT_EVENTS_MAX = 10_000
/** Close codes an application may send are 1000 and 3000–4999 (RFC 6455 section 7.4.2). */
const CLOSE_FULL = 4000
const CLOSE_BROKEN = 4001
const CLOSE_SILENT = 4002

const DATA_KINDS: ReadonlySet<string> = new Set<DataEvent['kind']>([
  'TPS',
  'ContentionData',
  'ConflictData',
  'TopAccesses',
  'Lifecycle',
  'Events',
])
const GAP_OF_WARNING: Readonly<Record<string, GapEvent['reason']>> = {
  ring_gap: 'source',
  ring_restart: 'restart',
  backpressure: 'slow',
  resume_out_of_window: 'window',
}

/**
 * The execution stream as an endless loop: `for await (const event of openExecutionStream({ url }))`.
 * It reconnects with growing delays, resumes after the last event it has, never hands out an event twice, and says so where
 * something is missing. Leaving the loop closes it.
 */
export function openExecutionStream(options: StreamOptions, deps: Partial<StreamDeps> = {}): ExecutionStream {
  const { connect, random, setTimer } = { ...systemDeps, ...deps }
  const eventsMax = options.bufferedEventsMax ?? BUFFERED_EVENTS_MAX
  const firstDelayMs = options.firstDelayMs ?? FIRST_DELAY_MS
  const buffer = createEventBuffer<StreamEvent>(afterRead)

  let socket: Socket | undefined
  let timer: { cancel(): void } | undefined
  let silence: { cancel(): void } | undefined
  let closed = false
  let isFull = false
  let attempt = 0
  let ceilingMs = firstDelayMs
  let connectedBefore = options.resumeFrom !== undefined
  /** The newest seq taken into the buffer. */
  let takenSeq = options.resumeFrom
  let readSeq = options.resumeFrom
  /** Of this connection: the newest number when it began, frames of the snapshot still to come, frames the service dropped. */
  let greetedSeq = 0
  let snapshotLeft = 0
  let droppedByService = 0
  /** The cursor was not taken, and the service has not said so yet. */
  let owesWindow = false
  /** Frames dropped from the front of the buffer, told before the next read. */
  let dropped: GapEvent | undefined

  function open(): void {
    attempt += 1
    if (!take({ kind: 'connection', state: 'connecting', attempt })) return
    if (options.ticket === undefined) return connectWith(undefined)
    // Without a ticket the service refuses, and that is tried again like any other refusal.
    options.ticket().then(connectWith, () => connectWith(undefined))
  }

  function connectWith(ticket: string | undefined): void {
    if (closed) return
    const url = streamAddress({ base: options.url, subscribe: options.subscribe, resumeFrom: takenSeq, ticket })
    const opened = connect(url)
    socket = opened
    greetedSeq = 0
    snapshotLeft = 0
    droppedByService = 0
    owesWindow = false
    listenForSilence(opened)
    opened.onmessage = ({ data }) => {
      if (socket !== opened) return
      listenForSilence(opened)
      const frame = readFrame(data)
      if (frame === undefined) hangUp(CLOSE_BROKEN, 'not a frame of this protocol')
      else handle(frame)
    }
    opened.onclose = ({ code, reason }) => {
      if (socket === opened) lost(code, reason)
    }
    // What went wrong comes with the close event; Node's own class would otherwise report it as unhandled.
    opened.onerror = () => undefined
  }

  function handle(frame: Frame): void {
    switch (frame.type) {
      case 'Hello':
        return greet(frame.payload as Hello)
      case 'Warning':
        return warn(frame.payload as Warning)
      case 'Error':
        return void take({ kind: 'refused', error: frame.payload as StreamError })
      default:
        return handleData(frame)
    }
  }

  function greet(hello: Hello): void {
    take({ kind: 'connection', state: 'open', resumed: hello.resumed, hello })
    greetedSeq = hello.newest_seqno
    if (!hello.resumed) {
      snapshotLeft = Math.min(hello.snapshot, SNAPSHOT_EVENTS_MAX)
      if (takenSeq !== undefined) owesWindow = true
      else if (connectedBefore) takeGap('window', undefined, undefined)
      settleCursor()
    }
    connectedBefore = true
  }

  /** Until a snapshot is whole and its gap is told the old cursor holds: a connection lost in between hides nothing. */
  function settleCursor(): void {
    if (snapshotLeft === 0 && !owesWindow) takenSeq = greetedSeq
  }

  function reportWindow(warning: Warning | undefined): void {
    takeGap('window', warning, undefined)
    owesWindow = false
    settleCursor()
  }

  function warn(warning: Warning): void {
    const reason = GAP_OF_WARNING[warning.type]
    if (reason === undefined) return void take({ kind: 'warning', warning })
    if (reason === 'window') return reportWindow(warning)
    if (warning.type !== 'backpressure') return takeGap(reason, warning, undefined)
    takeGap(reason, warning, warning.dropped - droppedByService)
    droppedByService = warning.dropped
  }

  function handleData({ seq, type, payload }: Frame): void {
    if (type === 'Subscribed') return
    if (owesWindow) reportWindow(undefined)
    const origin: FrameOrigin = snapshotLeft > 0 ? 'snapshot' : seq <= greetedSeq ? 'replay' : 'live'
    // Frames of a snapshot share one seq; all others have one of their own, growing.
    if (origin !== 'snapshot' && takenSeq !== undefined && seq <= takenSeq) return
    const event = DATA_KINDS.has(type)
      ? ({ kind: type, seq, origin, data: payload } as DataEvent)
      : ({ kind: 'other', seq, type, data: payload } as const)
    if (origin === 'snapshot') {
      buffer.push(event)
      snapshotLeft -= 1
      settleCursor()
    } else {
      if (!take(event)) return
      takenSeq = seq
    }
    attempt = 0
    ceilingMs = firstDelayMs
  }

  function takeGap(reason: GapEvent['reason'], warning: Warning | undefined, frames: number | undefined): void {
    take({ kind: 'gap', reason, after: takenSeq, frames, warning })
  }

  /** Puts an event into the buffer; false when it was full and the event has to come again by resuming. */
  function take(event: StreamEvent): boolean {
    if (buffer.size() >= eventsMax) {
      if (options.whenFull !== 'drop-oldest') {
        // Words about the connection may be lost with it; a gap may not, and one more event does no harm.
        if (event.kind === 'gap') buffer.push(event)
        if (!isFull) hangUpFull()
        return false
      }
      dropped = addDropped(dropped, buffer.dropOldest(), readSeq)
    }
    buffer.push(event)
    return true
  }

  function hangUpFull(): void {
    isFull = true
    buffer.push({ kind: 'connection', state: 'full', code: CLOSE_FULL, reason: 'buffer is full', retryInMs: undefined })
    leave(CLOSE_FULL, 'buffer is full')
  }

  function afterRead(): void {
    if (!isFull || closed || buffer.size() > eventsMax / 2) return
    isFull = false
    open()
  }

  function lost(code: number, reason: string): void {
    socket = undefined
    silence?.cancel()
    if (closed || isFull) return
    // Half of each delay is chance, so that clients which lost one service together return apart.
    const retryInMs = ceilingMs / 2 + random() * (ceilingMs / 2)
    ceilingMs = Math.min(options.maxDelayMs ?? MAX_DELAY_MS, ceilingMs * 2)
    take({ kind: 'connection', state: 'waiting', code, reason, retryInMs })
    if (isFull) return
    timer = setTimer(retryInMs, open)
  }

  function hangUp(code: number, reason: string): void {
    leave(code, reason)
    lost(code, reason)
  }

  function leave(code: number, reason: string): void {
    const leaving = socket
    socket = undefined
    silence?.cancel()
    leaving?.close(code, reason)
  }

  function listenForSilence(of: Socket): void {
    silence?.cancel()
    silence = setTimer(options.silenceMs ?? SILENCE_MS, () => {
      if (socket === of) hangUp(CLOSE_SILENT, 'silent for too long')
    })
  }

  function close(): void {
    if (closed) return
    closed = true
    timer?.cancel()
    options.signal?.removeEventListener('abort', close)
    leave(1000, 'done')
    buffer.end()
  }

  async function next(): Promise<IteratorResult<StreamEvent, undefined>> {
    if (dropped !== undefined) {
      const value = dropped
      dropped = undefined
      return { done: false, value }
    }
    const result = await buffer.next()
    if (!result.done && 'seq' in result.value) readSeq = result.value.seq
    return result
  }

  if (options.signal?.aborted === true) close()
  else {
    options.signal?.addEventListener('abort', close, { once: true })
    open()
  }

  const stream: ExecutionStream = {
    cursor: () => readSeq,
    buffered: () => buffer.size(),
    close,
    next,
    async return() {
      close()
      buffer.clear()
      return { done: true, value: undefined }
    },
    [Symbol.asyncIterator]: () => stream,
    async [Symbol.asyncDispose]() {
      close()
    },
  }
  return stream
}

/** One gap for everything dropped since the last read; a gap that is dropped itself is counted in. */
function addDropped(gap: GapEvent | undefined, event: StreamEvent | undefined, after: number | undefined): GapEvent {
  const frames = event === undefined ? 0 : 'seq' in event ? 1 : event.kind === 'gap' ? (event.frames ?? 0) : 0
  return {
    kind: 'gap',
    reason: 'buffer',
    after: gap === undefined ? after : gap.after,
    frames: (gap?.frames ?? 0) + frames,
    warning: undefined,
  }
}
