import type { Writable } from 'node:stream'
import { piecesOf, type ResponseRest } from './post.ts'

/** Writes a response that is there whole; false when the peer has not taken all of it yet. */
export function writePieces(stream: Writable, head: string, body: Buffer): boolean {
  let isTaken = stream.write(head, 'latin1')
  for (const piece of piecesOf(body)) isTaken = stream.write(piece)
  return isTaken
}

const LAST_CHUNK = '0\r\n\r\n'

/**
 * Writes an answer whose length nobody knows yet: the head, what has come of the body, and the rest as it comes. The rest is held back while
 * the peer takes its time; the caller lets it go on with `rest.resume` when the stream has drained. `onEnd` says whether all is taken already.
 */
export function writeChunked(
  stream: Writable,
  response: { readonly head: Buffer; readonly body: Buffer; readonly rest: ResponseRest },
  onEnd: (isTaken: boolean) => void,
): void {
  const { head, body, rest } = response
  stream.cork()
  stream.write(head)
  writeChunk(stream, body)
  stream.uncork()
  rest.start({
    onData(chunk) {
      if (!writeChunk(stream, chunk)) rest.pause()
    },
    onEnd: () => onEnd(stream.write(LAST_CHUNK, 'latin1')),
    // The status is on its way already: cutting the connection is the only way left to say that this is not all.
    onFail: () => void stream.destroy(),
  })
}

function writeChunk(stream: Writable, bytes: Buffer): boolean {
  // A chunk of no bytes would be the last one.
  if (bytes.length === 0) return !stream.writableNeedDrain
  stream.cork()
  stream.write(`${bytes.length.toString(16)}\r\n`, 'latin1')
  stream.write(bytes)
  const isTaken = stream.write('\r\n', 'latin1')
  stream.uncork()
  return isTaken
}
