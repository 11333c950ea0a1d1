import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.ts'
import { createKeyedBuckets } from '../core/keyed-buckets.ts'
import { sendJson } from '../platform/http/server/reply.ts'
import { type StaticFiles, sendStaticFile } from '../platform/http/server/static-file.ts'
import { peerKey } from '../platform/net/connection-caps.ts'
import type { ListenerMeter } from './metrics.ts'

export type DocumentEndpointDeps = {
  readonly files: StaticFiles
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'refused'>
}

export type DocumentRequest = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  readonly requestId: string
  /** The client's, behind any trusted proxies. */
  readonly remoteAddress: string
  /** Of every response. */
  readonly headers: OutgoingHttpHeaders
}

/** `/docs`: the documents, without a token, so every address has a budget. */
export function createDocumentEndpoint({
  files,
  clock,
  meter,
}: DocumentEndpointDeps): (document: DocumentRequest) => void {
  const budget = createKeyedBuckets({ perSecond: DOCUMENTS_PER_SECOND, burst: BURST }, () => clock.monotonicMs())
  return ({ request, response, path, requestId, remoteAddress, headers }) => {
    const owner = peerKey(remoteAddress)
    const taken = budget.take(owner)
    if (!taken.ok) {
      meter.refused('documentsPerSecond')
      const message = `limit reached: ${DOCUMENTS_PER_SECOND} documents per second of one address`
      const data = { limit: 'documentsPerSecond', size: DOCUMENTS_PER_SECOND, request_id: requestId }
      const retry = { 'retry-after': String(Math.max(1, Math.ceil(taken.retryAfterMs / 1000))) }
      return sendJson(response, 429, { error: 'rate-limited', message, ...data }, { ...headers, ...retry })
    }
    if (request.method !== 'GET' && request.method !== 'HEAD') {
      const body = { error: 'method-not-allowed', request_id: requestId }
      return sendJson(response, 405, body, { ...headers, allow: 'GET, HEAD, OPTIONS' })
    }
    const file = files(path)
    if (file === undefined) return sendJson(response, 404, { error: 'not-found', request_id: requestId }, headers)
    sendStaticFile(request, response, file, headers)
    if (request.method === 'GET' && response.statusCode === 200)
      budget.charge(owner, file.body.length / BYTES_PER_DOCUMENT)
  }
}

export function isDocumentPath(path: string): boolean {
  return path === '/docs' || path.startsWith('/docs/')
}

/** Of one address. The burst lets a program read every document once. */
const DOCUMENTS_PER_SECOND = 20
const BURST = 400
/** Each such part of a document costs as much as one more request. */
const BYTES_PER_DOCUMENT = 64 * 1024
