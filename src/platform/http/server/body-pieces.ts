import type { IncomingMessage } from 'node:http'

/**
 * How many pieces a body may have, by its bytes so far. The runtime makes a buffer of some hundred bytes for each chunk of a chunked body, also for
 * one of a single byte, and calls back for it: without this limit the memory and the time of a body would be a hundred times those of its bytes.
 */
export type BodyPieces = { readonly free: number; readonly bytesEach: number }

/** The limit of the request under way: programs that write a body in small steps send more than this in each. */
export const BODY_PIECES: BodyPieces = { free: 256, bytesEach: 64 }
/** The limit of a request behind another one, whose body stays in memory meanwhile. */
export const WAITING_BODY_PIECES: BodyPieces = { free: 64, bytesEach: 1024 }

/** Calls `refuse`, once, when a chunked body has more pieces than its bytes allow. What comes after that is dropped. */
export function limitBodyPieces(request: IncomingMessage, limit: () => BodyPieces, refuse: () => void): void {
  if (request.headers['transfer-encoding'] === undefined) return
  let pieces = 0
  let bytes = 0
  let isRefused = false
  // The parser passes each piece to `push`. A listener would begin to read the body before its handler does.
  const push = request.push
  request.push = function pushPiece(this: IncomingMessage, piece: Buffer | null, encoding?: BufferEncoding): boolean {
    if (piece !== null && !isRefused) {
      pieces += 1
      bytes += piece.length
      const { free, bytesEach } = limit()
      isRefused = pieces > free + bytes / bytesEach
      if (isRefused) refuse()
    }
    // False stops the reading: else the body would be parsed up to the end of what the kernel holds.
    return isRefused ? false : push.call(this, piece, encoding)
  }
}
