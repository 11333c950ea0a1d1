import {
  ADMIN_ROUTES,
  type AdminRouteId,
  CSRF_HEADER,
  IDEMPOTENCY_HEADER,
  OIDC_LOGIN_PATH,
  SIGN_IN_PATH,
} from '../../contract/admin-routes.ts'
import type { SessionRecord, SignInMethod } from './wire.ts'

/** An error of the admin API, or of the way there. */
export type AdminError = {
  readonly code: string
  readonly message: string
  /** What the administrator can do about it. */
  readonly fix?: string
  readonly docsUrl?: string
  readonly requestId?: string
}

export type AdminResult<Value> =
  | { readonly ok: true; readonly status: number; readonly value: Value; readonly revision?: number }
  | { readonly ok: false; readonly status: number; readonly error: AdminError }

export type AdminRequest = {
  /** The parts of the path in braces. */
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: unknown
  /** The change is refused if the record has another revision by now. */
  readonly ifRevision?: number | undefined
  /** The same key for each attempt of one action of the user: it is performed once. */
  readonly key?: string
  readonly signal?: AbortSignal
}

export type AdminClient = {
  /** The session of this browser, for instance after a reload. */
  session(): Promise<AdminResult<SessionRecord>>
  signIn(token: string): Promise<AdminResult<SessionRecord>>
  /** The name of the OpenID Connect issuer; undefined where people sign in with tokens only. */
  issuerLabel(): Promise<string | undefined>
  /** The session stays where it fails. */
  signOut(): Promise<AdminResult<unknown>>
  /** A page of a list that has no items although more follow is passed over. */
  call<Value>(id: AdminRouteId, request?: AdminRequest): Promise<AdminResult<Value>>
}

export type AdminClientDeps = {
  /** The origin of the listener. */
  readonly base: URL
  readonly fetch: typeof fetch
  readonly newKey: () => string
  /** The session has ended: the next request needs a sign-in. */
  readonly onSignedOut: () => void
}

const TIMEOUT_MS = 20_000
const SESSION_PATH = '/v1/session'
/** Pages without items that one call follows. */
const EMPTY_PAGES_MAX = 200

/**
 * Requests of the console. The cookie of the session is HttpOnly, and its CSRF token is only in memory: after a reload it is fetched again.
 */
export function createAdminClient({ base, fetch, newKey, onSignedOut }: AdminClientDeps): AdminClient {
  let csrfToken: string | undefined

  async function request<Value>(
    method: string,
    path: string,
    { query = {}, body, ifRevision, key, signal }: AdminRequest = {},
  ): Promise<AdminResult<Value>> {
    const url = new URL(path, base)
    for (const [name, value] of Object.entries(query))
      if (value !== undefined && value !== '') url.searchParams.set(name, value)
    const isChange = method !== 'GET'
    const headers: Record<string, string> = { accept: 'application/json' }
    if (body !== undefined) headers['content-type'] = 'application/json'
    if (isChange) headers[IDEMPOTENCY_HEADER] = key ?? newKey()
    if (isChange && csrfToken !== undefined) headers[CSRF_HEADER] = csrfToken
    if (ifRevision !== undefined) headers['if-match'] = `"${ifRevision}"`
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    try {
      const response = await fetch(url, {
        method,
        headers,
        credentials: 'same-origin',
        redirect: 'error',
        cache: 'no-store',
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      })
      return await resultOf<Value>(response)
    } catch (error) {
      return { ok: false, status: 0, error: networkError(error) }
    }
  }

  function keep(result: AdminResult<SessionRecord>): AdminResult<SessionRecord> {
    csrfToken = result.ok ? result.value.csrf_token : undefined
    return result
  }

  return {
    session: async () => keep(await request('GET', SESSION_PATH)),
    signIn: async (token) => keep(await request('POST', SESSION_PATH, { body: { token } })),
    async issuerLabel() {
      const result = await request<{ methods: readonly SignInMethod[] }>('GET', SIGN_IN_PATH)
      return result.ok ? result.value.methods.find(({ path }) => path === OIDC_LOGIN_PATH)?.label : undefined
    },
    async signOut() {
      const result = await request('DELETE', SESSION_PATH)
      if (result.ok) csrfToken = undefined
      return result
    },
    async call<Value>(id: AdminRouteId, options: AdminRequest = {}) {
      const { method, path } = ADMIN_ROUTES[id]
      const filled = fillPath(path, options.params ?? {})
      let result = await request<Value>(method, filled, options)
      let cursor = method === 'GET' ? cursorAfterEmpty(result) : undefined
      for (let pages = 1; cursor !== undefined; pages++) {
        if (pages === EMPTY_PAGES_MAX) return { ok: false, status: 0, error: NOTHING_FOUND }
        result = await request<Value>(method, filled, { ...options, query: { ...options.query, cursor } })
        cursor = cursorAfterEmpty(result)
      }
      if (!result.ok && result.status === 401) onSignedOut()
      return result
    },
  }
}

/** The cursor of a page without items that others follow: the work of a page is bounded. */
function cursorAfterEmpty(result: AdminResult<unknown>): string | undefined {
  const page = result.ok ? recordOf(result.value) : undefined
  const [items, cursor] = [page?.['items'], page?.['next_cursor']]
  return Array.isArray(items) && items.length === 0 && typeof cursor === 'string' ? cursor : undefined
}

const NOTHING_FOUND: AdminError = {
  code: 'search-too-long',
  message: `nothing was found in ${EMPTY_PAGES_MAX} pages (limit: emptyPages)`,
  fix: 'Search for a longer part of the name, or choose another filter.',
}

/** `/v1/customers/{customer}` with the values of its parameters. */
function fillPath(path: string, params: Readonly<Record<string, string>>): string {
  return path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => {
    const value = params[name]
    if (value === undefined) throw new Error(`the path ${path} needs ${name}`)
    return encodeURIComponent(value)
  })
}

async function resultOf<Value>(response: Response): Promise<AdminResult<Value>> {
  const { status, ok } = response
  const text = await response.text()
  const body = parseJson(text)
  if (!ok) return { ok: false, status, error: errorOf(body, status) }
  const revision = /^"(\d+)"$/.exec(response.headers.get('etag') ?? '')?.[1]
  return {
    ok: true,
    status,
    value: (body === undefined ? text : body) as Value,
    ...(revision === undefined ? {} : { revision: Number(revision) }),
  }
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}

function errorOf(body: unknown, status: number): AdminError {
  const error = recordOf(recordOf(body)?.['error'])
  const text = (name: string): string | undefined => {
    const value = error?.[name]
    return typeof value === 'string' && value !== '' ? value : undefined
  }
  const [fix, docsUrl, requestId] = [text('fix'), text('docs_url'), text('request_id')]
  return {
    code: text('code') ?? `http-${status}`,
    message: text('message') ?? `the admin API responded with status ${status}`,
    ...(fix === undefined ? {} : { fix }),
    ...(docsUrl === undefined ? {} : { docsUrl }),
    ...(requestId === undefined ? {} : { requestId }),
  }
}

function recordOf(value: unknown): Readonly<Record<string, unknown>> | undefined {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : undefined
}

function networkError(error: unknown): AdminError {
  const isTimeout = error instanceof DOMException && error.name === 'TimeoutError'
  return isTimeout
    ? { code: 'timeout', message: 'no response within 20 s', fix: 'Try again: the same action is performed once.' }
    : {
        code: 'not-reachable',
        message: 'the admin API cannot be reached',
        fix: 'Check that sluice serve is running, then try again: the same action is performed once.',
      }
}
