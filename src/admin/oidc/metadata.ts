import { isLoopbackName } from '../../contract/public-url.ts'
import { unavailable } from './issuer-http.ts'

const WRITE_ISSUER =
  'Sign in with a token. The operator writes the issuer into admin.oidc.issuer exactly as its discovery document has it, with or without a slash at the end, then runs sluice reload.'
const MEND_DISCOVERY =
  'Sign in with a token. At the issuer, its administrator corrects the discovery document, which is at /.well-known/openid-configuration.'

/** What is used of a discovery document. */
export type Metadata = {
  readonly authorizationEndpoint: string
  readonly tokenEndpoint: string
  readonly jwksUri: string
  readonly userinfoEndpoint: string | undefined
  /** How the secret of the client is sent. */
  readonly isSecretInBody: boolean
  /** Responses name their issuer (RFC 9207). */
  readonly isIssRequired: boolean
}

/** Checks what is used of the discovery document (OpenID Connect Discovery 1.0 section 3). */
export function readMetadata(value: Readonly<Record<string, unknown>>, issuer: string): Metadata {
  if (value['issuer'] !== issuer)
    throw unavailable('the discovery document names another issuer than admin.oidc.issuer', WRITE_ISSUER)
  const isHttpAllowed = issuer.startsWith('http://')
  const endpoint = (name: string): string | undefined => {
    const text = value[name]
    if (text === undefined) return undefined
    if (typeof text === 'string' && isEndpoint(text, isHttpAllowed)) return text
    throw unavailable(`${name} of the discovery document is not an https URL`, MEND_DISCOVERY)
  }
  const required = (name: string): string => {
    const text = endpoint(name)
    if (text === undefined) throw unavailable(`the discovery document has no ${name}`, MEND_DISCOVERY)
    return text
  }
  const methods = value['token_endpoint_auth_methods_supported']
  return {
    authorizationEndpoint: required('authorization_endpoint'),
    tokenEndpoint: required('token_endpoint'),
    jwksUri: required('jwks_uri'),
    userinfoEndpoint: endpoint('userinfo_endpoint'),
    isSecretInBody:
      Array.isArray(methods) && !methods.includes('client_secret_basic') && methods.includes('client_secret_post'),
    isIssRequired: value['authorization_response_iss_parameter_supported'] === true,
  }
}

/** An issuer on loopback has its endpoints on loopback. */
function isEndpoint(text: string, isHttpAllowed: boolean): boolean {
  if (!URL.canParse(text)) return false
  const { protocol, hostname, username, password } = new URL(text)
  if (username !== '' || password !== '') return false
  return protocol === 'https:' || (isHttpAllowed && protocol === 'http:' && isLoopbackName(hostname))
}
