import type {
  ConflictData,
  ContentionData,
  Hello,
  Lifecycle,
  RawEvent,
  StreamError,
  TopAccesses,
  Warning,
} from '../../contract/stream-events.ts'

/** Where a frame came from: the state at the start, what was missed while away, or this moment. */
export type FrameOrigin = 'snapshot' | 'replay' | 'live'

type Data<Kind extends string, Payload> = {
  readonly kind: Kind
  /** The cursor: resuming after it gives everything that follows. */
  readonly seq: number
  readonly origin: FrameOrigin
  readonly data: Payload
}

/** What the service tells about the chain. */
export type DataEvent =
  | Data<'TPS', number>
  | Data<'ContentionData', ContentionData>
  | Data<'ConflictData', ConflictData>
  | Data<'TopAccesses', TopAccesses>
  | Data<'Lifecycle', Lifecycle>
  | Data<'Events', readonly RawEvent[]>

/**
 * Something this client did not and will not get, and why.
 * `source`: the node's ring lost events. `restart`: the node's ring began anew. `slow`: the service dropped frames for this client.
 * `window`: the cursor was outside what the service keeps, so a snapshot follows. `buffer`: this client's own buffer overflowed.
 */
export type GapEvent = {
  readonly kind: 'gap'
  readonly reason: 'source' | 'restart' | 'slow' | 'window' | 'buffer'
  /** The last cursor before the gap, where there was one. */
  readonly after: number | undefined
  /** How many frames are missing, where that is known. */
  readonly frames: number | undefined
  /** The service's own words, where it said something. */
  readonly warning: Warning | undefined
}

/** The state of the connection. `full`: closed by this client because nobody reads; it resumes once the buffer has room. */
export type ConnectionEvent =
  | { readonly kind: 'connection'; readonly state: 'connecting'; readonly attempt: number }
  | { readonly kind: 'connection'; readonly state: 'open'; readonly resumed: boolean; readonly hello: Hello }
  | {
      readonly kind: 'connection'
      readonly state: 'waiting' | 'full'
      readonly code: number
      readonly reason: string
      readonly retryInMs: number | undefined
    }

export type StreamEvent =
  | DataEvent
  | GapEvent
  | ConnectionEvent
  | { readonly kind: 'warning'; readonly warning: Warning }
  | { readonly kind: 'refused'; readonly error: StreamError }
  /** A kind newer than this client: `/v1` may add kinds. */
  | { readonly kind: 'other'; readonly seq: number; readonly type: string; readonly data: unknown }
