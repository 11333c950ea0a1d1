import { EXECUTION_TICKET_PATH } from '../../contract/execution-routes.ts'

/** A response of the service, or the error text to show. */
export type Response<Value> =
  | { readonly ok: true; readonly value: Value; readonly status: number }
  | { readonly ok: false; readonly status: number; readonly error: string }

export type Service = {
  readonly base: URL
  /** Headers of every request: the token, where there is one. */
  headers(): Record<string, string>
  get<Value>(path: string): Promise<Response<Value>>
  rpc<Value>(method: string, params: readonly unknown[]): Promise<Response<Value>>
  /** A ticket for the WebSocket, where the service requires a token. Rejects without a valid token. */
  ticket(): Promise<string>
}

const TIMEOUT_MS = 10_000

export function createService(base: URL, token: () => string | undefined): Service {
  function headers(): Record<string, string> {
    const current = token()
    return current === undefined ? {} : { 'x-token': current }
  }

  async function request<Value>(
    path: string,
    init: Omit<RequestInit, 'headers'> & { headers?: Record<string, string> },
  ): Promise<Response<Value>> {
    try {
      const signal = AbortSignal.timeout(TIMEOUT_MS)
      const response = await fetch(new URL(path, base), { ...init, headers: { ...init.headers, ...headers() }, signal })
      const value = (await response.json()) as Value
      if (response.ok) return { ok: true, value, status: response.status }
      return { ok: false, status: response.status, error: errorOf(value) ?? `HTTP ${response.status}` }
    } catch (error) {
      const reason =
        error instanceof DOMException && error.name === 'TimeoutError' ? 'no response within 10 s' : 'not reachable'
      return { ok: false, status: 0, error: reason }
    }
  }

  async function rpc<Value>(method: string, params: readonly unknown[]): Promise<Response<Value>> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const type = { 'content-type': 'application/json' }
    const init = { method: 'POST', body, headers: type }
    const response = await request<{ result?: Value; error?: { message: string } }>('', init)
    if (!response.ok) return response
    const { result, error } = response.value
    if (result == null) return { ok: false, status: response.status, error: error?.message ?? 'not known here' }
    return { ok: true, status: response.status, value: result }
  }

  return {
    base,
    headers,
    async ticket() {
      const response = await request<{ ticket: string }>(EXECUTION_TICKET_PATH.slice(1), { method: 'POST' })
      if (!response.ok) throw new Error(response.error)
      return response.value.ticket
    },
    get: (path) => request(path, {}),
    rpc,
  }
}

function errorOf(body: unknown): string | undefined {
  if (typeof body !== 'object' || body === null || !('error' in body)) return undefined
  return typeof body.error === 'string' ? body.error : undefined
}
