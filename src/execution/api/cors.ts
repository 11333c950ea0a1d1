import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { BLOCKS_HELD_HEADER } from '../../contract/execution-routes.ts'
import { createCorsHeaders } from '../../platform/http/server/cors.ts'

export type Cors = {
  /** Headers of the response to a request. */
  headersFor(request: IncomingMessage): OutgoingHttpHeaders
  /** Headers of the response to a preflight. `isPosted`: the path takes POST. */
  preflight(request: IncomingMessage, isPosted: boolean): OutgoingHttpHeaders
}

const EXPOSED = `x-request-id, retry-after, x-data-source, ${BLOCKS_HELD_HEADER}`
const ALLOWED = {
  'access-control-allow-headers': 'content-type, x-token, authorization, x-request-id',
  'access-control-max-age': '86400',
}

/**
 * CORS rules. Nothing authenticates by cookie, and credentials are never allowed. Reads are open to any origin; a POST causes work, so
 * it is allowed for the configured origins only.
 */
export function createCors(origins: readonly string[]): Cors {
  const grant = createCorsHeaders(origins, EXPOSED)
  const forAll = { 'access-control-allow-origin': '*', 'access-control-expose-headers': EXPOSED }

  return {
    headersFor: (request) => (request.method === 'POST' ? grant(request) : forAll),
    preflight(request, isPosted) {
      if (!isPosted) return { ...forAll, ...ALLOWED, 'access-control-allow-methods': 'GET, HEAD, OPTIONS' }
      const headers = grant(request)
      if (headers['access-control-allow-origin'] === undefined) return headers
      return { ...headers, ...ALLOWED, 'access-control-allow-methods': 'POST, OPTIONS' }
    },
  }
}
