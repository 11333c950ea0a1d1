import type { Hello, StreamError, Warning } from '../../contract/stream-events.ts'
import { createEventBuffer } from './event-buffer.ts'
import { type Frame, readFrame, streamUrl } from './protocol.ts'
import { ReportedGaps } from './reported-gaps.ts'
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
    /** The cursor of the last event read: store it to resume in another run. */
    cursor(): number | undefined
    /** Unread events. */
    buffered(): number
    close(): void
  }

/** A snapshot is buffered completely, beyond the limit of the buffer, up to this number of frames. */
const SNAPSHOT_EVENTS_MAX = 10_000
/** Close codes an application may send are 1000 and 3000–4999 (RFC 6455 section 7.4.2). */
const CLOSE_FULL = 4000
const CLOSE_BROKEN = 4001
const CLOSE_SILENT = 4002
/** The code of a connection that ended without a close frame (RFC 6455 section 7.1.5). */
const CODE_FAILED = 1006

const DATA_KINDS: ReadonlySet<string> = new Set<DataEvent['kind']>([
  'TPS',
  'ContentionData',
  'ConflictData',
  'TopAccesses',
  'Lifecycle',
  'Events',
])
/** At least one frame per block, whatever the chain does: silence means that the connection is lost. */
const EVERY_BLOCK: ReadonlySet<string> = new Set(['TPS', 'Lifecycle'])
const GAP_OF_WARNING: Readonly<Record<string, GapEvent['reason']>> = {
  ring_gap: 'source',
  ring_restart: 'restart',
  backpressure: 'slow',
  resume_out_of_window: 'window',
}

/**
 * The execution stream as an async iterator: `for await (const event of openExecutionStream({ url }))`.
 * It reconnects with backoff, resumes after the last event it has, returns no event twice, and reports every gap. Leaving the loop
 * closes it.
 */
export function openExecutionStream(options: StreamOptions, deps: Partial<StreamDeps> = {}): ExecutionStream {
  return new StreamClient(options, { ...systemDeps, ...deps })
}

/** One WebSocket connection. */
type Connection = {
  readonly socket: Socket
  /** The newest sequence number when the connection began. */
  newestSeq: number
  /** Frames of the snapshot that have not arrived yet. */
  snapshotLeft: number
  /** Frames that the service reported as dropped. */
  dropped: number
  /** The cursor was refused, and the warning about it has not arrived yet. */
  awaitsWindowWarning: boolean
  /** Its subscription has no kind of every block. */
  mayBeSilent: boolean
}

class StreamClient implements ExecutionStream {
  readonly #options: StreamOptions
  readonly #deps: StreamDeps
  readonly #eventsMax: number
  readonly #firstDelayMs: number
  readonly #buffer = createEventBuffer<StreamEvent>(() => this.#afterRead())
  #connection: Connection | undefined
  #reconnectTimer: { cancel(): void } | undefined
  #silenceTimer: { cancel(): void } | undefined
  #isClosed = false
  /** Disconnected because the buffer is full. */
  #isFull = false
  #attempt = 0
  #delayMaxMs: number
  #hasConnected: boolean
  /** The newest sequence number in the buffer, and the newest one read. */
  #addedSeq: number | undefined
  #readSeq: number | undefined
  /** Frames of a snapshot with others after them: a program that stops there has not read the whole snapshot, so they do not move its cursor. */
  readonly #notLast = new WeakSet<StreamEvent>()
  readonly #reportedGaps = new ReportedGaps()
  /** Frames dropped from the front of the buffer, reported before the next read. */
  #droppedGap: GapEvent | undefined

  constructor(options: StreamOptions, deps: StreamDeps) {
    this.#options = options
    this.#deps = deps
    this.#eventsMax = options.bufferedEventsMax ?? BUFFERED_EVENTS_MAX
    this.#firstDelayMs = options.firstDelayMs ?? FIRST_DELAY_MS
    this.#delayMaxMs = this.#firstDelayMs
    this.#hasConnected = options.resumeFrom !== undefined
    this.#addedSeq = options.resumeFrom
    this.#readSeq = options.resumeFrom
    if (options.signal?.aborted === true) this.close()
    else {
      options.signal?.addEventListener('abort', this.close, { once: true })
      this.#open()
    }
  }

  cursor(): number | undefined {
    return this.#readSeq
  }

  buffered(): number {
    return this.#buffer.size()
  }

