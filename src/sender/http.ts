import type { IncomingMessage, ServerResponse } from 'node:http'
import { docsUrl, ERRORS } from '../contract/errors.ts'
import { versionHeaders } from '../contract/versions.ts'
import type { Clock } from '../core/clock.ts'
import { createKeyedBuckets } from '../core/keyed-buckets.ts'
import type { Random } from '../core/random.ts'
import type { PostHead } from '../platform/http/server/post.ts'
import { respondToPost } from '../platform/http/server/post-fallback.ts'
import { sendJson, sendText } from '../platform/http/server/reply.ts'
import { requestIdOf } from '../platform/http/server/request-id.ts'
import { type HttpServer, readBody, startHttpServer } from '../platform/http/server/server.ts'
import { createClientAddress } from '../platform/net/client-address.ts'
import { peerKey } from '../platform/net/connection-caps.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import type { Accept } from './accept/accept.ts'
import { type Decoded, decodeText, decodeWire } from './accept/decode.ts'
import { type Refusal, refuseLimit, retryAfterOf, type TipTerms } from './accept/refusal.ts'
import { BODY_BYTES_MAX, createRpcPosts, responseTooLarge } from './accept/rpc-post.ts'
import { isSettled, printReceipt } from './receipts/receipt.ts'
import type { Receipts } from './receipts/receipts.ts'

export type ServerOptions = {
  readonly listen: ListenerOptions
  readonly trustedProxies: readonly string[]
  readonly readsPerAddressPerSecond: number
  readonly waitersMax: number
  readonly waitersPerAddressMax: number
}

export type ServerDeps = ListenerMetrics & {
  readonly accept: Accept
  readonly receipts: Receipts
  readonly terms: TipTerms
  readonly version: string
  readonly isHealthy: () => boolean
  onDenied(refusal: Refusal): void
  onDuplicate(): void
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
}

const WAIT_SECONDS_MAX = 60
const WAITERS_RETRY_MS = 1000
/** A process that dies after sending a transaction and before recording it leaves neither a response nor a receipt. */
const NO_RECEIPT_MESSAGE =
  'no transaction with this signature was accepted here in the last 10 minutes; one without a response may have been sent nevertheless, so look for it on the chain'

const CORS = { 'access-control-allow-origin': '*', 'access-control-expose-headers': 'x-request-id, retry-after' }
const PREFLIGHT = {
  ...CORS,
  'access-control-allow-methods': 'POST, GET, OPTIONS',
  'access-control-allow-headers': 'content-type, solana-client, x-request-id',
  'access-control-max-age': '86400',
}
const RECEIPT = /^\/v1\/transactions\/([1-9A-HJ-NP-Za-km-z]{43,88})$/

type Routes = Readonly<Record<string, { readonly allow: string; run(call: HttpCall): void | Promise<void> }>>
type HttpCall = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly query: URLSearchParams
  readonly requestId: string
  readonly address: string
}

