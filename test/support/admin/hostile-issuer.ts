import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair, SignJWT } from 'jose'
import { readBody } from '../../../src/platform/http/server/read-body.ts'

export type Signing = { readonly alg: string; readonly kid: string; readonly key: CryptoKey | Uint8Array }
export type Claims = Record<string, unknown>
export type HostileIssuer = AsyncDisposable & {
  readonly url: string
  readonly jwk: Record<string, unknown>
  /** Requests by path. */
  readonly calls: Readonly<Record<string, number>>
  /** The bodies of token requests. */
  readonly forms: readonly URLSearchParams[]
  signing: Signing
  nowMs: () => number
  /** The key set. */
  keys: unknown[]
  readonly metadata: Claims
  userinfo: Claims
  /** Responds to a path in place of the issuer. */
  readonly override: Record<string, (response: ServerResponse) => void>
  /** Sees each token request. */
  onToken: (request: IncomingMessage) => void
  /** Makes the ID token of the next token response. */
  idToken: () => Promise<string>
  /** A signed token with these claims over the usual ones. */
  sign(claims: Claims, signing?: Signing): Promise<string>
}

/** An OpenID Connect issuer that responds with whatever a test sets, for faults that a real one does not have. */
export async function startHostileIssuer({ clientId = 'sluice' } = {}): Promise<HostileIssuer> {
  const pair = await generateKeyPair('ES256', { extractable: true })
  const jwk: Record<string, unknown> = { ...(await exportJWK(pair.publicKey)), kid: 'k1', use: 'sig', alg: 'ES256' }
  const calls: Record<string, number> = {}
  const forms: URLSearchParams[] = []
  const server = createServer((request, response) => void respond(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`

  const issuer: HostileIssuer = {
    url,
    jwk,
    calls,
    forms,
    signing: { alg: 'ES256', kid: 'k1', key: pair.privateKey },
    nowMs: () => Date.now(),
    keys: [jwk],
    metadata: {
      issuer: url,
      authorization_endpoint: `${url}/authorize`,
      token_endpoint: `${url}/token`,
      jwks_uri: `${url}/jwks`,
      userinfo_endpoint: `${url}/userinfo`,
    },
    userinfo: { sub: 'u-1' },
    override: {},
    onToken: () => {},
    idToken: async () => '',
    async sign(claims, signing = issuer.signing) {
      const seconds = Math.floor(issuer.nowMs() / 1000)
      const usual = {
        iss: url,
        aud: clientId,
        sub: 'u-1',
        iat: seconds,
        exp: seconds + 300,
        name: 'Ann',
        groups: ['ops'],
      }
      const all = Object.entries({ ...usual, ...claims }).filter(([, value]) => value !== undefined)
      const { alg, kid, key } = signing
      return new SignJWT(Object.fromEntries(all)).setProtectedHeader({ alg, kid }).sign(key)
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = (request.url ?? '').split('?')[0] as string
    calls[path] = (calls[path] ?? 0) + 1
    const override = issuer.override[path]
    if (override !== undefined) return override(response)
    const send = (body: unknown): void => void response.end(JSON.stringify(body))
    if (path === '/.well-known/openid-configuration') return send(issuer.metadata)
    if (path === '/jwks') return send({ keys: issuer.keys })
    if (path === '/userinfo') return send(issuer.userinfo)
    issuer.onToken(request)
    const read = await readBody(request, { bodyBytesMax: 65_536 })
    forms.push(new URLSearchParams(read.ok ? read.body.toString() : ''))
    send({ token_type: 'Bearer', access_token: 'access-token-of-the-issuer', id_token: await issuer.idToken() })
  }
  return issuer
}

export const LOGIN = '/v1/oidc/login'
export const CALLBACK = '/v1/oidc/callback'

type Listener = { readonly url: string }
export type Begun = { readonly state: string; readonly nonce: string; readonly cookie: string; readonly url: URL }

/** What a browser does before it comes back from the issuer. */
export async function begin({ url: base }: Listener): Promise<Begun> {
  const response = await fetch(`${base}${LOGIN}`, { redirect: 'manual' })
  assert.equal(response.status, 303, await response.text())
  const url = new URL(response.headers.get('location') ?? '')
  const cookie = (response.headers.getSetCookie()[0] ?? '').split(';')[0] as string
  return { state: url.searchParams.get('state') ?? '', nonce: url.searchParams.get('nonce') ?? '', cookie, url }
}

/** The browser comes back. */
export function finish(
  { url }: Listener,
  { state, cookie }: Begun,
  more: Record<string, string> = {},
): Promise<Response> {
  const query = new URLSearchParams({ state, code: 'code-of-the-issuer', ...more })
  return fetch(`${url}${CALLBACK}?${query.toString()}`, { redirect: 'manual', headers: { cookie } })
}

/** A whole sign-in, with claims over the usual ones. */
export async function signIn(at: Listener, issuer: HostileIssuer, claims: Claims = {}): Promise<Response> {
  const begun = await begin(at)
  issuer.idToken = () => issuer.sign({ nonce: begun.nonce, ...claims })
  return finish(at, begun)
}

/** The cookie of the session that a response opens. */
export function sessionOf(response: Response): string {
  assert.equal(response.status, 303)
  const cookie = response.headers.getSetCookie().find((line) => line.startsWith('sluice_admin=')) ?? ''
  assert.match(cookie, /^sluice_admin=[\w-]{43}; Path=\/; HttpOnly; SameSite=Strict$/)
  return cookie.split(';')[0] as string
}

type SessionBody = {
  readonly id?: string
  readonly name?: string
  readonly role?: string
  readonly csrf_token?: string
}

export async function readSession({ url }: Listener, cookie: string): Promise<SessionBody & { status: number }> {
  const response = await fetch(`${url}/v1/session`, { headers: { cookie } })
  return { ...((await response.json()) as SessionBody), status: response.status }
}
