import type { OutgoingHttpHeaders, ServerResponse } from 'node:http'
import { sendJson } from './reply.ts'

/** The paths of a listener and the methods that each takes. `{name}` stands for one segment; GET includes HEAD. */
export type Paths = Readonly<Record<string, readonly PathMethod[]>>
type PathMethod = 'GET' | 'POST'

export type PathRefusal = {
  readonly status: 404 | 405 | 426
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: OutgoingHttpHeaders
}

/** Checks path and method of a request in the same way on every listener. `methods` are those of a path that is not in the list. */
export type PathRules = (
  method: string | undefined,
  path: string,
  methods?: readonly PathMethod[],
) => PathRefusal | undefined

/**
 * The one rule for what does not exist. Paths match exactly: a slash at the end makes another path, because proxies in front match exactly too.
 * 404 lists the paths that exist, 405 the methods of the path. The requested path is not echoed, since it may contain a token.
 * `isPreflighted`: OPTIONS is served, on every path. `upgradePaths` take a WebSocket handshake; where they are nothing else, a read of them is 426.
 */
export function createPathRules(
  paths: Paths,
  { isPreflighted, upgradePaths = [] }: { readonly isPreflighted: boolean; readonly upgradePaths?: readonly string[] },
): PathRules {
  const listed = [...new Set([...Object.keys(paths), ...upgradePaths])]
  const exact = new Map(Object.entries(paths).filter(([path]) => !path.includes('{')))
  const patterns = Object.entries(paths)
    .filter(([path]) => path.includes('{'))
    .map(([path, methods]) => ({ segments: path.split('/'), methods }))

  function methodsOf(path: string): readonly PathMethod[] | undefined {
    const known = exact.get(path)
    if (known !== undefined || patterns.length === 0) return known
    const given = path.split('/')
    return patterns.find(({ segments }) => isMatch(segments, given))?.methods
  }

  return (method, path, given) => {
    const isUpgrade = upgradePaths.includes(path)
    const methods = methodsOf(path) ?? given ?? (isUpgrade ? HANDSHAKE : undefined)
    if (methods === HANDSHAKE && (method === 'GET' || method === 'HEAD')) return UPGRADE_REQUIRED
    if (methods === undefined) {
      const bare = path.endsWith('/') ? path.slice(0, -1) : undefined
      const isSlash = bare !== undefined && methodsOf(bare) !== undefined
      const hint = TOKEN_LIKE.test(path) ? 'no token is read from a path: send it in a header, such as x-token; ' : ''
      const message = isSlash
        ? 'this path does not exist; without the slash at its end it does'
        : `this path does not exist; ${hint}paths lists those that do`
      return { status: 404, body: { error: 'not-found', message, paths: listed }, headers: {} }
    }
    const allowed = [
      ...methods.flatMap((each) => (each === 'GET' ? ['GET', 'HEAD'] : [each])),
      ...(isPreflighted ? ['OPTIONS'] : []),
    ]
    if (method !== undefined && allowed.includes(method)) return undefined
    const message = methods === HANDSHAKE ? UPGRADE_REQUIRED.body['fix'] : `this path takes ${methods.join(' and ')}`
    return {
      status: 405,
      body: { error: 'method-not-allowed', message, methods },
      headers: { allow: allowed.join(', ') },
    }
  }
}

/** Other providers take their tokens there. */
const TOKEN_LIKE = /^\/[\w-]{24,}\/?$/

/** The methods of a path that is only a WebSocket. */
const HANDSHAKE: readonly PathMethod[] = ['GET']

/** RFC 9110 section 15.5.22: the response to a request without an upgrade names the protocol. */
const UPGRADE_REQUIRED: PathRefusal = {
  status: 426,
  body: {
    error: 'upgrade-required',
    fix: 'This path is a WebSocket. Open it with a WebSocket client: the ws:// or wss:// form of this address.',
  },
  headers: { upgrade: 'websocket', connection: 'Upgrade' },
}

/** Sends the refusal, with the headers that the listener sends with every response. */
export function sendPathRefusal(
  response: ServerResponse,
  { status, body, headers }: PathRefusal,
  listenerHeaders: OutgoingHttpHeaders = {},
): void {
  const requestId = response.getHeader('x-request-id')
  const id = requestId === undefined ? {} : { request_id: requestId }
  sendJson(response, status, { ...body, ...id }, { ...listenerHeaders, ...headers })
}

function isMatch(pattern: readonly string[], given: readonly string[]): boolean {
  if (pattern.length !== given.length) return false
  return pattern.every((segment, at) => (segment.startsWith('{') ? given[at] !== '' : given[at] === segment))
}
