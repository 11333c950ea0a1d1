import type { ServerResponse } from 'node:http'
import type { Transform, Writable } from 'node:stream'
import { QueryError } from './error.ts'

export type SendOptions = {
  /** What the body passes through, in order. */
  readonly encoders: readonly Transform[]
  /** Marks an error at the end of the body; undefined where the parts contain it, or the result was complete before it was sent. */
  readonly exceptionTag: string | undefined
  /** Called with the bytes of the body as they are written, encoded. */
  readonly onSent?: ((bytes: number) => void) | undefined
  /** Called around the time for which the client is awaited. */
  readonly onWait?: ((isWaiting: boolean) => void) | undefined
}

/**
 * Sends the parts of a body as fast as the client takes them. An error after the head was sent is written into the body as ClickHouse does, and the
 * connection is closed before the end of the body: no client can take what it has for a complete result. Resolves with that error.
 */
export async function sendParts(
  response: ServerResponse,
  parts: AsyncIterable<Uint8Array>,
  { encoders, exceptionTag, onSent, onWait }: SendOptions,
): Promise<QueryError | undefined> {
  using body = openBody(response, encoders, { onSent, onWait })
  try {
    for await (const part of parts) if (!(await body.write(part))) return undefined
    await body.end()
    return undefined
  } catch (error) {
    if (!(error instanceof QueryError)) {
      response.destroy()
      throw error
    }
    // In one write: clients look for it in the last chunk.
    if (exceptionTag !== undefined) await body.write(exceptionTrailer(error, exceptionTag))
    await body.finishEncoding()
    if (response.socket === null) response.destroy()
    else response.socket.destroySoon()
    return error
  }
}

/** ClickHouse's form since 25.11. The length counts the message with its line break. */
function exceptionTrailer(error: QueryError, tag: string): Buffer {
  const { body } = error
  return Buffer.from(`\r\n__exception__\r\n${tag}\r\n${body}${Buffer.byteLength(body)} ${tag}\r\n__exception__\r\n`)
}

/** A client makes progress when a piece has left completely (`platform/net/write-stall.ts`). */
const PIECE_BYTES = 64 * 1024

type Body = Disposable & {
  /** Resolves when there is room for more; with false when the client has disconnected. */
  write(bytes: Uint8Array): Promise<boolean>
  /** Resolves when everything has been encoded and has left this process. The response stays open. */
  finishEncoding(): Promise<void>
  end(): Promise<void>
}

function openBody(
  response: ServerResponse,
  encoders: readonly Transform[],
  { onSent, onWait }: Pick<SendOptions, 'onSent' | 'onWait'>,
): Body {
  const closed = Promise.withResolvers<false>()
  response.once('close', () => closed.resolve(false))
  const isGone = (): boolean => response.destroyed || response.socket?.destroyed === true
  for (const [at, encoder] of encoders.entries()) {
    encoder.once('error', () => response.destroy())
    encoder.pipe(encoders[at + 1] ?? response, { end: at + 1 < encoders.length })
  }
  // After `pipe`, so that what it writes is counted when it is written.
  encoders.at(-1)?.on('data', (chunk: Buffer) => {
    if (!isGone()) onSent?.(chunk.length)
  })
  const target: Writable = encoders[0] ?? response

  async function waitFor<Done>(done: Promise<Done>): Promise<Done | false> {
    onWait?.(true)
    try {
      return await Promise.race([done, closed.promise])
    } finally {
      onWait?.(false)
    }
  }

  async function finishEncoding(): Promise<void> {
    if (isGone()) return
    const last = encoders.at(-1)
    if (last !== undefined) {
      const ended = new Promise<void>((resolve) => last.once('end', () => resolve()))
      target.end()
      await waitFor(ended)
    }
    if (!isGone()) await waitFor(new Promise<void>((resolve) => response.write('', () => resolve())))
  }

  return {
    async write(bytes) {
      for (let from = 0; from < bytes.length; from += PIECE_BYTES) {
        if (isGone()) return false
        const piece = bytes.subarray(from, from + PIECE_BYTES)
        if (target === response) onSent?.(piece.length)
        if (target.write(piece)) continue
        const drained = new Promise<true>((resolve) => target.once('drain', () => resolve(true)))
        if (!(await waitFor(drained))) return false
      }
      return !isGone()
    },
    finishEncoding,
    async end() {
      await finishEncoding()
      if (isGone()) return
      const finished = new Promise<void>((resolve) => response.once('finish', resolve))
      response.end()
      await waitFor(finished)
    },
    [Symbol.dispose]() {
      for (const encoder of encoders) encoder.destroy()
    },
  }
}
