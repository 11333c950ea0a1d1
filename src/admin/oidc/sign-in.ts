import { hash } from 'node:crypto'
import type { AdminRole } from '../../contract/admin-routes.ts'
import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'
import type { Secret } from '../../platform/config/secret-ref.ts'
import { AdminError } from '../api/errors.ts'
import { COMPARE_ISSUER, fixOfIssuerError, SIGN_IN_AGAIN } from './error-fixes.ts'
import { verifyIdToken } from './id-token.ts'
import { createIssuer, errorCodeOf, type Issuer, IssuerRefusal } from './issuer.ts'
import type { OidcOptions } from './options.ts'
import { createPendingLogins, type PendingLogin } from './pending-logins.ts'
import { type OidcPerson, personOf, roleOfGroups } from './person.ts'

const CODE_CHARS_MAX = 4096

export type SignInDeps = {
  readonly clock: Clock
  readonly random: Random
  /** Reads the secret of a reference. */
  readonly readSecret: (reference: string) => Promise<Secret>
}

/** What the issuer sends back with the browser. */
export type Callback = {
  readonly state: string | undefined
  readonly code: string | undefined
  readonly iss: string | undefined
  readonly error: string | undefined
  /** The secret of the cookie. */
  readonly browser: string | undefined
}

/** Sign-in with one configuration. */
export type SignIn = {
  readonly options: OidcOptions
  /** Where the browser goes, and the secret of its cookie. */
  begin(redirectUri: string): Promise<{ readonly url: string; readonly browser: string }>
  /** Throws unless the issuer vouches for a person with a role. */
  finish(callback: Callback): Promise<OidcPerson>
}

/** Sign-in as it is configured now. */
export type ConfiguredSignIn = {
  /** Undefined where no issuer is configured. */
  current(): SignIn | undefined
  /** Logins that have begun end with a changed configuration. */
  apply(options: OidcOptions | undefined): void
  /** The role that the present configuration gives to a person who signed in earlier. */
  roleOf(person: OidcPerson): AdminRole | undefined
}

export function createConfiguredSignIn(options: OidcOptions | undefined, deps: SignInDeps): ConfiguredSignIn {
  let present = options === undefined ? undefined : createSignIn(options, deps)
  return {
    current: () => present,
    apply(next) {
      if (JSON.stringify(next) === JSON.stringify(present?.options)) return
      present = next === undefined ? undefined : createSignIn(next, deps)
    },
    roleOf({ issuer, clientId, groups }) {
      if (present === undefined || present.options.issuer !== issuer || present.options.clientId !== clientId)
        return undefined
      return roleOfGroups(groups, present.options.roles)
    },
  }
}

/** The authorization code flow with PKCE (OpenID Connect Core 1.0 section 3.1, RFC 7636). */
function createSignIn(options: OidcOptions, deps: SignInDeps): SignIn {
  const { clientId, clientSecret, scopes } = options
  const pending = createPendingLogins(deps)
  const issuer = createIssuer(options, {
    clock: deps.clock,
    clientSecret: async () => (clientSecret === undefined ? undefined : deps.readSecret(clientSecret)),
  })

  return {
    options,

    async begin(redirectUri) {
      const { authorizationEndpoint } = await issuer.metadata()
      const { state, nonce, codeVerifier, browser } = pending.begin(redirectUri)
      const url = new URL(authorizationEndpoint)
      const query = {
        response_type: 'code',
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: scopes.join(' '),
        state,
        nonce,
        code_challenge: hash('sha256', codeVerifier, 'base64url'),
        code_challenge_method: 'S256',
      }
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
      return { url: url.href, browser }
    },

    async finish({ state, code, iss, error, browser }) {
      const login = state === undefined || browser === undefined ? undefined : pending.take(state, browser)
      if (login === undefined)
        throw new AdminError(
          'sign-in-expired',
          'this sign-in was not begun in this browser, is finished, or was begun more than 10 minutes ago',
          SIGN_IN_AGAIN,
        )
      // Another issuer may have sent the browser here (RFC 9207).
      if (iss === undefined ? (await issuer.metadata()).isIssRequired : iss !== options.issuer)
        throw refused('the response is not of the configured issuer', COMPARE_ISSUER)
      if (error !== undefined) {
        const reported = errorCodeOf(error)
        throw refused(`the issuer refused it: ${reported}`, fixOfIssuerError(reported))
      }
      if (code === undefined || code.length > CODE_CHARS_MAX)
        throw refused(`the response of the issuer has no code of at most CODE_CHARS_MAX, ${CODE_CHARS_MAX}, characters`)
      const { sub, claims } = await claimsOf(issuer, options, { code, login, nowMs: () => deps.clock.nowMs() })
      return personOf(sub, claims, options)
    },
  }
}

type Finishing = { readonly code: string; readonly login: PendingLogin; readonly nowMs: () => number }

/** The claims of the ID token, and of the userinfo endpoint where the ID token lacks one that is used. */
async function claimsOf(issuer: Issuer, options: OidcOptions, { code, login, nowMs }: Finishing) {
  const { idToken, accessToken } = await issuer.exchange({ ...login, code }).catch((error: unknown) => {
    if (!(error instanceof IssuerRefusal)) throw error
    throw refused(`the issuer did not accept the code: ${error.message}`, fixOfIssuerError(error.message))
  })
  const verified = await verifyIdToken(idToken, { issuer, options, nonce: login.nonce, nowMs })
  if (!verified.ok) throw refused(`the ID token is refused: ${verified.fault}`, COMPARE_ISSUER)
  const { sub, claims } = verified
  const isComplete = [options.groupsClaim, options.nameClaim].every((name) => Object.hasOwn(claims, name))
  if (isComplete || accessToken === undefined) return { sub, claims }
  const more = await issuer.userinfo(accessToken)
  if (more === undefined) return { sub, claims }
  // Section 5.3.2: without this check the claims may be those of another person.
  if (more['sub'] !== sub) throw refused('the userinfo response is about another person than the ID token')
  return { sub, claims: { ...more, ...claims } }
}

function refused(message: string, fix: string = SIGN_IN_AGAIN): AdminError {
  return new AdminError('sign-in-refused', message, fix)
}
