import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'

export type CrossOrigin = {
  /** Headers of the response to a request. */
  headersFor(request: IncomingMessage): OutgoingHttpHeaders
  /** Headers of the response to a preflight. `isPosted`: the path takes POST. */
  preflight(request: IncomingMessage, isPosted: boolean): OutgoingHttpHeaders
  /** Whether a page could have sent this POST without asking first: then its body is not read. */
  isUnasked(request: IncomingMessage): boolean
}

const EXPOSED = { 'access-control-expose-headers': 'x-request-id, retry-after' }
const ALLOWED = {
  'access-control-allow-headers': 'content-type, x-token, authorization, x-request-id',
  'access-control-max-age': '86400',
}

/**
 * Which pages may call. Nothing authenticates by cookie, and credentials are never allowed. Reads are open to any
 * origin; a POST makes the service work, so it is granted to the configured origins alone.
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
    // A page may send plain text and form types without a preflight (Fetch standard, CORS-safelisted request-header).
    isUnasked: ({ headers }) =>
      headers.origin !== undefined && !/^application\/json *(;|$)/i.test(headers['content-type'] ?? ''),
  }
}
