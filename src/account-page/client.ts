import type { PageError } from '../ui/page/page-error.ts'

export type AccountResult<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly status: number; readonly error: PageError }

export type AccountRequest = {
  readonly method?: 'GET' | 'POST'
  readonly query?: Readonly<Record<string, string>>
  readonly signal?: AbortSignal
}

export type AccountClient = {
  call<Value>(path: string, request?: AccountRequest): Promise<AccountResult<Value>>
  /** The response as a file. */
  file(path: string, request?: AccountRequest): Promise<AccountResult<Blob>>
}

export type AccountClientDeps = {
  /** The origin of the page. */
  readonly base: URL
  readonly fetch: typeof fetch
  /** The token, which is only in memory. */
  readonly token: () => string
  /** The token is not valid, or no longer. */
  readonly onRefused: (error: PageError) => void
}

const TIMEOUT_MS = 20_000

/** Requests of the account page: the token goes in a header and never into an address. */
export function createAccountClient({ base, fetch, token, onRefused }: AccountClientDeps): AccountClient {
  async function send<Value>(
    path: string,
    { method = 'GET', query = {}, signal }: AccountRequest,
    read: (response: Response) => Promise<Value>,
  ): Promise<AccountResult<Value>> {
    const url = new URL(path, base)
    for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value)
    const timeout = AbortSignal.timeout(TIMEOUT_MS)
    try {
      const response = await fetch(url, {
        method,
        headers: { 'x-token': token() },
        credentials: 'omit',
        redirect: 'error',
        cache: 'no-store',
        referrerPolicy: 'no-referrer',
        signal: signal === undefined ? timeout : AbortSignal.any([signal, timeout]),
      })
      if (response.ok) return { ok: true, value: await read(response) }
      const error = errorOf(response.status, await response.json().catch(() => ({})))
      if (response.status === 401) onRefused(error)
      return { ok: false, status: response.status, error }
    } catch {
      const message = 'Sluice does not respond.'
      return { ok: false, status: 0, error: { message, fix: 'Check your connection and try again.' } }
    }
  }

  return {
    call: <Value>(path: string, request: AccountRequest = {}) =>
      send(path, request, (response) => response.json() as Promise<Value>),
    file: (path, request = {}) => send(path, request, (response) => response.blob()),
  }
}

/** Refused tokens have the form of JSON-RPC; all other errors have a message at the top. */
function errorOf(status: number, body: unknown): PageError {
  const fields = (body ?? {}) as { message?: unknown; fix?: unknown; request_id?: unknown; error?: unknown }
  const rpc = (typeof fields.error === 'object' ? fields.error : undefined) as
    | { message?: unknown; data?: { fix?: unknown; request_id?: unknown } }
    | undefined
  const { message, fix, requestId } =
    rpc === undefined
      ? { message: fields.message, fix: fields.fix, requestId: fields.request_id }
      : { message: rpc.message, fix: rpc.data?.fix, requestId: rpc.data?.request_id }
  return {
    message: typeof message === 'string' ? message : `The request was refused with status ${status}.`,
    ...(typeof fix === 'string' ? { fix } : {}),
    ...(typeof requestId === 'string' ? { requestId } : {}),
  }
}
