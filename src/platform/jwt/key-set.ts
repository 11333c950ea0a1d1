import type { JSONWebKeySet } from 'jose'

/** Signatures with a key pair, as OpenID Connect issuers make them. A shared secret (HS…) and `none` are not among them. */
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA']
const KEYS_MAX = 100

export type JwtChecks = {
  readonly issuer: string
  readonly audience: string
  readonly nowMs: number
  readonly clockToleranceSeconds: number
  /** Since `iat`. */
  readonly ageSecondsMax: number
  readonly requiredClaims: readonly string[]
}

export type JwtOutcome =
  | { readonly ok: true; readonly claims: Readonly<Record<string, unknown>> }
  /** `fault` completes "the token is refused: …" and has no values of the token. */
  | { readonly ok: false; readonly isKeyUnknown: boolean; readonly fault: string }

/** The public keys of an issuer. */
export type KeySet = { verify(token: string, checks: JwtChecks): Promise<JwtOutcome> }

/** Reads a JSON Web Key Set (RFC 7517). Throws if it is not one. The library is loaded with the first set. */
export async function readKeySet(value: unknown): Promise<KeySet> {
  const { createLocalJWKSet, jwtVerify, errors } = await import('jose')
  const keys = (value as Partial<JSONWebKeySet> | null)?.keys
  if (!Array.isArray(keys)) throw new Error('it is not a JSON Web Key Set')
  if (keys.length > KEYS_MAX) throw new Error(`it has more than KEYS_MAX, ${KEYS_MAX}, keys`)
  const find = createLocalJWKSet(value as JSONWebKeySet)
  return {
    async verify(token, checks) {
      try {
        const { payload } = await jwtVerify(token, find, {
          algorithms: ALGORITHMS,
          issuer: checks.issuer,
          audience: checks.audience,
          currentDate: new Date(checks.nowMs),
          clockTolerance: checks.clockToleranceSeconds,
          maxTokenAge: checks.ageSecondsMax,
          requiredClaims: [...checks.requiredClaims],
        })
        return { ok: true, claims: payload }
      } catch (error) {
        return { ok: false, isKeyUnknown: error instanceof errors.JWKSNoMatchingKey, fault: faultOf(error) }
      }
    },
  }
}

/** In our words: messages of the library may quote the token. */
function faultOf(error: unknown): string {
  const { code, claim } = error as { code?: unknown; claim?: unknown }
  if (code === 'ERR_JOSE_ALG_NOT_ALLOWED') return `its signature is not one of ${ALGORITHMS.join(', ')}`
  if (code === 'ERR_JWKS_NO_MATCHING_KEY') return 'the issuer has no key with its "kid" and algorithm'
  if (code === 'ERR_JWKS_MULTIPLE_MATCHING_KEYS') return 'it does not name which of the keys of the issuer signed it'
  if (code === 'ERR_JWS_SIGNATURE_VERIFICATION_FAILED') return 'its signature is wrong'
  if (code === 'ERR_JWT_EXPIRED') return 'it has expired'
  if (code === 'ERR_JWT_CLAIM_VALIDATION_FAILED') return `its claim "${String(claim)}" is missing or wrong`
  return 'it is not a signed token that can be verified'
}
