import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { Random } from '../core/random.ts'
import { sendJson, sendText } from '../host/http-reply.ts'
import { type HttpServer, readBody, startHttpServer } from '../host/http-server.ts'
import type { ListenerOptions } from '../host/listener.ts'
import type { DoorMetrics } from '../host/listener-metrics.ts'
import type { Logger } from '../host/logger.ts'
import { requestIdOf } from '../host/request-id.ts'
import { refuseSize } from './refusal.ts'
import { type Rpc, type RpcAnswer, refuse } from './rpc.ts'
import { whoami } from './whoami.ts'

export type RpcDoorDeps = DoorMetrics & {
  readonly rpc: Rpc
  readonly access: Access
  /** Where a ticket is good; told with it. */
  readonly wsUrl?: string | undefined
  /** How the nodes behind are, in the words of a node's own health page. */
  readonly health: () => 'ok' | 'behind' | 'unknown'
  readonly log: Logger
  readonly clock: Clock
  readonly random: Random
}

/** Browsers of any origin may call, as with a node; nothing authenticates by cookie, so credentials are never allowed. */
const CORS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers':
    'x-request-id, retry-after, x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, x-ratelimit-cost',
}
const PREFLIGHT = {
  ...CORS,
  'access-control-allow-methods': 'POST, GET, OPTIONS',
  'access-control-allow-headers': 'content-type, x-token, x-api-key, authorization, solana-client, x-request-id',
  'access-control-max-age': '86400',
}

/** The RPC door: JSON-RPC on `/`, the health page, and what a customer may ask about itself. */
export function startRpcDoor(options: { listen: ListenerOptions }, deps: RpcDoorDeps): Promise<HttpServer> {
  const { rpc, access, log, clock } = deps
  return startHttpServer(options, {
    log,
    clock,
    onRefused: deps.onRefused,
    onNotAfter: deps.onNotAfter,
    async onRequest(request, response) {
      const requestId = requestIdOf(request, deps)
      response.setHeader('x-request-id', requestId)
      const [path, query] = splitTarget(request.url ?? '')
      if (request.method === 'OPTIONS') return sendText(response, 204, '', PREFLIGHT)
      if (path === '/health' && isRead(request)) return sendText(response, 200, deps.health(), CORS)
      if (path !== '/' && path !== '/v1/whoami' && path !== '/v1/ws-ticket') {
        return sendJson(response, 404, { error: 'not-found', request_id: requestId }, CORS)
      }
      const isQuestion = path === '/v1/whoami'
      if (isQuestion ? !isRead(request) : request.method !== 'POST') {
        return sendJson(
          response,
          405,
          { error: 'method-not-allowed', request_id: requestId },
          { ...CORS, allow: isQuestion ? 'GET' : 'POST, OPTIONS' },
        )
      }
      const caller = rpc.authenticate({ headers: request.rawHeaders, query, requestId })
      if (!('subscription' in caller)) return send(response, caller.answer)
      if (isQuestion)
        return sendJson(response, 200, whoami(access, caller, clock.nowMs()), { ...CORS, 'cache-control': 'no-store' })
      if (path === '/v1/ws-ticket') {
        const { ticket, expiresAtMs } = access.issueTicket(caller, clock.nowMs())
        const url = deps.wsUrl === undefined ? {} : { url: `${deps.wsUrl}/?ticket=${ticket}` }
        const body = { ticket, expires_at: new Date(expiresAtMs).toISOString(), ...url }
        return sendJson(response, 200, body, { ...CORS, 'cache-control': 'no-store' })
      }
      if (!isJson(request)) return sendText(response, 415, 'Content-Type: application/json is required', CORS)
      const read = await readBody(request, { bodyBytesMax: caller.limits.requestBytes })
      if (!read.ok) {
        if (read.reason === 'too-large')
          send(response, refuse(refuseSize('requestBytes', caller.limits.requestBytes), { requestId }))
        return
      }
      const answer = await rpc.answer(caller, {
        headers: request.rawHeaders,
        query,
        body: read.body,
        requestId,
        connection: request.socket,
      })
      send(response, answer)
    },
  })
}

function send(response: ServerResponse, answer: RpcAnswer): void {
  const { rest } = answer
  if (rest === undefined) return sendText(response, answer.status, answer.body, { ...answer.headers, ...CORS })
  if (response.destroyed) return rest.abort()
  response.writeHead(answer.status, { ...answer.headers, ...CORS })
  response.write(answer.body)
  response.on('drain', () => rest.resume())
  response.on('close', () => rest.abort())
  rest.start({
    onData(chunk) {
      if (!response.write(chunk)) rest.pause()
    },
    onEnd: () => void response.end(),
    // The status is on its way already: cutting the connection is the only way left to say that this is not all.
    onFail: () => void response.destroy(),
  })
}

function splitTarget(url: string): [string, string] {
  // The host of an absolute-form address is of no interest here.
  const target = url.startsWith('/') ? url : url.replace(/^[a-z]+:\/\/[^/?]*/i, '') || '/'
  const mark = target.indexOf('?')
  return mark === -1 ? [target, ''] : [target.slice(0, mark) || '/', target.slice(mark + 1)]
}

function isRead(request: IncomingMessage): boolean {
  return request.method === 'GET' || request.method === 'HEAD'
}

function isJson(request: IncomingMessage): boolean {
  if (request.headers['content-encoding'] !== undefined) return false
  return /^application\/json *(;|$)/i.test(request.headers['content-type'] ?? '')
}
