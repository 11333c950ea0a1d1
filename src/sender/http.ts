import type { IncomingMessage, ServerResponse } from 'node:http'
import { type DocsUrl, ERRORS, type ErrorContext } from '../contract/errors.ts'
import { versionHeaders } from '../contract/versions.ts'
import { createKeyedBuckets } from '../core/keyed-buckets.ts'
import { HeldBody, type HeldBytes } from '../platform/http/held-bytes.ts'
import {
  contentFieldsOf,
  ENCODING_REFUSED,
  isEncoded,
  isJsonRequest,
  splitTarget,
} from '../platform/http/request-headers.ts'
import { createPathRules, type Paths, sendPathRefusal } from '../platform/http/server/path-rules.ts'
import type { HttpResponse, PostHead } from '../platform/http/server/post.ts'
import { respondToPost } from '../platform/http/server/post-fallback.ts'
import { readBody } from '../platform/http/server/read-body.ts'
import { sendJson, sendText } from '../platform/http/server/reply.ts'
import { requestIdOf } from '../platform/http/server/request-id.ts'
import { type HttpServer, startHttpServer } from '../platform/http/server/server.ts'
import { createClientAddress } from '../platform/net/client-address.ts'
import { peerKey } from '../platform/net/connection-caps.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { TransactionLimits } from '../solana/transaction/types.ts'
import type { Accept } from './accept/accept.ts'
import { type Decoded, decodeText, decodeWire } from './accept/decode.ts'
import { type Refusal, refuseLimit, retryAfterOf, type TipTerms } from './accept/refusal.ts'
import type { RefusalReporter } from './accept/refusal-reporter.ts'
import { bodyBytesMaxOf, createRpcPosts, responseNoRoom, responseTooLarge, UNCOMPRESSED } from './accept/rpc-post.ts'
import { isSettled, printReceipt, signatureKeyOf } from './receipts/receipt.ts'
import type { Receipts } from './receipts/receipts.ts'

export type ServerOptions = TransactionLimits & {
  readonly listen: ListenerOptions
  readonly trustedProxies: readonly string[]
  readonly readsPerAddressPerSecond: number
  readonly waitersMax: number
  readonly waitersPerAddressMax: number
  readonly receiptsMax: number
}

export type ServerDeps = BaseDeps &
  ListenerMetrics & {
    readonly accept: Accept
    readonly receipts: Receipts
    readonly terms: TipTerms
    readonly version: string
    readonly isHealthy: () => boolean
    readonly refusals: RefusalReporter
    /** Bytes of incomplete bodies, by address. */
    readonly heldBytes: HeldBytes
    onDuplicate(): void
    readonly docsUrl?: DocsUrl | undefined
  }

const WAIT_SECONDS_MAX = 60
const WAITERS_RETRY_MS = 1000
/** A process that dies after sending a transaction and before recording it leaves neither a response nor a receipt. */
const noReceiptMessage = (receiptsMax: number) =>
  `there is no receipt for this signature: receipts are kept for 10 minutes, the last ${receiptsMax} (receiptsMax) of them; a transaction without a response may have been sent nevertheless, so look for it on the chain`

const CORS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'x-request-id, retry-after' }
/** For responses that change: without it a cache may keep them, a 404 too. */
const NO_STORE = { ...CORS, 'cache-control': 'no-store' }
const PREFLIGHT = {
  ...CORS,
  'access-control-allow-methods': 'POST, GET, OPTIONS',
  'access-control-allow-headers': 'content-type, solana-client, x-request-id, authorization, *',
  'access-control-max-age': '86400',
}
const PATHS = {
  '/': ['POST'],
  '/fast': ['POST'],
  '/api/v1/transactions': ['POST'],
  '/api/v1/bundles': ['POST'],
  '/api/v1/getTipAccounts': ['POST'],
  '/api/v1/getBundleStatuses': ['POST'],
  '/api/v1/getInflightBundleStatuses': ['POST'],
  '/v1/transactions/{signature}': ['GET'],
  '/tips': ['GET'],
  '/ping': ['GET'],
} as const satisfies Paths
const refusePath = createPathRules(PATHS, { isPreflighted: true })
const RECEIPTS = '/v1/transactions/'
const SIGNATURE = /^[1-9A-HJ-NP-Za-km-z]{43,88}$/
const NO_SIGNATURE = 'the path ends with the base58 signature of a transaction, 43 to 88 characters'

type Routes = Readonly<
  Record<Exclude<keyof typeof PATHS, '/v1/transactions/{signature}'>, (call: HttpCall) => void | Promise<void>>
>
type HttpCall = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  readonly requestId: string
  readonly address: string
}

