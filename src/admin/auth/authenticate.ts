import type { IncomingMessage } from 'node:http'
import type { Admin } from '../../access/store/model.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { hashToken, isAdminTokenText } from '../../access/token.ts'
import { CSRF_HEADER } from '../../contract/admin-routes.ts'
import type { Clock } from '../../core/clock.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import { peerKey } from '../../platform/net/connection-caps.ts'
import { AdminError } from '../api/errors.ts'
import type { ConfiguredSignIn } from '../oidc/sign-in.ts'
import { isSameSecret, SESSION_COOKIE, type Session, type SessionOwner, type Sessions } from './sessions.ts'

const BEARER = /^Bearer ([\x21-\x7e]{1,200})$/i
/** Failed tokens of one address. A valid token always passes, so that a stranger cannot lock the operator out. */
const FAILED_TOKENS = { perSecond: 1 / 6, burst: 10 }

export type Identity = {
  /** An administrator of the store, or a person that an OpenID Connect issuer vouches for. */
  readonly admin: Pick<Admin, 'id' | 'name' | 'role'>
  /** The session of a browser; undefined for a token in the header. */
  readonly session: { readonly id: string; readonly session: Session } | undefined
}

export type Authenticator = {
  /** Throws 401, or 429 after many failures of one address. Every cause gives the same response. */
  authenticate(request: IncomingMessage, address: string): Promise<Identity>
  /** The administrator of a token. */
  byToken(token: string, address: string): Promise<Admin>
}

/** The record is read from the store each time, and the role of a group from the configuration: a revoked token or role is refused at once. */
export function createAuthenticator(deps: {
  readonly store: Pick<AccessStore, 'find' | 'get'>
  readonly sessions: Sessions
  readonly clock: Clock
  readonly oidc?: Pick<ConfiguredSignIn, 'roleOf'> | undefined
}): Authenticator {
  const { store, sessions, clock, oidc } = deps
  const failures = createKeyedBuckets(FAILED_TOKENS, () => clock.monotonicMs())

  function refuse(address: string): never {
    const taken = failures.take(peerKey(address))
    if (taken.ok)
      throw new AdminError(
        'unauthorized',
        'the request has no valid token of an administrator',
        'Send Authorization: Bearer sla_…, from sluice admin add NAME --role ROLE.',
        { 'www-authenticate': 'Bearer' },
      )
    throw tooMany('failedTokensPerAddress', '10 failed tokens per minute of one address', taken.retryAfterMs)
  }

  async function byToken(token: string, address: string): Promise<Admin> {
    const [admin] = isAdminTokenText(token) ? await store.find('admins', { sha256: hashToken(token) }) : []
    return admin !== undefined && isValid(admin) ? admin : refuse(address)
  }

  function isValid({ state, expiresAt }: Admin): boolean {
    return state === 'active' && (expiresAt === null || expiresAt > clock.nowMs())
  }

  /** Undefined where the token, the group or the role that opened the session is no longer valid. */
  async function ownerOf(owner: SessionOwner): Promise<Identity['admin'] | undefined> {
    if (owner.kind === 'oidc') return oidc?.roleOf(owner.person) === owner.person.role ? owner.person : undefined
    const admin = await store.get('admins', owner.adminId)
    return admin !== undefined && isValid(admin) && admin.sha256 === owner.tokenSha256 ? admin : undefined
  }

  return {
    byToken,
    async authenticate(request, address) {
      const given = request.headersDistinct['authorization'] ?? []
      if (given.length > 0) {
        const token = given.length === 1 ? BEARER.exec(given[0] as string)?.[1] : undefined
        return { admin: await byToken(token ?? '', address), session: undefined }
      }
      const id = cookieOf(request, SESSION_COOKIE)
      const session = id === undefined ? undefined : sessions.use(id)
      if (id === undefined || session === undefined) return refuse(address)
      const admin = await ownerOf(session.owner)
      if (admin !== undefined) return { admin, session: { id, session } }
      sessions.end(id)
      return refuse(address)
    },
  }
}

/** Throws unless a change by a browser session comes from a page of this origin that knows the session's CSRF token. */
export function refuseForgery(request: IncomingMessage, session: Session): void {
  refuseOtherOrigin(request)
  const given = request.headers[CSRF_HEADER]
  if (typeof given === 'string' && isSameSecret(given, session.csrfToken)) return
  throw new AdminError(
    'csrf',
    `the header ${CSRF_HEADER} is missing or wrong`,
    `Send the csrf_token of GET /v1/session in ${CSRF_HEADER}.`,
  )
}

/** Browsers send these headers; other clients need not. */
export function refuseOtherOrigin(request: IncomingMessage): void {
  const { origin, host } = request.headers
  const site = request.headers['sec-fetch-site']
  const isOwn = origin === undefined || (URL.canParse(origin) && new URL(origin).host === host)
  if (isOwn && (site === undefined || site === 'same-origin' || site === 'none')) return
  throw new AdminError(
    'csrf',
    'the request comes from a page of another origin',
    'Open the console at the address of this listener. Programs send the header Authorization: Bearer, and no cookie and no Origin.',
  )
}

export function tooMany(limit: string, what: string, retryAfterMs: number): AdminError {
  const seconds = Math.max(1, Math.ceil(Math.min(retryAfterMs, 3_600_000) / 1000))
  return new AdminError('too-many-requests', `limit reached: ${limit}, ${what}`, `Retry in ${seconds} s.`, {
    'retry-after': String(seconds),
  })
}

/** A cookie that is sent twice counts as missing. */
export function cookieOf(request: IncomingMessage, wanted: string): string | undefined {
  const pairs = (request.headers.cookie ?? '').split(';').map((pair) => pair.trim().split('='))
  const values = pairs.filter(([name]) => name === wanted).map(([, value]) => value)
  return values.length === 1 ? values[0] : undefined
}
