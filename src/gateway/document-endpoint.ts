import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from 'node:http'
import type { Clock } from '../core/clock.ts'
import type { SharedTable } from '../core/shared-table.ts'
import { type PathRefusal, type PathRules, sendPathRefusal } from '../platform/http/server/path-rules.ts'
import { type StaticFiles, sendStaticFile } from '../platform/http/server/static-file.ts'
import { createAddressRateLimit } from './address-rate-limit.ts'
import type { ListenerMeter } from './metrics.ts'

export type DocumentEndpointDeps = {
  readonly files: StaticFiles
  /** The rules of the listener, for what is no file. */
  readonly refusePath: PathRules
  readonly clock: Clock
  readonly meter: Pick<ListenerMeter, 'refused'>
  /** The buckets of all threads; without it they are of this thread alone. */
  readonly table?: SharedTable | undefined
}

export type DocumentRequest = {
  readonly request: IncomingMessage
  readonly response: ServerResponse
  readonly path: string
  /** Other files than the documents, under the same rate limit. */
  readonly files?: StaticFiles | undefined
  readonly requestId: string
  /** The client's, behind any trusted proxies. */
  readonly remoteAddress: string
  /** Every response has them. */
  readonly headers: OutgoingHttpHeaders
}

/** `/docs`: the documents, without a token, so every address has a rate limit. */
export function createDocumentEndpoint({
  files,
  refusePath,
  clock,
  meter,
  table,
}: DocumentEndpointDeps): (document: DocumentRequest) => void {
  const rateLimit = createAddressRateLimit(DOCUMENTS_LIMIT, { clock, meter, table })
  return ({ request, response, path, requestId, remoteAddress, headers, files: others }) => {
    if (!rateLimit.admit({ response, remoteAddress, requestId, headers })) return
    const file = (others ?? files)(path)
    const refusal = refusePath(request.method, path, file && ['GET'])
    if (refusal !== undefined || file === undefined) return sendPathRefusal(response, refusal ?? NO_FILE, headers)
    sendStaticFile(request, response, file, headers)
    if (request.method === 'GET' && response.statusCode === 200)
      rateLimit.charge(remoteAddress, file.body.length / BYTES_PER_DOCUMENT)
  }
}

export function isDocumentPath(path: string): boolean {
  return path === '/docs' || path.startsWith('/docs/')
}

/** The refusal of a path that the listener lists and that has no file. */
const NO_FILE: PathRefusal = {
  status: 404,
  body: { error: 'not-found', message: 'this path has no document' },
  headers: {},
}

/** The burst lets a program read every document once. */
const DOCUMENTS_LIMIT = { limit: 'documentsPerSecond', noun: 'documents', perSecond: 20, burst: 400 }
/** Each such part of a document costs as much as one more request. */
const BYTES_PER_DOCUMENT = 64 * 1024
