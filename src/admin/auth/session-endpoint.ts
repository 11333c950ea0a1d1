import type { IncomingMessage } from 'node:http'
import { ROLE_PERMISSIONS } from '../../contract/admin-routes.ts'
import { sessionBody } from '../../contract/schemas/admin.ts'
import { AdminError } from '../api/errors.ts'
import { parseWith, readJson } from '../api/read-request.ts'
import { type Authenticator, type Identity, refuseForgery, refuseOtherOrigin } from './authenticate.ts'
import { type Session, type Sessions, sessionCookie } from './sessions.ts'

export const SESSION_PATH = '/v1/session'

type Reply = { readonly status: number; readonly body: object; readonly headers: Record<string, string> }

export type SessionEndpointDeps = {
  readonly sessions: Sessions
  readonly authenticator: Authenticator
  /** Browsers reach this listener over TLS. */
  readonly isSecure: boolean
}

/** `POST` signs in with a token, `GET` shows the session and its CSRF token, `DELETE` signs out. */
export async function respondToSession(
  request: IncomingMessage,
  address: string,
  { sessions, authenticator, isSecure }: SessionEndpointDeps,
): Promise<Reply> {
  if (request.method === 'POST') {
    refuseOtherOrigin(request)
    const { token } = parseWith(sessionBody, (await readJson(request)).value)
    const admin = await authenticator.byToken(token, address)
    const { id, session } = sessions.open({ kind: 'token', adminId: admin.id, tokenSha256: admin.sha256 })
    return { status: 201, body: describe(admin, session), headers: { 'set-cookie': sessionCookie(id, { isSecure }) } }
  }
  const isRead = request.method === 'GET' || request.method === 'HEAD'
  if (!isRead && request.method !== 'DELETE')
    throw new AdminError('method-not-allowed', 'this path takes POST, GET, DELETE', 'Use one of these methods.', {
      allow: 'POST, GET, HEAD, DELETE',
    })
  const { admin, session } = await authenticator.authenticate(request, address)
  if (session === undefined)
    throw new AdminError('not-found', 'the request has no session', 'Sign in with POST /v1/session.')
  if (isRead) return { status: 200, body: describe(admin, session.session), headers: {} }
  refuseForgery(request, session.session)
  sessions.end(session.id)
  const headers = { 'set-cookie': sessionCookie('', { isSecure, isEnded: true }) }
  return { status: 200, body: { signed_out: true }, headers }
}

function describe({ id, name, role }: Identity['admin'], { csrfToken }: Session): object {
  return { id, name, role, permissions: ROLE_PERMISSIONS[role], csrf_token: csrfToken }
}
