import type { Clock } from '../../core/clock.ts'
import { messageOf } from '../../core/error.ts'
import type { Secret } from '../../platform/config/secret-ref.ts'
import { type KeySet, readKeySet } from '../../platform/jwt/key-set.ts'
import { createCachedDocument } from './cached-document.ts'
import { callIssuer, type IssuerReply, unavailable } from './issuer-http.ts'
import { type Metadata, readMetadata } from './metadata.ts'

const DISCOVERY_PATH = '/.well-known/openid-configuration'
const DOCUMENT_BYTES_MAX = 256 * 1024
const TOKENS_BYTES_MAX = 128 * 1024
const USERINFO_BYTES_MAX = 64 * 1024
const DISCOVERY = { ageMsMax: 3_600_000, gapMs: 1000 }
/** An unknown key loads the keys again at most so often. */
const KEYS = { ageMsMax: 900_000, gapMs: 30_000 }

export type CodeExchange = {
  readonly code: string
  readonly codeVerifier: string
  readonly redirectUri: string
}

export type Tokens = { readonly idToken: string; readonly accessToken: string | undefined }

/** A failure that the issuer reports in the form of OAuth 2.0 (RFC 6749 section 5.2). */
export class IssuerRefusal extends Error {
  override readonly name = 'IssuerRefusal'
}

export type Issuer = {
  metadata(): Promise<Metadata>
  /** `isNew`: at least as new as the bounded rate allows. */
  keys(options?: { readonly isNew: boolean }): Promise<KeySet>
  exchange(exchange: CodeExchange): Promise<Tokens>
  /** The claims of the userinfo endpoint; undefined where the issuer has none. */
  userinfo(accessToken: string): Promise<Readonly<Record<string, unknown>> | undefined>
}

/** The requests of a client to its OpenID Connect issuer. */
export function createIssuer(
  { issuer, clientId }: { readonly issuer: string; readonly clientId: string },
  deps: { readonly clock: Clock; readonly clientSecret: () => Promise<Secret | undefined> },
): Issuer {
  const { clock } = deps
  const discovery = createCachedDocument(
    async () => {
      const url = `${issuer.replace(/\/$/, '')}${DISCOVERY_PATH}`
      const what = 'the discovery document'
      return readMetadata(okOf(await callIssuer({ url, what, bytesMax: DOCUMENT_BYTES_MAX }, deps), what), issuer)
    },
    DISCOVERY,
    clock,
  )
  const keys = createCachedDocument(
    async () => {
      const { jwksUri: url } = await discovery.get()
      const what = 'the key set'
      const value = okOf(await callIssuer({ url, what, bytesMax: DOCUMENT_BYTES_MAX }, deps), what)
      return readKeySet(value).catch((error: unknown) => {
        throw unavailable(`the key set of the issuer cannot be used: ${messageOf(error)}`)
      })
    },
    KEYS,
    clock,
  )

  return {
    metadata: discovery.get,
    keys: ({ isNew } = { isNew: false }) => (isNew ? keys.renew() : keys.get()),

    async exchange({ code, codeVerifier, redirectUri }) {
      const { tokenEndpoint: url, isSecretInBody } = await discovery.get()
      const secret = await deps.clientSecret()
      const form = new URLSearchParams({
        grant_type: 'authorization_code',
        code,
        redirect_uri: redirectUri,
        code_verifier: codeVerifier,
      })
      if (secret === undefined || isSecretInBody) form.set('client_id', clientId)
      if (secret !== undefined && isSecretInBody) form.set('client_secret', secret.reveal())
      const headers: Record<string, string> =
        secret === undefined || isSecretInBody ? {} : { authorization: basic(clientId, secret) }
      const what = 'the token response'
      return readTokens(await callIssuer({ url, what, bytesMax: TOKENS_BYTES_MAX, headers, form }, deps))
    },

    async userinfo(accessToken) {
      const { userinfoEndpoint: url } = await discovery.get()
      if (url === undefined) return undefined
      const what = 'the userinfo response'
      const headers = { authorization: `Bearer ${accessToken}` }
      return okOf(await callIssuer({ url, what, bytesMax: USERINFO_BYTES_MAX, headers }, deps), what)
    },
  }
}

function okOf({ status, value }: IssuerReply, what: string): Record<string, unknown> {
  if (status !== 200) throw unavailable(`${what} of the issuer has status ${status} instead of 200`)
  if (!isRecord(value)) throw unavailable(`${what} of the issuer is not a JSON object`)
  return value
}

function readTokens({ status, value }: IssuerReply): Tokens {
  if (!isRecord(value)) throw unavailable(`the token response of the issuer has status ${status} and is not JSON`)
  if (status >= 400 && status < 500) throw new IssuerRefusal(errorCodeOf(value['error']))
  const { id_token: idToken, access_token: accessToken } = value
  if (status !== 200 || typeof idToken !== 'string')
    throw unavailable(`the token response of the issuer has status ${status} and no ID token`)
  return { idToken, accessToken: typeof accessToken === 'string' ? accessToken : undefined }
}

/** An error code of OAuth 2.0; other text is not repeated. */
export function errorCodeOf(value: unknown): string {
  return typeof value === 'string' && /^[a-z_]{1,64}$/.test(value) ? value : 'an error without a code'
}

/** RFC 6749 section 2.3.1: both parts are encoded as in a form. */
function basic(id: string, secret: Secret): string {
  const encode = (text: string): string => new URLSearchParams({ v: text }).toString().slice(2)
  return `Basic ${Buffer.from(`${encode(id)}:${encode(secret.reveal())}`).toString('base64')}`
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
