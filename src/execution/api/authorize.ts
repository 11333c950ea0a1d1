import type { IncomingMessage } from 'node:http'
import { type Access, authenticateHandshake } from '../../access/call-access.ts'
import type { Caller, Refused } from '../../access/callers.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import { explainRefusal } from '../../access/explain-refusal.ts'
import { type DocsUrl, ERRORS } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'
import { splitTarget } from '../../platform/http/request-headers.ts'

export type Policy = {
  /** Undefined where no token is required. */
  readonly access:
    | Pick<Access, 'authenticate' | 'authenticateTicket' | 'issueTicket' | 'renew' | 'onChange'>
    | undefined
  readonly clock: Clock
  /** Pages of errors. */
  readonly docsUrl?: DocsUrl | undefined
}

/** Authenticates a request where tokens are required. A ticket in the URL is accepted for clients that cannot set headers. */
export function authenticate(
  { access, clock }: Policy,
  request: IncomingMessage,
  tickets: readonly string[] = [],
): Caller | Refused | undefined {
  if (access === undefined) return undefined
  const presented = collectToken(CREDENTIAL_SOURCES.execution, request.rawHeaders)
  return authenticateHandshake(access, { presented, tickets }, 'execution', clock.nowMs())
}

/** Status and headers are the same for every reason; the body has the reason. */
export const UNAUTHORIZED_HEADERS = { 'www-authenticate': 'Bearer' } as const

export function unauthorizedBody(
  at: 'execution' | 'executionWs',
  refused: Refused,
  { rawHeaders, url }: Pick<IncomingMessage, 'rawHeaders' | 'url'>,
  docsUrl: DocsUrl | undefined,
): Record<string, unknown> {
  const explained = explainRefusal(at, refused, { headers: rawHeaders, query: splitTarget(url).query })
  const { jsonRpc: code } = ERRORS.unauthorized
  const data = { ...explained, docs_url: docsUrl?.('unauthorized') }
  return { jsonrpc: '2.0', error: { code, message: 'missing or invalid token', data }, id: null }
}
