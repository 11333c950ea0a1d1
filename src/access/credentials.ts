/**
 * Extracts the one credential of a request from its raw header list (name, value, name, value, as in `rawHeaders`). Joined or deduplicated views
 * of headers hide a second value, so they are not used here. Only the credential is returned, no query string and no other header.
 */

export type PresentedToken =
  | { readonly token: string }
  /** Refused before any token is checked. */
  | { readonly refused: 'missing' | 'conflicting' }

export type PresentedLogin =
  | { readonly username: string; readonly password: string }
  | { readonly refused: 'missing' | 'conflicting' | 'malformed' }

/** The credential sources that an interface reads besides `x-token`. A source that is not read neither authenticates nor conflicts. */
export type CredentialSources = { readonly bearer: boolean; readonly apiKeyHeader: boolean; readonly query: boolean }

const HEADERS_ONLY: CredentialSources = { bearer: true, apiKeyHeader: false, query: false }

export const CREDENTIAL_SOURCES = {
  rpc: { bearer: true, apiKeyHeader: true, query: true },
  ws: HEADERS_ONLY,
  /** For operators who accept the token in the query string of a WebSocket URL. */
  wsWithQuery: { ...HEADERS_ONLY, query: true },
  grpc: HEADERS_ONLY,
  execution: HEADERS_ONLY,
  executionWs: HEADERS_ONLY,
  /** `Authorization` carries the Basic credentials there. */
  indexer: { ...HEADERS_ONLY, bearer: false },
} as const satisfies Record<string, CredentialSources>

/** Where a token can be sent. */
export type TokenInterface = keyof typeof CREDENTIAL_SOURCES

/** A longer value is treated as empty: no token is that long, so later checks need not process it. */
export const CREDENTIAL_LENGTH_MAX = 8192
/** A longer query is read only up to here; the HTTP server refuses such request heads earlier. */
const QUERY_LENGTH_MAX = 16_384

const MISSING: PresentedToken = { refused: 'missing' }
const CONFLICTING: PresentedToken = { refused: 'conflicting' }

/**
 * Collects all credential sources. None: missing. The same source twice, equal or not: conflicting. Different sources: accepted when their
 * values are equal, otherwise conflicting. `query` is the part of the URL after `?`, used only where the interface reads it.
 */
export function collectToken(
  credentialSources: CredentialSources,
  headers: readonly string[],
  query = '',
): PresentedToken {
  let xToken: string | undefined
  let authorization: string | undefined
  let apiKey: string | undefined
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = headers[at] as string
    // Compares lengths first, which rules out most headers.
    if (name.length === 7 && isNamed(name, 'x-token')) {
      if (xToken !== undefined) return CONFLICTING
      xToken = headers[at + 1] as string
    } else if (name.length === 13 && credentialSources.bearer && isNamed(name, 'authorization')) {
      if (authorization !== undefined) return CONFLICTING
      authorization = headers[at + 1] as string
    } else if (name.length === 9 && credentialSources.apiKeyHeader && isNamed(name, 'x-api-key')) {
      if (apiKey !== undefined) return CONFLICTING
      apiKey = headers[at + 1] as string
    }
  }
  const bearer = authorization === undefined ? undefined : bearerOf(authorization)
  let token = xToken
  if (bearer !== undefined) {
    if (token !== undefined && token !== bearer) return CONFLICTING
    token = bearer
  }
  if (apiKey !== undefined) {
    if (token !== undefined && token !== apiKey) return CONFLICTING
    token = apiKey
  }
  if (credentialSources.query && query !== '') return withQuery(token, query)
  return present(token)
}

function isNamed(name: string, lower: string): boolean {
  return name === lower || name.toLowerCase() === lower
}

function withQuery(fromHeaders: string | undefined, query: string): PresentedToken {
  const seen = new Map<string, string>()
  for (const [name, value] of queryFields(query)) {
    if (name !== 'api-key' && name !== 'api_key') continue
    if (seen.has(name)) return CONFLICTING
    seen.set(name, value)
  }
  let token = fromHeaders
  for (const value of seen.values()) {
    if (token !== undefined && token !== value) return CONFLICTING
    token = value
  }
  return present(token)
}

