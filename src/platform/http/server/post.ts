/** A POST as a door sees it, whichever of the two readers took it off the wire: the plain one, or node:http. */

/** The head alone: whose request it is and whether its body is wanted is decided before the body is read. */
export type PostHead = {
  /** Path and query as they came. */
  readonly target: string
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[]
  /** Length of the body where it was told in advance. */
  readonly bodyBytes: number | undefined
  /** Stands for the connection, the same object for all its requests. */
  readonly connection: { readonly remoteAddress?: string | undefined }
  /**
   * Set where the reader knows heads again: the same object comes with every head of this target and these headers, and goes with the first
   * that differs. The handler may leave here what it reads from them; what holds only now it must ask anew each time.
   */
  readonly kept?: { reading: unknown } | undefined
}

export type HttpResponse = {
  readonly status: number
  /** Names in lower case, without length and connection: those are the reader's own. */
  readonly headers: Readonly<Record<string, string>>
  /** The same headers as they stand on the wire, where they are made as text anyway. */
  readonly lines?: string | undefined
  readonly body: Buffer | string
  /** The part of a large answer that is still to come. */
  readonly rest?: ResponseRest | undefined
  /** The connection is closed after it. */
  readonly closes?: boolean | undefined
}

/** The rest of a large answer, read from its source only as fast as the client takes it. */
export type ResponseRest = {
  start(listener: { onData(chunk: Buffer): void; onEnd(): void; onFail(): void }): void
  pause(): void
  resume(): void
  abort(): void
}

/** What becomes of a request by its head: answered as it stands, its body unread, or read to an end. */
export type PostVerdict = { readonly requestId: string } & (
  | { readonly response: HttpResponse | Promise<HttpResponse> }
  | {
      readonly bodyBytesMax: number
      /** For a body of unknown length that turns out longer. */
      tooLarge(): HttpResponse
      /** Asked before bytes of a body that is not complete are kept; the response that refuses them where there is no room. */
      holdBody?(bytes: number): HttpResponse | undefined
      /** The bytes are not kept any more. */
      releaseBody?(bytes: number): void
      /** The bytes are good only until this returns; the answer is told then or later, once. */
      onBody(body: Buffer, responder: Responder): void
    }
)

/** Takes the answer to one request. */
export type Responder = {
  respond(response: HttpResponse): void
  /** The handler failed: a mistake of the program, answered without its details. */
  fail(error: unknown): void
}

export type PostHandler = {
  /** Sent with every answer beside its own. */
  readonly headers: Readonly<Record<string, string>>
  validate(head: PostHead): PostVerdict
}

/** What a handler that threw leaves to say. */
export const INTERNAL_RESPONSE: HttpResponse = {
  status: 500,
  headers: { 'content-type': 'application/json' },
  body: '{"error":"internal"}',
}

/** Bodies leave in pieces of this size, so that the progress of a slow reader can be seen between them. */
export const PIECE_BYTES = 64 * 1024

export function piecesOf(bytes: Buffer): Buffer[] {
  const pieces: Buffer[] = []
  for (let at = 0; at < bytes.length; at += PIECE_BYTES) pieces.push(bytes.subarray(at, at + PIECE_BYTES))
  return pieces
}
