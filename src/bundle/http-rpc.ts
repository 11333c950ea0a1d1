import type { Caller } from '../access/admit.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { gunzipBytes } from '../host/gzip.ts'
import type { HttpAnswer, PostHandler, PostHead, Responder } from '../host/http-post.ts'
import { createRequestIds } from '../host/request-id.ts'
import { encodeAnswer } from './answer-encoding.ts'
import type { DoorMeter } from './metrics.ts'
import { refuseSize } from './refusal.ts'
import { type Rpc, refuse } from './rpc.ts'

export type RpcPostsDeps = {
  readonly rpc: Rpc
  readonly meter: Pick<DoorMeter, 'refused'>
  readonly clock: Clock
  readonly random: Random
}

/** JSON-RPC by POST, for whichever reader took the request: token by the head alone, then the body, unpacked where it came packed. */
export function createRpcPosts(
  commonHeaders: Readonly<Record<string, string>>,
  { rpc, meter, clock, random }: RpcPostsDeps,
): PostHandler {
  const requestIdOf = createRequestIds({ clock, random })
  return {
    headers: commonHeaders,
    judge(head) {
      const { headers, connection } = head
      const requestId = requestIdOf(headers)
      const caller = rpc.authenticate({ headers, query: queryOf(head.target), requestId, connection })
      if (!caller.ok) return { requestId, answer: caller.answer }
      const content = contentFieldsOf(head)
      if (!isJson(content.contentType)) return { requestId, answer: NOT_JSON }
      const isPacked = content.contentEncoding !== undefined && content.contentEncoding !== 'identity'
      if (isPacked && content.contentEncoding !== 'gzip') return { requestId, answer: UNKNOWN_ENCODING }
      const post = new RpcPost({ rpc, meter }, caller, requestId, connection, isPacked, content.acceptEncoding)
      return (head.bodyBytes ?? 0) > post.bodyBytesMax ? { requestId, answer: post.tooLarge() } : post
    },
  }
}

/** A request whose head is good: what becomes of its body, and the way its answer takes back. */
class RpcPost implements Responder {
  readonly requestId: string
  /** Stands for the client, for the rule that the slot it sees never goes back. */
  readonly connection: object
  readonly bodyBytesMax: number
  readonly #deps: Pick<RpcPostsDeps, 'rpc' | 'meter'>
  readonly #caller: Caller
  readonly #isPacked: boolean
  readonly #acceptEncoding: string | undefined
  #reader: Responder | undefined

  constructor(
    deps: Pick<RpcPostsDeps, 'rpc' | 'meter'>,
    caller: Caller,
    requestId: string,
    connection: object,
    isPacked: boolean,
    acceptEncoding: string | undefined,
  ) {
    this.requestId = requestId
    this.connection = connection
    this.bodyBytesMax = caller.limits.requestBytes
    this.#deps = deps
    this.#caller = caller
    this.#isPacked = isPacked
    this.#acceptEncoding = acceptEncoding
  }

  tooLarge(): HttpAnswer {
    this.#deps.meter.refused('requestBytes')
    return refuse(refuseSize('requestBytes', this.bodyBytesMax), this)
  }

  onBody(body: Buffer, reader: Responder): void {
    this.#reader = reader
    if (this.#isPacked) this.#unpack(body).catch((error: unknown) => this.fail(error))
    else this.#answer(body)
  }

  async #unpack(packed: Buffer): Promise<void> {
    // A copy, since the bytes given are good only until `onBody` returns.
    const outcome = await gunzipBytes(Buffer.from(packed), this)
    if (outcome.ok) this.#answer(outcome.body)
    else if (outcome.reason === 'too-large') this.respond(this.tooLarge())
    // What cannot be unpacked holds no JSON, and is answered so.
    else this.#answer(NOTHING)
  }

  #answer(body: Buffer): void {
    if (body.length > this.bodyBytesMax) this.respond(this.tooLarge())
    else this.#deps.rpc.answer(this.#caller, body, this, this)
  }

  respond(answer: HttpAnswer): void {
    const reader = this.#reader as Responder
    const encoded = encodeAnswer(answer, this.#acceptEncoding)
    if (!(encoded instanceof Promise)) return reader.respond(encoded)
    encoded.then(
      (packed) => reader.respond(packed),
      (error: unknown) => reader.fail(error),
    )
  }

  fail(error: unknown): void {
    this.#reader?.fail(error)
  }
}

const NOTHING = Buffer.alloc(0)
const TEXT = { 'content-type': 'text/plain; charset=utf-8' }
const NOT_JSON: HttpAnswer = { status: 415, headers: TEXT, body: 'Content-Type: application/json is required' }
const UNKNOWN_ENCODING: HttpAnswer = {
  status: 415,
  headers: { ...TEXT, 'accept-encoding': 'gzip' },
  body: 'Content-Encoding: only gzip is understood',
}

type ContentFields = {
  contentType: string | undefined
  /** In lower case. */
  contentEncoding: string | undefined
  acceptEncoding: string | undefined
}

function contentFieldsOf({ headers }: PostHead): ContentFields {
  const fields: ContentFields = { contentType: undefined, contentEncoding: undefined, acceptEncoding: undefined }
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    const value = headers[at + 1] as string
    // Lengths first: most headers are told apart without a look at their letters.
    if (name.length === 12 && name.toLowerCase() === 'content-type') fields.contentType ??= value
    else if (name.length === 16 && name.toLowerCase() === 'content-encoding') {
      // Two encodings one over the other, in whichever way they are written, are none of those understood.
      const value = (headers[at + 1] as string).trim().toLowerCase()
      fields.contentEncoding = fields.contentEncoding === undefined ? value : `${fields.contentEncoding},${value}`
    } else if (name.length === 15 && name.toLowerCase() === 'accept-encoding') {
      fields.acceptEncoding = fields.acceptEncoding === undefined ? value : `${fields.acceptEncoding},${value}`
    }
  }
  return fields
}

function queryOf(target: string): string {
  const mark = target.indexOf('?')
  return mark === -1 ? '' : target.slice(mark + 1)
}

function isJson(contentType: string | undefined): boolean {
  return contentType === 'application/json' || /^application\/json *(;|$)/i.test(contentType ?? '')
}
