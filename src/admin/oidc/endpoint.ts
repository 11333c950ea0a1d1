import type { IncomingMessage } from 'node:http'
import { OIDC_CALLBACK_PATH, OIDC_LOGIN_PATH } from '../../contract/admin-routes.ts'
import { HOUR_MS } from '../../core/human-units.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import { peerKey } from '../../platform/net/connection-caps.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { AdminError } from '../api/errors.ts'
import { cookieOf, tooMany } from '../auth/authenticate.ts'
import { type Sessions, sessionCookie } from '../auth/sessions.ts'
import { PENDING_MS } from './pending-logins.ts'
import type { ConfiguredSignIn, SignIn } from './sign-in.ts'

const LOGIN_COOKIE = 'sluice_oidc'
const LOGINS = { perSecond: 1 / 3, burst: 20 }
/** Not what can be caused without the issuer. */
const LOGGED: ReadonlySet<string> = new Set(['sign-in-refused', 'no-role', 'issuer-unavailable'])

export type OidcEndpointDeps = BaseDeps & {
  readonly oidc: ConfiguredSignIn
  readonly sessions: Sessions
  readonly isSecure: boolean
  /** Where browsers reach this listener, if it is configured; else the Host of the request counts. */
  readonly publicUrl?: string | undefined
}

type Redirect = { readonly location: string; readonly cookies: string[] }

export type OidcEndpoint = {
  /** Whether this path is for sign-in: never where no issuer is configured. */
  has(path: string): boolean
  respond(request: IncomingMessage, target: { path: string; query: string; address: string }): Promise<Redirect>
}

/** `GET /v1/oidc/login` sends the browser to the issuer, which sends it back to `GET /v1/oidc/callback`. */
export function createOidcEndpoint(deps: OidcEndpointDeps): OidcEndpoint {
  const { oidc, sessions, clock, isSecure } = deps
  const logins = createKeyedBuckets(LOGINS, () => clock.monotonicMs())
  /** Lax: the browser comes back from the page of another site. */
  const loginCookie = (value: string, seconds: number): string =>
    `${LOGIN_COOKIE}=${value}; Path=${OIDC_CALLBACK_PATH}; HttpOnly; SameSite=Lax; Max-Age=${seconds}${isSecure ? '; Secure' : ''}`

  function redirectUri(request: IncomingMessage): string {
    const base = deps.publicUrl ?? `${isSecure ? 'https' : 'http'}://${request.headers.host ?? ''}`
    return `${base.replace(/\/$/, '')}${OIDC_CALLBACK_PATH}`
  }

  async function login(signIn: SignIn, request: IncomingMessage, query: string, address: string): Promise<Redirect> {
    if (query !== '')
      throw new AdminError('invalid-value', 'this path takes no query', 'Open it without a question mark.')
    const taken = logins.take(peerKey(address))
    if (!taken.ok) throw tooMany('loginsPerAddress', '20 per minute of one address', taken.retryAfterMs)
    const { url, browser } = await signIn.begin(redirectUri(request))
    return { location: url, cookies: [loginCookie(browser, PENDING_MS / 1000)] }
  }

  async function callback(signIn: SignIn, request: IncomingMessage, query: string, address: string): Promise<Redirect> {
    const given = new URLSearchParams(query)
    // A name that is given twice counts as missing.
    const single = (name: string): string | undefined => {
      const [value, ...more] = given.getAll(name)
      return more.length === 0 ? value : undefined
    }
    const person = await signIn.finish({
      state: single('state'),
      code: single('code'),
      iss: given.has('iss') ? (single('iss') ?? '') : undefined,
      error: single('error'),
      browser: cookieOf(request, LOGIN_COOKIE),
    })
    const { id } = sessions.open({ kind: 'oidc', person }, signIn.options.sessionHours * HOUR_MS)
    const { id: subject, name, role } = person
    deps.log.info({ subject, name, role, address }, 'signed in with OpenID Connect')
    return { location: '/', cookies: [sessionCookie(id, { isSecure }), loginCookie('', 0)] }
  }

  return {
    has: (path) => oidc.current() !== undefined && (path === OIDC_LOGIN_PATH || path === OIDC_CALLBACK_PATH),
    async respond(request, { path, query, address }) {
      const signIn = oidc.current()
      if (signIn === undefined) throw new AdminError('not-found', 'this path does not exist', 'Configure admin.oidc.')
      if (request.method !== 'GET')
        throw new AdminError('method-not-allowed', 'this path takes GET', 'Open it in a browser.', { allow: 'GET' })
      try {
        return await (path === OIDC_LOGIN_PATH ? login : callback)(signIn, request, query, address)
      } catch (error) {
        if (error instanceof AdminError && LOGGED.has(error.code))
          deps.log.warn({ code: error.code, reason: error.message, address }, 'sign-in with OpenID Connect failed')
        throw error
      }
    },
  }
}
