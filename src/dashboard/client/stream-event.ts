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

/** Where a frame comes from: the snapshot at the start, the replay after a reconnect, or the live stream. */
export type FrameOrigin = 'snapshot' | 'replay' | 'live'

type Data<Kind extends string, Payload> = {
  readonly kind: Kind
  /** The cursor: a resume with it continues after this event. */
  readonly seq: number
  readonly origin: FrameOrigin
  readonly data: Payload
}

/** Data about the chain. */
export type DataEvent =
  | Data<'TPS', number>
  | Data<'ContentionData', ContentionData>
  | Data<'ConflictData', ConflictData>
  | Data<'TopAccesses', TopAccesses>
  | Data<'Lifecycle', Lifecycle>
  | Data<'Events', readonly RawEvent[]>

/**
 * Frames that this client did not and will not get, and why.
 * `source`: the node's ring lost events. `restart`: the node's ring was replaced. `slow`: the service dropped frames for this client.
 * `window`: the cursor was outside the resume buffer, so a snapshot follows. `buffer`: this client's own buffer overflowed.
 */
export type GapEvent = {
  readonly kind: 'gap'
  readonly reason: 'source' | 'restart' | 'slow' | 'window' | 'buffer'
  /** The last cursor before the gap, where there was one. */
  readonly after: number | undefined
  /** How many frames are missing, where that is known. */
  readonly frames: number | undefined
  /** The warning of the service, where it sent one. */
  readonly warning: Warning | undefined
}

/** The state of the connection. `full`: closed by this client because its buffer is full; it resumes once events are read. */
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
