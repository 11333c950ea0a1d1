export const SIGN_IN_AGAIN = 'Open the console and sign in again.'

/** What an ID token or a response that is not as configured needs. */
export const COMPARE_ISSUER = `${SIGN_IN_AGAIN} If it fails again, the operator compares admin.oidc.issuer and admin.oidc.clientId with the registration at the issuer, and the clock of this machine.`

const COMPARE_CLIENT =
  'The operator compares admin.oidc.clientId and admin.oidc.clientSecret with the registration at the issuer, then runs sluice reload.'
const ALLOW_FLOW =
  'At the issuer, the operator allows this client the authorization code flow with PKCE (S256) and the redirect URI that docs/admin-api.md names.'
const LATER = 'Try again later, or sign in with a token.'

/** By the error codes of RFC 6749 sections 4.1.2.1 and 5.2. */
const FIXES: Readonly<Record<string, string>> = {
  access_denied: 'Sign in again and agree, or ask the administrator of the issuer for access to this client.',
  invalid_client: COMPARE_CLIENT,
  unauthorized_client: ALLOW_FLOW,
  unsupported_response_type: ALLOW_FLOW,
  unsupported_grant_type: ALLOW_FLOW,
  invalid_request: ALLOW_FLOW,
  invalid_scope: 'The operator removes what the issuer does not know from admin.oidc.scopes, then runs sluice reload.',
  invalid_grant: `${SIGN_IN_AGAIN} If it fails again: ${ALLOW_FLOW}`,
  server_error: LATER,
  temporarily_unavailable: LATER,
}

/** What to do about an error code of the issuer. */
export function fixOfIssuerError(code: string): string {
  return Object.hasOwn(FIXES, code) ? (FIXES[code] as string) : `${SIGN_IN_AGAIN} The log of the issuer has the cause.`
}
