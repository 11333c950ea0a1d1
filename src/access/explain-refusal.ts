import { ERRORS, type TokenRefusal } from '../contract/errors.ts'
import type { Refused } from './callers.ts'
import { bearerOf, CREDENTIAL_SOURCES, queryFields, type TokenInterface } from './credentials.ts'
import { REFUSAL_FIXES, type RefusalCause } from './refusal-fixes.ts'

/** What a refusal shows: the cause, where credentials were found (names only, never a value), and the way out. */
export type ExplainedRefusal = {
  readonly reason: TokenRefusal
  readonly found?: readonly string[]
  readonly fix: string
}

export type RefusedHead = {
  /** Names and values alternating, as received. */
  readonly headers: readonly string[]
  /** The part of the URL after `?`. */
  readonly query?: string | undefined
}

/**
 * Explains a refusal to the client. The head is read in the same way for every reason. Without a head (a token that ends during a connection)
 * nothing was found.
 */
export function explainRefusal(at: TokenInterface, refused: Refused, head?: RefusedHead): ExplainedRefusal {
  const found = head === undefined ? [] : findCredentials(head)
  const { cause, sources } = causeOf(at, refused, found)
  const text = REFUSAL_FIXES[cause][at] ?? ERRORS.unauthorized.fix
  const fix = text.replace('{sources}', sources.join(' and '))
  if (head === undefined) return { reason: refused.reason, fix }
  return { reason: refused.reason, found: found.slice(0, FOUND_MAX).map(({ name }) => name), fix }
}

/** Credentials that a refusal lists. */
const FOUND_MAX = 8

type CredentialName = 'x-token' | 'authorization' | 'x-api-key' | 'query api-key' | 'query api_key' | 'ticket'
/** `value` is undefined for an Authorization header without the Bearer scheme. */
type Found = { readonly name: CredentialName; readonly value: string | undefined }
type Cause = { readonly cause: RefusalCause; readonly sources: readonly string[] }

function causeOf(at: TokenInterface, { reason, isTicket }: Refused, found: readonly Found[]): Cause {
  const only = (cause: RefusalCause): Cause => ({ cause, sources: [] })
  if (isTicket === true && (reason === 'expired' || reason === 'malformed' || reason === 'unknown'))
    return only(`ticket-${reason}`)
  switch (reason) {
    case 'conflicting':
      return conflictOf(at, found)
    case 'missing':
      return only(misplacedOf(at, found) ?? 'missing')
    case 'malformed':
      if (at === 'indexer') return only(misplacedOf(at, found) ?? 'malformed')
      return only(found.some(({ name, value }) => value === '' && isRead(at, name)) ? 'empty' : 'malformed')
    default:
      return only(reason)
  }
}

/** A credential where this interface reads none. */
function misplacedOf(at: TokenInterface, found: readonly Found[]): RefusalCause | undefined {
  const has = (name: CredentialName) => found.some((each) => each.name === name)
  const authorization = found.find(({ name }) => name === 'authorization')
  if (at === 'indexer') {
    if (authorization?.value !== undefined) return 'bearer-header'
    // The login is missing or malformed.
    if (has('x-token')) return undefined
  } else if (authorization !== undefined) return 'not-bearer'
  if (has('query api-key') || has('query api_key')) return 'query-key'
  if (has('x-api-key')) return 'api-key-header'
  return has('ticket') ? 'ticket-not-read' : undefined
}

function conflictOf(at: TokenInterface, found: readonly Found[]): Cause {
  const read = found.filter(({ name }) => isRead(at, name))
  const repeated = read.find(({ name }, index) => read.findIndex((each) => each.name === name) !== index)
  if (repeated !== undefined) return { cause: 'repeated', sources: [repeated.name] }
  if (read.some(({ name }) => name === 'ticket')) return { cause: 'ticket-and-token', sources: [] }
  const [first, ...others] = read.filter(({ value }) => value !== undefined)
  const other = others.find(({ value }) => value !== first?.value)
  if (first === undefined || other === undefined) return { cause: 'two-logins', sources: [] }
  return { cause: 'conflicting', sources: [first.name, other.name] }
}

function isRead(at: TokenInterface, name: CredentialName): boolean {
  const { bearer, apiKeyHeader, query } = CREDENTIAL_SOURCES[at]
  switch (name) {
    case 'x-token':
      return true
    case 'authorization':
      return bearer
    case 'x-api-key':
      return apiKeyHeader
    case 'query api-key':
    case 'query api_key':
      return query
    case 'ticket':
      return at === 'ws' || at === 'wsWithQuery' || at === 'executionWs'
  }
}

/** Every credential of a request in every place that some interface reads; the values do not leave this file. */
function findCredentials({ headers, query = '' }: RefusedHead): Found[] {
  const found: Found[] = []
  for (let at = 0; at + 1 < headers.length; at += 2) {
    const name = (headers[at] as string).toLowerCase()
    const value = headers[at + 1] as string
    if (name === 'x-token' || name === 'x-api-key') found.push({ name, value })
    else if (name === 'authorization') found.push({ name, value: bearerOf(value) })
  }
  if (query === '') return found
  for (const [name, value] of queryFields(query)) {
    if (name === 'api-key' || name === 'api_key') found.push({ name: `query ${name}`, value })
    else if (name === 'ticket') found.push({ name, value })
  }
  return found
}
