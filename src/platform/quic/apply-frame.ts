import type { Frame } from './frames.ts'
import type { Outbox } from './outbox.ts'
import type { PeerIds } from './peer-ids.ts'
import type { SendStreams } from './send-streams.ts'
import { CODES, QuicError } from './wire.ts'

/** Frames that only come after the handshake. */
export type ApplicationFrame = Exclude<
  Frame,
  { type: 'padding' | 'ping' | 'handshake-done' | 'ack' | 'crypto' | 'close' }
>

/** Applies a frame about streams, flow control or connection ids. Throws a QuicError for a frame that the peer must not send. */
export function applyFrame(
  frame: ApplicationFrame,
  { streams, ids, outbox }: { readonly streams: SendStreams; readonly ids: PeerIds; readonly outbox: Outbox },
): void {
  switch (frame.type) {
    case 'max-data':
      return streams.raiseData(frame.max)
    case 'max-streams':
      if (frame.isUni) streams.raiseStreams(frame.max)
      return
    case 'max-stream-data':
      // No stream waits for it: each is within the first window.
      if (!streams.isOpened(frame.stream)) {
        throw new QuicError(CODES.streamState, 'MAX_STREAM_DATA for a stream that was not opened')
      }
      return
    case 'stop-sending': {
      const { isKnown, finalBytes } = streams.stop(frame.stream)
      if (!isKnown) throw new QuicError(CODES.streamState, 'STOP_SENDING for a stream that was not opened')
      if (finalBytes !== undefined) outbox.reset(frame.stream, frame.code, finalBytes)
      return
    }
    case 'peer-stream':
      // Streams that we opened carry nothing back, and the peer may open none.
      throw frame.stream % 4 === 2
        ? new QuicError(CODES.streamState, 'data on a send-only stream')
        : new QuicError(CODES.streamLimit, 'a stream above the stream limit')
    case 'new-connection-id':
      return ids.add(frame)
    case 'retire-connection-id':
      throw new QuicError(CODES.protocolViolation, 'the only connection id cannot be retired')
    case 'path-challenge':
      return outbox.respondToPath(frame.data)
    case 'new-token':
    case 'blocked':
    case 'path-response':
      return
  }
}
