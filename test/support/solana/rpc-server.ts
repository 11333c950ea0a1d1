import type { Account } from '../../../src/localnet/chain/model.ts'
import type { LocalnetOptionsInput } from '../../../src/localnet/options.ts'
import { startChainRpcServer } from '../../../src/localnet/rpc/http.ts'
import { parseExactJson } from '../../../src/localnet/rpc/json.ts'
import { startTestChain, type TestChain } from '../../../src/localnet/test-chain.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { onChainCell } from './chain-cell.ts'

export type Response = { readonly result?: unknown; readonly error?: { code: number; message: string; data?: unknown } }

export type TestServer = TestChain &
  AsyncDisposable & {
    readonly url: string
    /** The complete response, integers exact. */
    ask(method: string, ...params: unknown[]): Promise<Response>
    /** The result; throws on an error response. */
    call<T = never>(method: string, ...params: unknown[]): Promise<T>
    /** The error's code and message; throws on a result. */
    refusal(method: string, ...params: unknown[]): Promise<[number, string]>
    post(
      body: string | Uint8Array,
      headers?: Record<string, string>,
    ): Promise<{ status: number; text: string; headers: Headers }>
    /** Ends this many slots. */
    pass(slots: number): Promise<void>
  }

/** A chain without new slots, with its JSON-RPC server on a free port. */
export async function startTestServer(
  options: LocalnetOptionsInput = {},
  given: { fixtures?: Iterable<readonly [string, Account]>; seed?: number } = {},
): Promise<TestServer> {
  await using opening = new AsyncDisposableStack()
  const { chain, clock } = opening.use(await startTestChain(onChainCell(options), given))
  const server = opening.use(
    await startChainRpcServer(
      { listen: { host: '127.0.0.1', port: 0 }, pubsub: '127.0.0.1:8900' },
      { chain, clock, log: silentLogger },
    ),
  )
  const url = `http://127.0.0.1:${server.address.port}`

  async function post(
    body: string | Uint8Array,
    headers: Record<string, string> = { 'content-type': 'application/json' },
  ) {
    const response = await fetch(url, { method: 'POST', body: body as string, headers })
    return { status: response.status, text: await response.text(), headers: response.headers }
  }

  async function ask(method: string, ...params: unknown[]): Promise<Response> {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }, (_key, value) =>
      typeof value === 'bigint' ? rawJson(value.toString()) : value,
    )
    return parseExactJson((await post(body)).text) as Response
  }

  const opened = opening.move()
  return {
    chain,
    clock,
    url,
    ask,
    post,
    async call(method, ...params) {
      const response = await ask(method, ...params)
      if (response.error) throw new Error(`${method}: ${response.error.code} ${response.error.message}`)
      return response.result as never
    },
    async refusal(method, ...params) {
      const { error } = await ask(method, ...params)
      if (!error) throw new Error(`${method} was not refused`)
      return [error.code, error.message]
    },
    async pass(slots) {
      for (let i = 0; i < slots; i++) await chain.produceBlock()
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

// In the engine, not yet in the library types.
const rawJson = (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON
