import type { KeySet } from '../../platform/jwt/key-set.ts'
import { isSameSecret } from '../auth/sessions.ts'
import type { Issuer } from './issuer.ts'

const ID_TOKEN_BYTES_MAX = 32 * 1024
const SUB_CHARS_MAX = 255
const CLOCK_TOLERANCE_SECONDS = 60
/** The token was made a moment ago, for the code that was just exchanged. */
const AGE_SECONDS_MAX = 600

export type VerifiedToken =
  | { readonly ok: true; readonly sub: string; readonly claims: Readonly<Record<string, unknown>> }
  | { readonly ok: false; readonly fault: string }

type Expected = {
  readonly issuer: Pick<Issuer, 'keys'>
  readonly options: { readonly issuer: string; readonly clientId: string }
  readonly nonce: string
  readonly nowMs: () => number
}

/** Verifies an ID token as OpenID Connect Core 1.0 section 3.1.3.7 asks. */
export async function verifyIdToken(token: string, expected: Expected): Promise<VerifiedToken> {
  if (Buffer.byteLength(token) > ID_TOKEN_BYTES_MAX)
    return refused(`it has more than ID_TOKEN_BYTES_MAX, ${ID_TOKEN_BYTES_MAX}, bytes`)
  const { issuer, options, nonce, nowMs } = expected
  const verify = async (keys: KeySet) =>
    keys.verify(token, {
      issuer: options.issuer,
      audience: options.clientId,
      nowMs: nowMs(),
      clockToleranceSeconds: CLOCK_TOLERANCE_SECONDS,
      ageSecondsMax: AGE_SECONDS_MAX,
      requiredClaims: ['exp'],
    })
  let outcome = await verify(await issuer.keys())
  // The issuer may have new keys.
  if (!outcome.ok && outcome.isKeyUnknown) outcome = await verify(await issuer.keys({ isNew: true }))
  if (!outcome.ok) return refused(outcome.fault)
  const { claims } = outcome
  const { sub, aud, azp } = claims
  if (typeof claims['nonce'] !== 'string' || !isSameSecret(claims['nonce'], nonce))
    return refused('its claim "nonce" is not that of this sign-in')
  // A token for several clients names the one that it was made for.
  if (azp === undefined ? Array.isArray(aud) && aud.length > 1 : azp !== options.clientId)
    return refused('its claim "azp" is missing or wrong')
  if (typeof sub !== 'string' || sub === '' || sub.length > SUB_CHARS_MAX)
    return refused(`its claim "sub" is not a text of at most SUB_CHARS_MAX, ${SUB_CHARS_MAX}, characters`)
  return { ok: true, sub, claims }
}

function refused(fault: string): VerifiedToken {
  return { ok: false, fault }
}
