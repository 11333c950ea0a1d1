import type { IncomingMessage } from 'node:http'
import type { Caller, Refused } from '../../access/authorize.ts'
import { CREDENTIAL_SOURCES, collectToken } from '../../access/credentials.ts'
import type { Access } from '../../access/service.ts'
import { ERRORS, type TokenRefusal } from '../../contract/errors.ts'
import type { Clock } from '../../core/clock.ts'

export type Policy = {
  /** Undefined: everybody may come in, as the service belongs to no subscription. */
  readonly access:
    | Pick<Access, 'authenticate' | 'authenticateTicket' | 'issueTicket' | 'renew' | 'onChange'>
    | undefined
  readonly clock: Clock
}

/** Whose request this is, where the operator asks for tokens. A ticket is accepted where no header can be set. */
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
  const isAlone = more.length === 0 && 'refused' in presented && presented.refused === 'missing'
  if (isAlone) return access.authenticateTicket(ticket, 'execution', nowMs)
  return access.authenticate({ refused: 'conflicting' }, 'execution', nowMs)
}

/** Status and headers are the same for every cause; the reason tells whoever holds the token. */
export const UNAUTHORIZED_HEADERS = { 'www-authenticate': 'Bearer' } as const

export function unauthorizedBody(reason: TokenRefusal): Record<string, unknown> {
  const { jsonRpc: code, fix } = ERRORS.unauthorized
  return { jsonrpc: '2.0', error: { code, message: 'missing or invalid token', data: { reason, fix } }, id: null }
}
