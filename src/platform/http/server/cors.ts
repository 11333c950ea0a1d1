import type { IncomingMessage, OutgoingHttpHeaders } from 'node:http'

/**
 * The CORS headers of a response where only the listed origins may read it. Credentials are never allowed: nothing authenticates by cookie.
 * `exposed` are the response headers that a web page may read.
 */
export function createCorsHeaders(
  origins: readonly string[],
  exposed: string,
): (request: Pick<IncomingMessage, 'headers'>) => OutgoingHttpHeaders {
  const granted = new Set(origins)
  return ({ headers: { origin } }) => {
    if (origin === undefined || !granted.has(origin)) return { vary: 'origin' }
    return { vary: 'origin', 'access-control-allow-origin': origin, 'access-control-expose-headers': exposed }
  }
}
