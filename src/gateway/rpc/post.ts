import type { Caller } from '../../access/callers.ts'
import { CREDENTIAL_SOURCES, collectToken, type PresentedToken } from '../../access/credentials.ts'
import type { RemainingQuota } from '../../access/quota/charge.ts'
import type { DocsUrl } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import { createUlidSource } from '../../core/ulid.ts'
import { gunzipBytes, INFLATE_RATIO_MAX, type Unpacked } from '../../platform/http/gzip.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import { contentFieldsOf, isJsonRequest, JSON_REQUIRED, splitTarget } from '../../platform/http/request-headers.ts'
import type { HttpResponse, PostHandler, PostHead, ResponseSink } from '../../platform/http/server/post.ts'
import { givenRequestId } from '../../platform/http/server/request-id.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import type { ListenerMeter } from '../metrics.ts'
import {
  heldBytesRefusal,
  inflateRatioRefusal,
  mediaTypeRefusal,
  type RefusableRequest,
  type Refusal,
  recordRefusals,
  sizeRefusal,
} from '../refusal.ts'
import { refusalResponse } from './http-response.ts'
import { encodeResponse } from './response-encoding.ts'
import type { Rpc } from './rpc.ts'

export type RpcPostsDeps = {
  readonly rpc: Rpc
  readonly meter: Pick<ListenerMeter, 'refused'>
  readonly clock: Clock
  readonly random: Random
  readonly heldBytes: HeldBytes
  readonly docsUrl?: DocsUrl | undefined
  readonly refusals?: RefusalRecorder | undefined
}

/** JSON-RPC over POST, for both HTTP readers: authentication by the head alone, then the body, gunzipped where it is compressed. */
export function createRpcPosts(
  commonHeaders: Readonly<Record<string, string>>,
  { rpc, meter, clock, random, heldBytes, docsUrl, refusals }: RpcPostsDeps,
): PostHandler {
  const nextUlid = createUlidSource(random)
  const deps = { rpc, meter, heldBytes, docsUrl, refusals }
  const onRefused = recordRefusals(refusals, 'rpc')
  return {
    headers: commonHeaders,
    validate(head) {
      const { connection, memo } = head
      const reading = (memo?.value as HeadReading | undefined) ?? readHead(head)
      if (memo !== undefined) memo.value = reading
      const nowMs = clock.nowMs()
      const requestId = reading.requestId ?? nextUlid(nowMs)
      // For every request, also where the head is in the header cache: the token may have been revoked since.
      const request = { headers: head.headers, target: head.target, requestId, connection, docsUrl, onRefused }
      const caller = rpc.authenticate(request, reading.presented, nowMs)
      if (!caller.ok) return { requestId, response: caller.response }
      if (reading.fault !== undefined)
        return { requestId, response: contentRefusalResponse(reading.fault, { requestId, docsUrl }, rpc.quota(caller)) }
      const post = new RpcPost(deps, caller, requestId, connection, reading)
      return (head.bodyBytes ?? 0) > post.bodyBytesMax ? { requestId, response: post.tooLarge() } : post
    },
  }
}

type PostDeps = Pick<RpcPostsDeps, 'rpc' | 'meter' | 'heldBytes' | 'docsUrl' | 'refusals'>

/** A request whose head is accepted: reads its body, forwards it, and encodes the response. */
class RpcPost implements ResponseSink {
  readonly requestId: string
  /** Identifies the client: the slot it sees never goes back. */
  readonly connection: object
  readonly bodyBytesMax: number
  readonly docsUrl: DocsUrl | undefined
  readonly #deps: PostDeps
  readonly #caller: Caller
  readonly #head: HeadReading
  #sink: ResponseSink | undefined

  constructor(deps: PostDeps, caller: Caller, requestId: string, connection: object, head: HeadReading) {
    this.requestId = requestId
    this.connection = connection
    this.bodyBytesMax = caller.limits.requestBytes
    this.docsUrl = deps.docsUrl
    this.#deps = deps
    this.#caller = caller
    this.#head = head
  }