  readonly close = (): void => {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#reconnectTimer?.cancel()
    this.#options.signal?.removeEventListener('abort', this.close)
    this.#closeSocket(1000, 'done')
    this.#buffer.end()
  }

  async next(): Promise<IteratorResult<StreamEvent, undefined>> {
    if (this.#droppedGap !== undefined) {
      const value = this.#droppedGap
      this.#droppedGap = undefined
      return { done: false, value }
    }
    const result = await this.#buffer.next()
    if (!result.done && 'seq' in result.value && !this.#notLast.has(result.value)) this.#readSeq = result.value.seq
    return result
  }

  async return(): Promise<IteratorResult<StreamEvent, undefined>> {
    this.close()
    this.#buffer.clear()
    return { done: true, value: undefined }
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.close()
  }

  #open(): void {
    this.#attempt += 1
    if (!this.#add({ kind: 'connection', state: 'connecting', attempt: this.#attempt })) return
    if (this.#options.ticket === undefined) return this.#connect(undefined)
    // Without a ticket the service refuses the connection, and it is tried again like any other.
    this.#options.ticket().then(
      (ticket) => this.#connect(ticket),
      () => this.#connect(undefined),
    )
  }

  #connect(ticket: string | undefined): void {
    if (this.#isClosed) return
    const { url: base, subscribe } = this.#options
    const socket = this.#deps.connect(streamUrl({ base, subscribe, resumeFrom: this.#addedSeq, ticket }))
    const connection: Connection = {
      socket,
      newestSeq: 0,
      snapshotLeft: 0,
      dropped: 0,
      awaitsWindowWarning: false,
      mayBeSilent: false,
    }
    this.#connection = connection
    this.#watchSilence(connection)
    socket.onmessage = ({ data }) => {
      if (this.#connection !== connection) return
      const frame = readFrame(data)
      if (frame === undefined) return this.#disconnect(CLOSE_BROKEN, 'not a frame of this protocol')
      this.#handle(frame, connection)
      if (this.#connection === connection) this.#watchSilence(connection)
    }
    socket.onclose = ({ code, reason }) => {
      if (this.#connection === connection) this.#reconnectLater(code, reason)
    }
    // A close event with 1006 follows an error, except in Node 22 for a connection that could not be opened.
    socket.onerror = () => {
      if (this.#connection === connection) this.#reconnectLater(CODE_FAILED, '')
    }
  }

  #handle(frame: Frame, connection: Connection): void {
    switch (frame.type) {
      case 'Hello':
        return this.#handleHello(frame.payload as Hello, connection)
      case 'Warning':
        return this.#handleWarning(frame.payload as Warning, connection)
      case 'Error':
        return void this.#add({ kind: 'refused', error: frame.payload as StreamError })
      default:
        return this.#handleData(frame, connection)
    }
  }

  #handleHello(hello: Hello, connection: Connection): void {
    this.#attempt = 0
    this.#delayMaxMs = this.#firstDelayMs
    connection.mayBeSilent = !hello.subscribed.events.some((item) => EVERY_BLOCK.has(item))
    this.#add({ kind: 'connection', state: 'open', resumed: hello.resumed, hello })
    connection.newestSeq = hello.newest_seqno
    this.#reportedGaps.connected({ isResumed: hello.resumed })
    if (!hello.resumed) {
      connection.snapshotLeft = Math.min(hello.snapshot, SNAPSHOT_EVENTS_MAX)
      if (this.#addedSeq !== undefined) connection.awaitsWindowWarning = true
      else if (this.#hasConnected) this.#addGap('window', undefined, undefined)
      this.#settleCursor(connection)
    }
    this.#hasConnected = true
  }

  /** The old cursor stays until the snapshot is complete and its gap is reported, so that a connection lost in between hides nothing. */
  #settleCursor({ snapshotLeft, awaitsWindowWarning, newestSeq }: Connection): void {
    if (snapshotLeft === 0 && !awaitsWindowWarning) this.#advanceCursor(newestSeq)
  }

  #reportWindow(warning: Warning | undefined, connection: Connection): void {
    this.#addGap('window', warning, undefined)
    connection.awaitsWindowWarning = false
    this.#settleCursor(connection)
  }

  #handleWarning(warning: Warning, connection: Connection): void {
    const reason = GAP_OF_WARNING[warning.type]
    if (reason === undefined) return void this.#add({ kind: 'warning', warning })
    if (reason === 'window') return this.#reportWindow(warning, connection)
    if (warning.type !== 'backpressure') {
      if (this.#reportedGaps.add(warning)) this.#addGap(reason, warning, undefined)
      return
    }
    this.#addGap(reason, warning, warning.dropped - connection.dropped)
    connection.dropped = warning.dropped
  }

  #handleData({ seq, type, payload }: Frame, connection: Connection): void {
    if (type === 'Subscribed') return
    if (connection.awaitsWindowWarning) this.#reportWindow(undefined, connection)
    const isSnapshot = connection.snapshotLeft > 0
    // Frames of a snapshot share one sequence number; all others have their own, in ascending order.
    if (!isSnapshot && this.#addedSeq !== undefined && seq <= this.#addedSeq) return
    const origin: FrameOrigin = isSnapshot ? 'snapshot' : seq <= connection.newestSeq ? 'replay' : 'live'
    const event = DATA_KINDS.has(type)
      ? ({ kind: type, seq, origin, data: payload } as DataEvent)
      : ({ kind: 'other', seq, type, data: payload } as const)
    if (isSnapshot) {
      connection.snapshotLeft -= 1
      if (connection.snapshotLeft > 0) this.#notLast.add(event)
      this.#buffer.push(event)
      this.#settleCursor(connection)
    } else {
      if (!this.#add(event)) return
      this.#advanceCursor(seq)
    }
  }

  #advanceCursor(seq: number): void {
    this.#addedSeq = seq
    this.#reportedGaps.clear()
  }

  #addGap(reason: GapEvent['reason'], warning: Warning | undefined, frames: number | undefined): void {
    this.#add({ kind: 'gap', reason, after: this.#addedSeq, frames, warning })
  }

  /** Adds an event to the buffer; false when the buffer is full and the event must come again by resuming. */
  #add(event: StreamEvent): boolean {
    if (this.#buffer.size() >= this.#eventsMax) {
      if (this.#options.whenFull !== 'drop-oldest') {
        // Connection events may be lost; a gap may not, so it is added beyond the limit.
        if (event.kind === 'gap') this.#buffer.push(event)
        if (!this.#isFull) this.#disconnectFull()
        return false
      }
      this.#droppedGap = addDropped(this.#droppedGap, this.#buffer.dropOldest(), this.#readSeq)
    }
    this.#buffer.push(event)
    return true
  }

  #disconnectFull(): void {
    this.#isFull = true
    const reason = 'buffer is full'
    this.#buffer.push({ kind: 'connection', state: 'full', code: CLOSE_FULL, reason, retryInMs: undefined })
    this.#closeSocket(CLOSE_FULL, reason)
  }

  #afterRead(): void {
    if (!this.#isFull || this.#isClosed || this.#buffer.size() > this.#eventsMax / 2) return
    this.#isFull = false
    this.#open()
  }

  #disconnect(code: number, reason: string): void {
    this.#closeSocket(code, reason)
    this.#reconnectLater(code, reason)
  }

