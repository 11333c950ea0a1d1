import type { IncomingMessage } from 'node:http'
import type { Caller, Refused } from '../../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import type { Access } from '../../access/service.ts'
import { ERRORS, type TokenRefusal } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'

export type Policy = {
  /** Undefined where no token is required. */
  readonly access:
    | Pick<Access, 'authenticate' | 'authenticateTicket' | 'issueTicket' | 'renew' | 'onChange'>
    | undefined
  readonly clock: Clock
}

/** Authenticates a request where tokens are required. A ticket in the URL is accepted for clients that cannot set headers. */
export function authenticate(
  { access, clock }: Policy,
  request: IncomingMessage,
  tickets: readonly string[] = [],
): Caller | Refused | undefined {
  if (access === undefined) return undefined
  const nowMs = clock.nowMs()
  const presented = collectToken(CREDENTIAL_SOURCES.execution, request.rawHeaders)
  const [ticket, ...more] = tickets
  if (ticket === undefined) return access.authenticate(presented, 'execution', nowMs)
  const isOnlyCredential = more.length === 0 && 'refused' in presented && presented.refused === 'missing'
  if (isOnlyCredential) return access.authenticateTicket(ticket, 'execution', nowMs)
  return access.authenticate({ refused: 'conflicting' }, 'execution', nowMs)
}

/** Status and headers are the same for every reason; the body has the reason. */
export const UNAUTHORIZED_HEADERS = { 'www-authenticate': 'Bearer' } as const

export function unauthorizedBody(reason: TokenRefusal): Record<string, unknown> {
  const { jsonRpc: code, fix } = ERRORS.unauthorized
  return { jsonrpc: '2.0', error: { code, message: 'missing or invalid token', data: { reason, fix } }, id: null }
}