/** The public HTTP endpoint: callers need no token, since the tip pays for the transaction. */
export function startSenderServer(options: ServerOptions, deps: ServerDeps): Promise<HttpServer> {
  const { accept, receipts, terms, clock } = deps
  const addressOf = createClientAddress(options.trustedProxies)
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
      takeRead,
      addressOf: options.trustedProxies.length > 0 ? headAddressOf : createConnectionAddress(headAddressOf),
    },
  )
  const respondToRpc = ({ request, response }: HttpCall) => respondToPost(request, response, posts)

  const routes: Routes = {
    '/': { allow: 'POST', run: respondToRpc },
    '/fast': { allow: 'POST', run: respondToRpc },
    '/api/v1/transactions': { allow: 'POST', run: takeRaw },
    '/ping': { allow: 'GET', run: ({ response }) => sendText(response, 200, 'ok', CORS) },
    '/tips': {
      allow: 'GET',
      run: ({ response }) =>
        sendJson(response, 200, { min_tip_lamports: terms.minTipLamports, tip_accounts: terms.tipAccounts }, CORS),
    },
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
        const { pathname, searchParams } = targetOf(request.url ?? '/')
        const call = { request, response, query: searchParams, requestId, address: peerKey(addressOf(request)) }
        const receipt = RECEIPT.exec(pathname)
        const route =
          receipt === null ? routes[pathname] : { allow: 'GET', run: () => sendReceipt(call, receipt[1] as string) }
        // POST bodies are limited per call, by accept.ts and rpc.ts.
        const isPost = request.method === 'POST' && route?.allow === 'POST'
        const refusal = isPost ? undefined : takeRead(call.address)
        if (refusal !== undefined) return denyRead(response, refusal, requestId)
        if (request.method === 'OPTIONS') return sendText(response, 204, '', PREFLIGHT)
        if (route === undefined) return sendJson(response, 404, { error: 'not-found', request_id: requestId }, CORS)
        const method = request.method === 'HEAD' ? 'GET' : request.method
        if (method !== route.allow) {
          const allow = route.allow === 'GET' ? 'GET, HEAD, OPTIONS' : 'POST, OPTIONS'
          return sendJson(response, 405, { error: 'method-not-allowed', request_id: requestId }, { ...CORS, allow })
        }
        return route.run(call)
      },
    },
  )

  /** Takes the transaction as raw bytes or as encoded text; responds with the signature, or with nothing for `?response=none`. */
  async function takeRaw({ request, response, query, requestId, address }: HttpCall): Promise<void> {
    const kind = rawKindOf(request)
    if (kind === undefined) {
      return sendText(response, 415, 'Content-Type: application/octet-stream or text/plain is required', CORS)
    }
    const format = query.get('response') ?? 'signature'
    if (format !== 'signature' && format !== 'none') {
      const message = 'response is signature or none'
      return sendJson(response, 400, { error: 'invalid-params', message, request_id: requestId }, CORS)
    }
    const body = await readAll(request, response, requestId)
    if (body === undefined) return
    const decode = (): Decoded =>
      kind === 'bytes' ? decodeWire(body) : decodeText(body.toString('latin1').trim(), undefined)
    const outcome = await accept(decode, address)
    if (outcome.ok) {
      if (!outcome.isNew) deps.onDuplicate()
      return sendText(response, 200, format === 'none' ? '' : outcome.signature, CORS)
    }
    deps.onDenied(outcome.refusal)
    deny(response, outcome.refusal, requestId)
  }

  async function sendReceipt({ response, query, requestId, address }: HttpCall, signature: string): Promise<void> {
    const waitSeconds = query.get('wait') ?? '0'
    if (!/^\d{1,3}$/.test(waitSeconds) || Number(waitSeconds) > WAIT_SECONDS_MAX) {
      const message = `wait is an integer number of seconds up to ${WAIT_SECONDS_MAX}`
      return sendJson(response, 400, { error: 'invalid-params', message, request_id: requestId }, CORS)
    }
    const receipt = receipts.get(signature)
    if (receipt === undefined) {
      return sendJson(response, 404, { error: 'not-found', message: NO_RECEIPT_MESSAGE, request_id: requestId }, CORS)
    }
    if (Number(waitSeconds) > 0 && !isSettled(receipt)) {
      const wait = receipts.wait(receipt, Number(waitSeconds) * 1000, address)
      if ('limit' in wait)
        return denyRead(response, refuseLimit(wait.limit, options[wait.limit], WAITERS_RETRY_MS), requestId)
      response.once('close', wait.cancel)
      await wait.ended
    }
    sendJson(response, 200, printReceipt(receipt), { ...CORS, 'cache-control': 'no-store' })
  }

  function denyRead(response: ServerResponse, refusal: Refusal, requestId: string): void {
    deps.onDenied(refusal)
    deny(response, refusal, requestId)
  }
}

/** Responds with a refusal outside JSON-RPC: 429 for a rate limit, 503 when nothing can be sent, 400 when the transaction must change. */
function deny(response: ServerResponse, refusal: Refusal, requestId: string): void {
  const { code, message, data } = refusal
  const status = code === 'rate-limited' ? 429 : code === 'no-path' || code === 'not-recorded' ? 503 : 400
  const retry = status === 400 ? {} : { 'retry-after': String(retryAfterOf(refusal)) }
  const body = {
    error: code,
    code: ERRORS[code].jsonRpc,
    message,
    data,
    request_id: requestId,
    docs_url: docsUrl(code),
  }
  sendJson(response, status, body, { ...CORS, ...retry })
}

async function readAll(
  request: IncomingMessage,
  response: ServerResponse,
  requestId: string,
): Promise<Buffer | undefined> {
  const read = await readBody(request, { bodyBytesMax: BODY_BYTES_MAX })
  if (read.ok) return read.body
  if (read.reason === 'too-large') {
    const { status, body } = responseTooLarge(requestId)
    sendText(response, status, body, { 'content-type': 'application/json', ...CORS })
  }
  return undefined
}

function targetOf(url: string): URL {
  return URL.canParse(url, 'http://sender') ? new URL(url, 'http://sender') : new URL('http://sender/-')
}

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
  if (request.headers['content-encoding'] !== undefined) return undefined
  const type = (request.headers['content-type'] ?? 'application/octet-stream').toLowerCase()
  if (/^application\/octet-stream *(;|$)/.test(type)) return 'bytes'
  return /^text\/plain *(;|$)/.test(type) ? 'text' : undefined
}
