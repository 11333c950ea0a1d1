import type { ServerResponse } from 'node:http'
import type { Clock } from '../../core/clock.ts'
import { createTimeSlices } from '../../platform/process/time-slices.ts'

/** A client that reads nothing for this time is disconnected. */
export const LINES_STALL_MS = 30_000
const PIECE_CHARS = 16_384

type Lines = {
  readonly status: number
  readonly headers: Record<string, string>
  readonly lines: AsyncIterable<string>
}

/**
 * Responds with lines as they are made, as fast as the client reads: one piece of them is in memory. The status is sent with the first piece, so that an error
 * before it is a proper response.
 */
export async function sendLines(
  response: ServerResponse,
  { status, headers, lines }: Lines,
  clock: Clock,
): Promise<void> {
  const slices = createTimeSlices()
  const isHead = response.req.method === 'HEAD'
  let piece = ''
  for await (const line of lines) {
    if (response.destroyed) return
    if (!response.headersSent) response.writeHead(status, headers)
    if (isHead) break
    piece += line
    if (piece.length >= PIECE_CHARS) {
      const isTaken = response.write(piece)
      piece = ''
      if (!isTaken) await drained(response, clock)
    }
    if (slices.isSpent()) await slices.yield()
  }
  if (!response.headersSent) response.writeHead(status, headers)
  response.end(isHead ? undefined : piece)
}

function drained(response: ServerResponse, clock: Clock): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const stall = clock.setTimer(LINES_STALL_MS, () => void response.destroy())
  const done = () => resolve()
  response.once('drain', done).once('close', done)
  return promise.finally(() => {
    stall.cancel()
    response.off('drain', done).off('close', done)
  })
}
