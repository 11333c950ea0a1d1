import type { ServerResponse } from 'node:http'
import type { Gzip } from 'node:zlib'
import { createGzipStream } from '../../platform/http/gzip.ts'
import { QueryError } from './error.ts'

/**
 * Sends the parts of a body as fast as the client takes them. An error after the head was sent is written into the body as ClickHouse does, and the
 * connection is closed before the end of the body: no client can take what it has for a complete result. Resolves with that error.
 */
export async function sendParts(
  response: ServerResponse,
  parts: AsyncIterable<Uint8Array>,
  { isZipped, exceptionTag }: { readonly isZipped: boolean; readonly exceptionTag: string | undefined },
): Promise<QueryError | undefined> {
  const body = openBody(response, isZipped)
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
    await body.flush()
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

type Body = {
  /** Resolves when there is room for more; with false when the client has disconnected. */
  write(bytes: Uint8Array): Promise<boolean>
  /** Resolves when everything written so far has left this process. */
  flush(): Promise<void>
  end(): Promise<void>
}

function openBody(response: ServerResponse, isZipped: boolean): Body {
  const closed = Promise.withResolvers<false>()
  response.once('close', () => closed.resolve(false))
  const isGone = (): boolean => response.destroyed || response.socket?.destroyed === true
  const gzip: Gzip | undefined = isZipped ? createGzipStream() : undefined
  gzip?.pipe(response)
  const target = gzip ?? response

  return {
    async write(bytes) {
      if (isGone()) return false
      if (target.write(bytes)) return true
      const drained = new Promise<true>((resolve) => target.once('drain', () => resolve(true)))
      return Promise.race([drained, closed.promise])
    },
    async flush() {
      if (isGone()) return
      if (gzip !== undefined) await Promise.race([new Promise<void>((resolve) => gzip.flush(resolve)), closed.promise])
      await Promise.race([new Promise<void>((resolve) => response.write('', () => resolve())), closed.promise])
    },
    async end() {
      if (isGone()) return
      const finished = new Promise<void>((resolve) => response.once('finish', resolve))
      target.end()
      await Promise.race([finished, closed.promise])
    },
  }
}