/** The public HTTP endpoint: callers need no token, since the tip pays for the transaction. */
export function startSenderServer(options: ServerOptions, deps: ServerDeps): Promise<HttpServer> {
  const { accept, receipts, terms, clock, docsUrl } = deps
  const addressOf = createClientAddress(options.trustedProxies)
  const bodyBytesMax = bodyBytesMaxOf(options)
  const perSecond = options.readsPerAddressPerSecond
  const reads = createKeyedBuckets({ perSecond, burst: perSecond * 2 }, () => clock.monotonicMs())
  const takeRead = (address: string) => {
    const taken = reads.take(address)
    return taken.ok ? undefined : refuseLimit('readsPerAddressPerSecond', perSecond, taken.retryAfterMs)
  }
  const headAddressOf = (head: PostHead) => peerKey(addressOf(requestOf(head)))
  const posts = createRpcPosts(
    { 'x-content-type-options': 'nosniff', ...CORS },
    {
      ...deps,
      transactionLimits: options,
      takeRead,
      addressOf: options.trustedProxies.length > 0 ? headAddressOf : createConnectionAddress(headAddressOf),
    },
  )
  const respondToRpc = ({ request, response }: HttpCall) => respondToPost(request, response, posts)

  const routes: Routes = {
    '/': respondToRpc,
    '/fast': respondToRpc,
    '/api/v1/transactions': handleTransaction,
    // Libraries for block engines call these; their bundle methods are refused by name.
    '/api/v1/bundles': respondToRpc,
    '/api/v1/getTipAccounts': respondToRpc,
    '/api/v1/getBundleStatuses': respondToRpc,
    '/api/v1/getInflightBundleStatuses': respondToRpc,
    '/ping': ({ response }) => sendText(response, 200, 'ok', NO_STORE),
    '/tips': ({ response }) =>
      sendJson(response, 200, { min_tip_lamports: terms.minTipLamports, tip_accounts: terms.tipAccounts }, CORS),
  }

  return startHttpServer(
    { listen: options.listen },
    {
      log: deps.log,
      clock,
      onRefused: deps.onRefused,
      onNotAfter: deps.onNotAfter,
      fastPathPosts: posts,
      headersFor: versionHeaders,
      async onRequest(request, response) {
        const requestId = requestIdOf(request, deps)
        response.setHeader('x-request-id', requestId)
        const { path, query } = splitTarget(request.url)
        const address = peerKey(addressOf(request))
        const call = { request, response, query: new URLSearchParams(query), requestId, address }
        const pathRefusal = refusePath(request.method, path)
        // POST bodies are limited per call, by accept.ts and rpc.ts.
        const isPost = request.method === 'POST' && pathRefusal === undefined
        const refusal = isPost ? undefined : takeRead(call.address)
        if (refusal !== undefined) return refuse(response, refusal, requestId)
        if (request.method === 'OPTIONS') return sendText(response, 204, '', PREFLIGHT)
        if (pathRefusal !== undefined) return sendPathRefusal(response, pathRefusal, CORS)
        if (path.startsWith(RECEIPTS)) return sendReceipt(call, path.slice(RECEIPTS.length))
        return routes[path as keyof Routes](call)
      },
    },
  )

  /** By content type: a JSON-RPC body, or the transaction alone. */
  function handleTransaction(call: HttpCall): Promise<void> {
    const bundleOnly = call.query.get('bundleOnly')
    if (bundleOnly !== null && bundleOnly !== 'false') return refuseBundleOnly(call)
    const { contentType, origin } = contentFieldsOf(call.request.rawHeaders)
    return contentType !== undefined && isJsonRequest({ contentType, origin }) ? respondToRpc(call) : handleRaw(call)
  }

  /** For requests refused before `accept` counts them: charges the read limit of the address; above it, refuses by that limit and returns false. */
  function takeReadOrRefuse({ response, requestId, address }: HttpCall): boolean {
    const refusal = takeRead(address)
    if (refusal !== undefined) refuse(response, refusal, requestId)
    return refusal === undefined
  }

  /** A transaction that may only be in a bundle would be sent on its own here, which its sender does not want. Not reported: no transaction was read. */
  async function refuseBundleOnly(call: HttpCall): Promise<void> {
    if (!takeReadOrRefuse(call)) return
    const { response, requestId } = call
    const message = 'bundleOnly is not offered: transactions are sent on their own, and nothing was sent'
    writeRefusal(
      response,
      { code: 'invalid-params', message, data: { parameter: 'bundleOnly' } },
      { requestId, docsUrl },
    )
  }

  /** Accepts the transaction as raw bytes or as encoded text; responds with the signature, or with nothing for `?response=none`. */
  async function handleRaw(call: HttpCall): Promise<void> {
    const { request, response, query, requestId, address } = call
    const kind = rawKindOf(request)
    if (kind === undefined) return takeReadOrRefuse(call) ? refuseMediaType(request, response, requestId) : undefined
    const format = query.get('response') ?? 'signature'
    if (format !== 'signature' && format !== 'none') {
      if (!takeReadOrRefuse(call)) return
      const message = 'response is signature or none'
      return sendJson(response, 400, { error: 'invalid-params', message, request_id: requestId }, CORS)
    }
    using held = new HeldBody(deps.heldBytes, address)
    const read = await readBody(request, { bodyBytesMax, mayHold: held.take })
    // A body that could not be read is not reported as a refusal, since no transaction was read.
    if (!read.ok && read.reason === 'no-room')
      return sendRefused(response, responseNoRoom(deps.heldBytes, { requestId, docsUrl }))
    if (!read.ok) return read.reason === 'too-large' ? refuseTooLarge(call) : undefined
    const { body } = read
    const decode = (): Decoded =>
      kind === 'bytes' ? decodeWire(body, options) : decodeText(body.toString('latin1').trim(), undefined, options)
    const outcome = await accept(decode, address)
    if (outcome.ok) {
      if (!outcome.isNew) deps.onDuplicate()
      return sendText(response, 200, format === 'none' ? '' : outcome.signature, CORS)
    }
    refuse(response, outcome.refusal, requestId)
  }

  function refuseTooLarge(call: HttpCall): void {
    if (!takeReadOrRefuse(call)) return
    sendRefused(call.response, responseTooLarge(bodyBytesMax, { requestId: call.requestId, docsUrl }))
  }

  async function sendReceipt({ response, query, requestId, address }: HttpCall, signature: string): Promise<void> {
    if (!SIGNATURE.test(signature)) {
      return sendJson(response, 404, { error: 'not-found', message: NO_SIGNATURE, request_id: requestId }, NO_STORE)
    }
    const waitSeconds = query.get('wait') ?? '0'
    if (!/^\d{1,3}$/.test(waitSeconds) || Number(waitSeconds) > WAIT_SECONDS_MAX) {
      const message = `wait is an integer number of seconds up to ${WAIT_SECONDS_MAX}`
      return sendJson(response, 400, { error: 'invalid-params', message, request_id: requestId }, NO_STORE)
    }
    const receipt = receipts.get(signatureKeyOf(signature))
    if (receipt === undefined) {
      const message = noReceiptMessage(options.receiptsMax)
      return sendJson(response, 404, { error: 'not-found', message, request_id: requestId }, NO_STORE)
    }
    if (Number(waitSeconds) > 0 && !isSettled(receipt)) {
      const wait = receipts.wait(receipt, Number(waitSeconds) * 1000, address)
      if ('limit' in wait)
        return refuse(response, refuseLimit(wait.limit, options[wait.limit], WAITERS_RETRY_MS), requestId)
      response.once('close', wait.cancel)
      await wait.ended
    }
    sendJson(response, 200, printReceipt(receipt), NO_STORE)
  }

  function refuse(response: ServerResponse, refusal: Refusal, requestId: string): void {
    deps.refusals.report(refusal, requestId)
    writeRefusal(response, refusal, { requestId, docsUrl })
  }
}

