import type { Caller } from '../../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectToken, type PresentedToken } from '../../access/credentials.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { createUlidSource } from '../../core/ulid.ts'
import { gunzipBytes, INFLATE_RATIO_MAX } from '../../platform/http/gzip.ts'
import type { ResponseBudget } from '../../platform/http/response-budget.ts'
import type { HttpResponse, PostHandler, PostHead, Responder } from '../../platform/http/server/post.ts'
import { givenRequestId } from '../../platform/http/server/request-id.ts'
import type { ListenerMeter } from '../metrics.ts'
import { refuseHeldBytes, refuseRatio, refuseSize } from '../refusal.ts'
import { refuse } from './refusal.ts'
import { encodeResponse } from './response-encoding.ts'
import type { Rpc } from './rpc.ts'

export type RpcPostsDeps = {
  readonly rpc: Rpc
  readonly meter: Pick<ListenerMeter, 'refused'>
  readonly clock: Clock
  readonly random: Random
  readonly budget: ResponseBudget
}

/** JSON-RPC by POST, for whichever reader took the request: token by the head alone, then the body, unpacked where it came packed. */
export function createRpcPosts(
  commonHeaders: Readonly<Record<string, string>>,
  { rpc, meter, clock, random, budget }: RpcPostsDeps,
): PostHandler {
  const nextUlid = createUlidSource(random)
  const deps = { rpc, meter, budget }
  return {
    headers: commonHeaders,
    validate(head) {
      const { connection, kept } = head
      const reading = (kept?.reading as HeadReading | undefined) ?? readHead(head)
      if (kept !== undefined) kept.reading = reading
      const nowMs = clock.nowMs()
      const requestId = reading.requestId ?? nextUlid(nowMs)
      // Asked for every request, also of a head that is known: a token may have been revoked a moment ago.
      const caller = rpc.authenticate({ headers: head.headers, requestId, connection }, reading.presented, nowMs)
      if (!caller.ok) return { requestId, response: caller.response }
      if (reading.refusal !== undefined) return { requestId, response: reading.refusal }
      const post = new RpcPost(deps, caller, requestId, connection, reading)
      return (head.bodyBytes ?? 0) > post.bodyBytesMax ? { requestId, response: post.tooLarge() } : post
    },
  }
}

/** A request whose head is good: what becomes of its body, and the way its answer takes back. */
class RpcPost implements Responder {
  readonly requestId: string
  /** Stands for the client, for the rule that the slot it sees never goes back. */
  readonly connection: object
  readonly bodyBytesMax: number
  readonly #deps: Pick<RpcPostsDeps, 'rpc' | 'meter' | 'budget'>
  readonly #caller: Caller
  readonly #head: HeadReading
  #reader: Responder | undefined

  constructor(
    deps: Pick<RpcPostsDeps, 'rpc' | 'meter' | 'budget'>,
    caller: Caller,
    requestId: string,
    connection: object,
    head: HeadReading,
  ) {
    this.requestId = requestId
    this.connection = connection
    this.bodyBytesMax = caller.limits.requestBytes
    this.#deps = deps
    this.#caller = caller
    this.#head = head
  }

  tooLarge(): HttpResponse {
    this.#deps.meter.refused('requestBytes', { subscription: this.#caller.subscription.id, code: 'too-large' })
    return refuse(refuseSize('requestBytes', this.bodyBytesMax), this)
  }

  #beyondRatio(): HttpResponse {
    this.#deps.meter.refused('inflateRatio', { subscription: this.#caller.subscription.id, code: 'too-large' })
    return refuse(refuseRatio(INFLATE_RATIO_MAX), this)
  }

  holdBody(bytes: number): HttpResponse | undefined {
    const { budget, meter } = this.#deps
    const { id } = this.#caller.subscription
    if (budget.acquire(id, bytes)) return undefined
    const limit = budget.exceeded(id, bytes) ?? 'heldBytes'
    meter.refused(limit, { subscription: id, code: 'overloaded' })
    return refuse(refuseHeldBytes(limit, budget.limits[limit]), this)
  }

  releaseBody(bytes: number): void {
    this.#deps.budget.release(this.#caller.subscription.id, bytes)
  }

  onBody(body: Buffer, reader: Responder): void {
    this.#reader = reader
    if (this.#head.isPacked) this.#unpack(body).catch((error: unknown) => this.fail(error))
    else this.#respond(body)
  }

  async #unpack(packed: Buffer): Promise<void> {
    // A copy, since the bytes given are good only until `onBody` returns.
    const outcome = await gunzipBytes(Buffer.from(packed), this)
    if (outcome.ok) this.#respond(outcome.body)
    else if (outcome.reason === 'too-large') this.respond(this.tooLarge())
    else if (outcome.reason === 'ratio') this.respond(this.#beyondRatio())
    // What cannot be unpacked holds no JSON, and is answered so.
    else this.#respond(NOTHING)
  }

  #respond(body: Buffer): void {
    if (body.length > this.bodyBytesMax) this.respond(this.tooLarge())
    else this.#deps.rpc.respond(this.#caller, body, this, this)
  }

  respond(response: HttpResponse): void {
    const reader = this.#reader as Responder
    const encoded = encodeResponse(response, this.#head.acceptEncoding)
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
const NOT_JSON: HttpResponse = { status: 415, headers: TEXT, body: 'Content-Type: application/json is required' }
const UNKNOWN_ENCODING: HttpResponse = {
  status: 415,
  headers: { ...TEXT, 'accept-encoding': 'gzip' },
  body: 'Content-Encoding: only gzip is understood',
}

/** What the headers and the query say, whoever sends them and whenever. */
type HeadReading = {
  readonly presented: PresentedToken
  /** Where the request brings an id of its own. */
  readonly requestId: string | undefined
  readonly isPacked: boolean
  readonly acceptEncoding: string | undefined
  /** The body is of a kind that nobody here reads. */
  readonly refusal: HttpResponse | undefined
}

function readHead(head: PostHead): HeadReading {
  const { contentType, contentEncoding, acceptEncoding } = contentFieldsOf(head)
  const isPacked = contentEncoding !== undefined && contentEncoding !== 'identity'
  const isUnknown = isPacked && contentEncoding !== 'gzip'
  return {
    presented: collectToken(CREDENTIAL_SOURCES.rpc, head.headers, queryOf(head.target)),
    requestId: givenRequestId(head.headers),
    isPacked,
    acceptEncoding,
    refusal: isJson(contentType) ? (isUnknown ? UNKNOWN_ENCODING : undefined) : NOT_JSON,
  }
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