/** Names and values of a query, decoded. */
export function queryFields(query: string): [name: string, value: string][] {
  return query
    .slice(0, QUERY_LENGTH_MAX)
    .split('&')
    .map((part) => {
      const split = part.indexOf('=')
      return split === -1 ? [decode(part), ''] : [decode(part.slice(0, split)), decode(part.slice(split + 1))]
    })
}

function present(token: string | undefined): PresentedToken {
  if (token === undefined) return MISSING
  return { token: token.length > CREDENTIAL_LENGTH_MAX ? '' : token }
}

/** The credential of a Bearer header, whose scheme is matched without case (RFC 9110 section 11.1); undefined for another scheme. */
export function bearerOf(authorization: string): string | undefined {
  if (!authorization.startsWith('Bearer') && authorization.slice(0, 6).toLowerCase() !== 'bearer') return undefined
  if (authorization.length === 6) return ''
  return authorization[6] === ' ' ? authorization.slice(7).trim() : undefined
}

/** Percent-decoding only: a plus stays a plus. Text that cannot be decoded is returned unchanged and is then not a valid token. */
function decode(text: string): string {
  if (!text.includes('%')) return text
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/**
 * Database user and password of the indexer: `Authorization: Basic`, or `X-ClickHouse-User` with `X-ClickHouse-Key`, which the official client
 * sends in some settings. Mixing the two, or either twice, is a conflict.
 */
export function collectLogin(headers: readonly string[]): PresentedLogin {
  const found = { authorization: undefined, 'x-clickhouse-user': undefined, 'x-clickhouse-key': undefined } as Record<
    string,
    string | undefined
  >
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = (headers[at] as string).toLowerCase()
    if (!Object.hasOwn(found, name)) continue
    if (found[name] !== undefined) return { refused: 'conflicting' }
    found[name] = headers[at + 1] as string
  }
  const { authorization, 'x-clickhouse-user': user, 'x-clickhouse-key': key } = found
  if (authorization !== undefined && (user !== undefined || key !== undefined)) return { refused: 'conflicting' }
  if (authorization !== undefined) return basicOf(authorization)
  if (user === undefined || key === undefined) return { refused: 'missing' }
  return user.length + key.length > CREDENTIAL_LENGTH_MAX ? { refused: 'malformed' } : { username: user, password: key }
}

const BASIC = /^basic +([A-Za-z0-9+/]+={0,2})$/i

function basicOf(authorization: string): PresentedLogin {
  if (authorization.length > CREDENTIAL_LENGTH_MAX) return { refused: 'malformed' }
  const encoded = BASIC.exec(authorization)?.[1]
  if (encoded === undefined) return { refused: 'malformed' }
  const text = Buffer.from(encoded, 'base64').toString('utf8')
  const split = text.indexOf(':')
  return split === -1 ? { refused: 'malformed' } : { username: text.slice(0, split), password: text.slice(split + 1) }
}

/** Token and login of a request of the indexer. */
export type IndexerCredentials = { readonly token: PresentedToken; readonly login: PresentedLogin }

/**
 * Reads a password of the form `TOKEN:PASSWORD`, split at the first colon, for tools that cannot set headers. A token in `x-token` beside it must
 * be the same: with another one the password stays as it is and is refused like any wrong password.
 */
export function splitTokenInPassword({ token, login }: IndexerCredentials): IndexerCredentials {
  if (!('password' in login)) return { token, login }
  const split = login.password.indexOf(':')
  if (split === -1) return { token, login }
  const inPassword = login.password.slice(0, split)
  const isMissing = 'refused' in token && token.refused === 'missing'
  if (!isMissing && !('token' in token && token.token === inPassword)) return { token, login }
  return { token: { token: inPassword }, login: { ...login, password: login.password.slice(split + 1) } }
}