  onRefused(refusal: Refusal): void {
    recordRefusals(this.#deps.refusals, 'rpc', this.#caller.subscription.id)?.(refusal, this.requestId)
  }

  #refusalResponse(refusal: Refusal): HttpResponse {
    return refusalResponse(refusal, this, { quota: this.#deps.rpc.quota(this.#caller) })
  }

  tooLarge(): HttpResponse {
    this.#deps.meter.refused('requestBytes', { subscription: this.#caller.subscription.id, code: 'too-large' })
    return this.#refusalResponse(sizeRefusal('requestBytes', this.bodyBytesMax))
  }

  /** A body that cannot be inflated, or only too far: inflating it is work, also where it is refused. */
  #refusePacked({ reason, bytes }: Extract<Unpacked, { ok: false }>): HttpResponse {
    const { rpc, meter } = this.#deps
    // As one that is not JSON.
    if (reason === 'malformed') return rpc.refuseUnreadable(this.#caller, this, bytes)
    const limit = reason === 'too-large' ? 'requestBytes' : 'inflateRatio'
    meter.refused(limit, { subscription: this.#caller.subscription.id, code: 'too-large' })
    const refusal =
      limit === 'requestBytes' ? sizeRefusal(limit, this.bodyBytesMax) : inflateRatioRefusal(INFLATE_RATIO_MAX)
    return rpc.refuseBody(this.#caller, refusal, this, bytes)
  }

  holdBody(bytes: number): HttpResponse | undefined {
    const { heldBytes, meter } = this.#deps
    const { id } = this.#caller.subscription
    if (heldBytes.acquire(id, bytes)) return undefined
    const limit = heldBytes.exceeded(id, bytes) ?? 'heldBytes'
    meter.refused(limit, { subscription: id, code: 'overloaded' })
    return this.#refusalResponse(heldBytesRefusal(limit, heldBytes.limits[limit]))
  }

  releaseBody(bytes: number): void {
    this.#deps.heldBytes.release(this.#caller.subscription.id, bytes)
  }

  onBodySent(bytes: number): void {
    this.#deps.rpc.countSent(this.#caller, bytes)
  }

  onBody(body: Buffer, sink: ResponseSink): void {
    this.#sink = sink
    if (this.#head.isGzip) this.#gunzip(body).catch((error: unknown) => this.fail(error))
    else this.#forward(body)
  }

  async #gunzip(compressed: Buffer): Promise<void> {
    // A copy: the bytes are valid only until `onBody` returns.
    const outcome = await gunzipBytes(Buffer.from(compressed), this)
    if (outcome.ok) this.#forward(outcome.body)
    else this.respond(this.#refusePacked(outcome))
  }

  #forward(body: Buffer): void {
    if (body.length > this.bodyBytesMax) this.respond(this.tooLarge())
    else this.#deps.rpc.forward(this.#caller, body, this, this)
  }

  respond(response: HttpResponse): void {
    const sink = this.#sink as ResponseSink
    const encoded = encodeResponse(response, this.#head.acceptEncoding)
    if (!(encoded instanceof Promise)) return sink.respond(encoded)
    encoded.then(
      (compressed) => sink.respond(compressed),
      (error: unknown) => sink.fail(error),
    )
  }

  fail(error: unknown): void {
    this.#sink?.fail(error)
  }
}

/** RFC 9110 section 15.5.16: a refused encoding names those that are accepted. */
function contentRefusalResponse(fault: ContentFault, request: RefusableRequest, quota: RemainingQuota): HttpResponse {
  if (fault === 'type') return refusalResponse(mediaTypeRefusal(JSON_REQUIRED), request, { quota })
  const response = refusalResponse(mediaTypeRefusal('Content-Encoding: only gzip is supported'), request, { quota })
  return { ...response, headers: { ...response.headers, 'accept-encoding': 'gzip' } }
}

/** A content type or encoding that is not supported. */
type ContentFault = 'type' | 'encoding'

/** What the head contains, independent of time and of the store. */
type HeadReading = {
  readonly presented: PresentedToken
  /** Set where the request has one. */
  readonly requestId: string | undefined
  readonly isGzip: boolean
  readonly acceptEncoding: string | undefined
  readonly fault: ContentFault | undefined
}

function readHead(head: PostHead): HeadReading {
  const { contentType, contentEncoding, acceptEncoding, origin } = contentFieldsOf(head.headers)
  const isGzip = contentEncoding === 'gzip'
  const isUnknown = !isGzip && contentEncoding !== undefined && contentEncoding !== 'identity'
  return {
    presented: collectToken(CREDENTIAL_SOURCES.rpc, head.headers, splitTarget(head.target).query),
    requestId: givenRequestId(head.headers),
    isGzip,
    acceptEncoding,
    fault: isJsonRequest({ contentType, origin }) ? (isUnknown ? 'encoding' : undefined) : 'type',
  }
}
