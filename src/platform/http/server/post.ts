import type { AcquiredBuffer } from '../../net/buffer-pool.ts'
import type { ResponseRest } from '../response-rest.ts'

/** A POST request as its handler sees it, whether the fast path or node:http parsed it. */

/** The head: the caller is authenticated and the request accepted before its body is read. */
export type PostHead = {
  /** Path and query as received. */
  readonly target: string
  /** Names and values alternating, as received. */
  readonly headers: readonly string[]
  /** The Content-Length, where there is one. */
  readonly bodyBytes: number | undefined
  /** The same object for all requests of a connection. */
  readonly connection: { readonly remoteAddress?: string | undefined }
  /**
   * Set by a parser with a header cache: the same object for consecutive heads with this target and these headers. The handler may store here what
   * it derives from them; what can change between requests it must evaluate each time.
   */
  readonly memo?: { value: unknown } | undefined
}

export type HttpResponse = {
  readonly status: number
  /** Names in lower case, without content-length and connection: the parser's side adds those. */
  readonly headers: Readonly<Record<string, string>>
  /** The same headers as field lines, where the handler makes them as text anyway. */
  readonly lines?: string | undefined
  readonly body: Buffer | string
  /** Released when all bytes of the body have been handed to the kernel; left to the garbage collector where that is not known. */
  readonly pooled?: Pick<AcquiredBuffer, 'release'> | undefined
  /** The part of a large body that follows `body`. */
  readonly rest?: ResponseRest | undefined
  /** The connection is closed after this response. */
  readonly closes?: boolean | undefined
}

/** What the handler decides by the head: to respond without reading the body, or to read it. */
export type PostDecision = { readonly requestId: string } & (
  | { readonly response: HttpResponse | Promise<HttpResponse> }
  | {
      readonly bodyBytesMax: number
      /** The response to a body of unknown length that exceeds `bodyBytesMax`. */
      tooLarge(): HttpResponse
      /** Reserves memory for an incomplete body; returns the refusal where there is none left. */
      holdBody?(bytes: number): HttpResponse | undefined
      /** The bytes are not held any more. */
      releaseBody?(bytes: number): void
      /** Bytes of the response's body were handed to the socket. Not called for a refusal of the body itself. */
      onBodySent?(bytes: number): void
      /** The bytes are valid only until this returns. The sink gets the response once, then or later. */
      onBody(body: Buffer, sink: ResponseSink): void
    }
)

/** Takes the response to one request. */
export type ResponseSink = {
  respond(response: HttpResponse): void
  /** The handler failed, which is a programming error: the response has no details. */
  fail(error: unknown): void
}

export type PostHandler = {
  /** Sent with every response beside its own headers. */
  readonly headers: Readonly<Record<string, string>>
  validate(head: PostHead): PostDecision
}

/** The response when a handler throws. */
export const INTERNAL_BODY = { error: 'internal', message: 'internal error' }
export const INTERNAL_RESPONSE: HttpResponse = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(INTERNAL_BODY),
}

/** Bodies are written in pieces of this size, so that the stall watch sees the progress of a slow reader. */
export const PIECE_BYTES = 64 * 1024

export function piecesOf(bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) pieces.push(bytes.subarray(at, at + PIECE_BYTES))
  return pieces
}