  #reconnectLater(code: number, reason: string): void {
    this.#connection = undefined
    this.#silenceTimer?.cancel()
    if (this.#isClosed || this.#isFull) return
    // Half of each delay is random, so that clients which lost the service together do not return together.
    const retryInMs = this.#delayMaxMs / 2 + this.#deps.random() * (this.#delayMaxMs / 2)
    this.#delayMaxMs = Math.min(this.#options.maxDelayMs ?? MAX_DELAY_MS, this.#delayMaxMs * 2)
    this.#add({ kind: 'connection', state: 'waiting', code, reason, retryInMs })
    if (this.#isFull) return
    this.#reconnectTimer = this.#deps.setTimer(retryInMs, () => this.#open())
  }

  #closeSocket(code: number, reason: string): void {
    const closing = this.#connection
    this.#connection = undefined
    this.#silenceTimer?.cancel()
    closing?.socket.close(code, reason)
  }

  #watchSilence(connection: Connection): void {
    this.#silenceTimer?.cancel()
    const { silenceMs } = this.#options
    // Pings of the service are not visible here, so an open connection without frames looks like a lost one.
    if (connection.mayBeSilent && silenceMs === undefined) return
    this.#silenceTimer = this.#deps.setTimer(silenceMs ?? SILENCE_MS, () => {
      if (this.#connection === connection) this.#disconnect(CLOSE_SILENT, 'silent for too long')
    })
  }
}

/** One gap for all frames dropped since the last read; a dropped gap event is included. */
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
