/**
 * A JSON-RPC client on `fetch` for tools that make a call now and then: it keeps no connections and pins no address. Calls on behalf of customers go
 * through `pool.ts`. The URL may contain a credential: it is never part of an error.
 */
export type JsonRpcClient = {
  call(method: string, params: readonly unknown[]): Promise<unknown>
}

export type JsonRpcClientOptions = {
  readonly url: string
  readonly headers?: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** A larger response is an error. */
  readonly responseBytesMax: number
}

/** The server responded with a JSON-RPC error. */
export class JsonRpcFailure extends Error {
  override readonly name = 'JsonRpcFailure'
  readonly code: number

  constructor(method: string, code: number, message: string) {
    super(`${method}: ${message} (${code})`)
    this.code = code
  }
}

export function createJsonRpcClient(options: JsonRpcClientOptions): JsonRpcClient {
  let id = 0
  return {
    async call(method, params) {
      id += 1
      const text = await post(options, method, JSON.stringify({ jsonrpc: '2.0', id, method, params }))
      const response = parseResponse(method, text)
      if (response.error !== undefined) throw new JsonRpcFailure(method, response.error.code, response.error.message)
      return response.result
    },
  }
}

async function post(options: JsonRpcClientOptions, method: string, body: string): Promise<string> {
  const { url, headers, timeoutMs, responseBytesMax } = options
  const response = await fetch(url, {
    method: 'POST',
    body,
    headers: { 'content-type': 'application/json', ...headers },
    redirect: 'error',
    signal: AbortSignal.timeout(timeoutMs),
  }).catch((error: unknown) => {
    const isLate = error instanceof Error && error.name === 'TimeoutError'
    throw new Error(`${method}: ${isLate ? `no response within ${timeoutMs} ms` : `no connection${causeOf(error)}`}`)
  })
  const pieces: Uint8Array[] = []
  let bytes = 0
  for await (const piece of response.body ?? []) {
    bytes += piece.length
    if (bytes > responseBytesMax) throw new Error(`${method}: the response is larger than ${responseBytesMax} bytes`)
    pieces.push(piece)
  }
  const text = Buffer.concat(pieces).toString()
  // A JSON-RPC error may come with any status; other bodies of a failure are ignored.
  if (!response.ok && !text.startsWith('{')) throw new Error(`${method}: HTTP ${response.status}`)
  return text
}

/** The system's error code, such as ECONNREFUSED; its message would contain the address. */
function causeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause as NodeJS.ErrnoException | undefined) : undefined
  return cause?.code === undefined ? '' : ` (${cause.code})`
}

type Response = { result?: unknown; error?: { code: number; message: string } }

function parseResponse(method: string, text: string): Response {
  let response: unknown
  try {
    response = JSON.parse(text)
  } catch {
    throw new Error(`${method}: the response is not JSON`)
  }
  if (typeof response !== 'object' || response === null) throw new Error(`${method}: the response is not JSON-RPC`)
  const { result, error } = response as { result?: unknown; error?: { code?: unknown; message?: unknown } | null }
  if (error === undefined || error === null) return { result }
  const message = typeof error.message === 'string' ? error.message.slice(0, 300) : 'an error without a message'
  return { error: { code: Number(error.code ?? 0), message } }
}