function sendRefused(response: ServerResponse, { status, headers, body }: HttpResponse): void {
  sendText(response, status, body, { ...headers, ...CORS })
}

/** Responds with a refusal outside JSON-RPC: 429 for a rate limit, 503 when nothing can be sent, 400 when the transaction must change. */
function writeRefusal(response: ServerResponse, refusal: Refusal, { requestId, docsUrl }: ErrorContext): void {
  const { code, message, data } = refusal
  const status = code === 'rate-limited' ? 429 : code === 'no-path' || code === 'not-recorded' ? 503 : 400
  const retry = status === 400 ? {} : { 'retry-after': String(retryAfterOf(refusal)) }
  const body = {
    error: code,
    code: ERRORS[code].jsonRpc,
    message,
    data,
    request_id: requestId,
    docs_url: docsUrl?.(code),
  }
  sendJson(response, status, body, { ...CORS, ...retry })
}

function refuseMediaType(request: IncomingMessage, response: ServerResponse, requestId: string): void {
  const isEncoding = isEncoded(request)
  const message = isEncoding ? ENCODING_REFUSED : RAW_TYPES
  const body = { error: 'unsupported-media-type', message, request_id: requestId }
  const headers = isEncoding ? { ...CORS, ...UNCOMPRESSED } : CORS
  sendJson(response, ERRORS['unsupported-media-type'].http, body, headers)
}

const RAW_TYPES =
  'Content-Type: application/octet-stream (the bytes), text/plain (base64 or base58) or application/json (a JSON-RPC call) is required'

/** The head as an `IncomingMessage` would present it; the headers are searched only for a trusted proxy. */
function requestOf({ headers, connection }: PostHead): Parameters<ReturnType<typeof createClientAddress>>[0] {
  return {
    socket: connection,
    get headersDistinct() {
      const forwarded = headers.filter((_, at) => at % 2 === 1 && headers[at - 1]?.toLowerCase() === 'x-forwarded-for')
      return { 'x-forwarded-for': forwarded }
    },
  }
}

/** Without a trusted proxy the address belongs to the connection, so it is determined once for all its requests. */
function createConnectionAddress(addressOf: (head: PostHead) => string): (head: PostHead) => string {
  const known = new WeakMap<PostHead['connection'], string>()
  return (head) => {
    const address = known.get(head.connection) ?? addressOf(head)
    known.set(head.connection, address)
    return address
  }
}

function rawKindOf(request: IncomingMessage): 'bytes' | 'text' | undefined {
  if (isEncoded(request)) return undefined
  const type = (request.headers['content-type'] ?? 'application/octet-stream').toLowerCase()
  if (/^application\/octet-stream *(;|$)/.test(type)) return 'bytes'
  return /^text\/plain *(;|$)/.test(type) ? 'text' : undefined
}
