import { once } from 'node:events'
import { createServer, type IncomingMessage, type RequestListener, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { exportJWK, generateKeyPair } from 'jose'
import { readBody } from '../../../src/platform/http/server/read-body.ts'

export type OidcClient = {
  readonly client_id: string
  readonly client_secret?: string
  readonly redirect_uris: readonly string[]
  readonly id_token_signed_response_alg?: string
  readonly token_endpoint_auth_method?: string
}

/** The part of `oidc-provider` that is used: it has no types of its own. */
type Provider = {
  callback(): RequestListener
  interactionFinished(request: IncomingMessage, response: ServerResponse, result: object): Promise<void>
}
type Context = {
  oidc: { client: { clientId: string }; session: { accountId: string }; provider: { Grant: GrantClass } }
}
type GrantClass = new (of: object) => { addOIDCScope(scope: string): void; save(): Promise<string> }

const SCOPES = 'openid profile email groups'
const ALGORITHMS = ['RS256', 'PS256', 'ES256', 'EdDSA']
/** Made once: RSA keys take long. */
let made: Promise<object[]> | undefined

/** A real OpenID Connect issuer. A person signs in by name, without a password. */
export async function startOidcIssuer(people: Readonly<Record<string, { name: string; groups: readonly string[] }>>) {
  const server = createServer((request, response) => void respond(request, response))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  let provider: Provider | undefined

  async function respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    if (provider === undefined) return void response.writeHead(503).end()
    if (!request.url?.startsWith('/interaction/')) return provider.callback()(request, response)
    if (request.method === 'POST') {
      const read = await readBody(request, { bodyBytesMax: 1000 })
      const accountId = new URLSearchParams(read.ok ? read.body.toString() : '').get('login') ?? ''
      const denied = { error: 'access_denied', error_description: '<b>no</b>' }
      return provider.interactionFinished(request, response, accountId === 'nobody' ? denied : { login: { accountId } })
    }
    response.setHeader('content-type', 'text/html')
    response.end(
      '<title>Issuer</title><form method="post"><input id="login" name="login"><button>Continue</button></form>',
    )
  }

  return {
    url,
    /** From here on the issuer responds. */
    async open(clients: readonly OidcClient[], { hasClaimsInIdToken = false } = {}): Promise<void> {
      const { Provider: Made } = (await import('oidc-provider' as string)) as {
        Provider: new (issuer: string, configuration: object) => Provider
      }
      made ??= makeKeys()
      const keys = await made
      provider = new Made(url, {
        clients: clients.map((client) => ({
          response_types: ['code'],
          grant_types: ['authorization_code'],
          ...client,
        })),
        jwks: { keys },
        cookies: { keys: ['test'] },
        scopes: SCOPES.split(' '),
        claims: { openid: ['sub'], profile: ['name'], email: ['email'], groups: ['groups'] },
        conformIdTokenClaims: !hasClaimsInIdToken,
        pkce: { required: () => true },
        features: { devInteractions: { enabled: false } },
        interactions: { url: (_: unknown, { uid }: { uid: string }) => `/interaction/${uid}` },
        ttl: { AccessToken: 60, AuthorizationCode: 60, IdToken: 300, Interaction: 300, Session: 300, Grant: 300 },
        findAccount: (_: unknown, id: string) => ({
          accountId: id,
          claims: () => ({ sub: id, name: people[id]?.name, email: `${id}@example.net`, groups: people[id]?.groups }),
        }),
        async loadExistingGrant({ oidc: { client, session, provider: own } }: Context) {
          const grant = new own.Grant({ clientId: client.clientId, accountId: session.accountId })
          grant.addOIDCScope(SCOPES)
          await grant.save()
          return grant
        },
      })
    },
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      server.close()
      await once(server, 'close')
    },
  }
}

function makeKeys(): Promise<object[]> {
  return Promise.all(
    ALGORITHMS.map(async (alg) => {
      const { privateKey } = await generateKeyPair(alg, { extractable: true })
      return { ...(await exportJWK(privateKey)), alg, use: 'sig', kid: `key-${alg}` }
    }),
  )
}

/** Follows redirects with its cookies, as a browser does, and records where it was. */
export function createCookieJar() {
  const cookies = new Map<string, { readonly value: string; readonly path: string }>()
  const visited: string[] = []

  async function send(url: string, init: RequestInit = {}): Promise<Response> {
    const { host, pathname } = new URL(url)
    const sent = [...cookies]
      .filter(([key, { path }]) => key.startsWith(`${host} `) && pathname.startsWith(path))
      .map(([key, { value }]) => `${key.slice(host.length + 1)}=${value}`)
    const headers = {
      ...(init.headers as Record<string, string>),
      ...(sent.length === 0 ? {} : { cookie: sent.join('; ') }),
    }
    visited.push(url)
    const response = await fetch(url, { ...init, headers, redirect: 'manual' })
    for (const line of response.headers.getSetCookie()) {
      const [pair = '', ...attributes] = line.split(/; */)
      const [name, value] = [pair.slice(0, pair.indexOf('=')), pair.slice(pair.indexOf('=') + 1)] as const
      const path = attributes.find((one) => /^path=/i.test(one))?.slice(5) ?? '/'
      if (value === '' || attributes.some((one) => /^max-age=0$/i.test(one))) cookies.delete(`${host} ${name}`)
      else cookies.set(`${host} ${name}`, { value, path })
    }
    return response
  }

  return {
    send,
    visited,
    /** The value of a cookie. */
    get: (url: string, name: string): string | undefined => cookies.get(`${new URL(url).host} ${name}`)?.value,
    set: (url: string, name: string, value: string): void =>
      void cookies.set(`${new URL(url).host} ${name}`, { value, path: '/' }),
    /** Follows redirects until a page; a form of the issuer is filled in with `login`. */
    async walk(url: string, login: string, stopAt: (url: string) => boolean = () => false): Promise<Response> {
      let response = await send(url)
      for (let hops = 0; hops < 12; hops++) {
        const at = visited.at(-1) as string
        const location = response.headers.get('location')
        if (location !== null) {
          const next = new URL(location, at).href
          if (stopAt(next)) return response
          response = await send(next)
        } else if (response.status === 200 && at.includes('/interaction/')) {
          response = await send(at, { method: 'POST', body: new URLSearchParams({ login }) })
        } else return response
      }
      throw new Error('too many redirects')
    },
  }
}
