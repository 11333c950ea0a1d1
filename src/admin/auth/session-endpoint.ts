import type { IncomingMessage } from 'node:http'
import type { Admin } from '../../access/store/model.ts'
import { ROLE_PERMISSIONS } from '../../contract/admin-routes.ts'
import { sessionBody } from '../../contract/schemas/admin.ts'
import { AdminError } from '../api/errors.ts'
import { parseWith, readJson } from '../api/read-request.ts'
import { type Authenticator, refuseForgery, refuseOtherOrigin, SESSION_COOKIE } from './authenticate.ts'
import type { Session, Sessions } from './sessions.ts'

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
  const cookie = (value: string, more = ''): Record<string, string> => ({
    'set-cookie': `${SESSION_COOKIE}=${value}; Path=/; HttpOnly; SameSite=Strict${isSecure ? '; Secure' : ''}${more}`,
  })
  if (request.method === 'POST') {
    refuseOtherOrigin(request)
    const { token } = parseWith(sessionBody, (await readJson(request)).value)
    const admin = await authenticator.byToken(token, address)
    const { id, session } = sessions.open(admin)
    return { status: 201, body: describe(admin, session), headers: cookie(id) }
  }
  if (request.method !== 'GET' && request.method !== 'DELETE')
    throw new AdminError('method-not-allowed', 'this path takes POST, GET, DELETE', 'Use one of these methods.', {
      allow: 'POST, GET, DELETE',
    })
  const { admin, session } = await authenticator.authenticate(request, address)
  if (session === undefined)
    throw new AdminError('not-found', 'the request has no session', 'Sign in with POST /v1/session.')
  if (request.method === 'GET') return { status: 200, body: describe(admin, session.session), headers: {} }
  refuseForgery(request, session.session)
  sessions.end(session.id)
  return { status: 200, body: { signed_out: true }, headers: cookie('', '; Max-Age=0') }
}

function describe({ id, name, role }: Admin, { csrfToken }: Session): object {
  return { id, name, role, permissions: ROLE_PERMISSIONS[role], csrf_token: csrfToken }
}
