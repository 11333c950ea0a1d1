import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'
import { isJsonContentType } from '../../platform/http/request-headers.ts'

export type CrossOrigin = {
  /** Headers of the response to a request. */
  headersFor(request: IncomingMessage): OutgoingHttpHeaders
  /** Headers of the response to a preflight. `isPosted`: the path takes POST. */
  preflight(request: IncomingMessage, isPosted: boolean): OutgoingHttpHeaders
  /** Whether a web page could have sent this POST without a preflight; its body is then not read. */
  lacksPreflight(request: IncomingMessage): boolean
}

const EXPOSED = { 'access-control-expose-headers': 'x-request-id, retry-after' }
const ALLOWED = {
  'access-control-allow-headers': 'content-type, x-token, authorization, x-request-id',
  'access-control-max-age': '86400',
}

/**
 * CORS rules. Nothing authenticates by cookie, and credentials are never allowed. Reads are open to any origin; a POST causes work, so
 * it is allowed for the configured origins only.
 */
export function createCrossOrigin(origins: readonly string[]): CrossOrigin {
  const granted = new Set(origins)

  function grant(request: IncomingMessage): OutgoingHttpHeaders {
    const { origin } = request.headers
    const isGranted = origin !== undefined && granted.has(origin)
    return { vary: 'origin', ...(isGranted ? { 'access-control-allow-origin': origin, ...EXPOSED } : {}) }
  }

  const forAll = { 'access-control-allow-origin': '*', ...EXPOSED }

  return {
    headersFor: (request) => (request.method === 'POST' ? grant(request) : forAll),
    preflight(request, isPosted) {
      if (!isPosted) return { ...forAll, ...ALLOWED, 'access-control-allow-methods': 'GET, HEAD, OPTIONS' }
      const headers = grant(request)
      if (headers['access-control-allow-origin'] === undefined) return headers
      return { ...headers, ...ALLOWED, 'access-control-allow-methods': 'POST, OPTIONS' }
    },
    // A page may send text and form content types without a preflight (Fetch standard, CORS-safelisted request-header).
    lacksPreflight: ({ headers }) => headers.origin !== undefined && !isJsonContentType(headers['content-type']),
  }
}
