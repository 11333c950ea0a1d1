import assert from 'node:assert/strict'
import ganache from 'ganache'

export type GanacheNode = AsyncDisposable & {
  readonly url: string
  call<Result>(method: string, ...params: unknown[]): Promise<Result>
}

/** A real EVM node in this process, which mines when it is told to. */
export async function startGanache(): Promise<GanacheNode> {
  const server = ganache.server({
    logging: { quiet: true },
    chain: { chainId: 1337 },
    wallet: { totalAccounts: 12, seed: 'sluice' },
    miner: { instamine: 'strict' },
  })
  await server.listen(0, '127.0.0.1')
  const { port } = server.address()
  const url = `http://127.0.0.1:${port}`
  const call = async <Result>(method: string, ...params: unknown[]): Promise<Result> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const { result, error } = (await response.json()) as { result: Result; error?: { message: string } }
    assert.equal(error, undefined, error?.message ?? '')
    return result
  }
  await call('miner_stop')
  return { url, call, [Symbol.asyncDispose]: () => server.close() }
}

/** Bytecode that puts `runtime` on the chain: copies it to memory and returns it. */
export function deploymentOf(runtime: string): string {
  const size = (runtime.length / 2).toString(16).padStart(2, '0')
  return `0x60${size}600c60003960${size}6000f3${runtime}`
}

/** Adds one to slot 0, then emits a log of it: every caller needs the same slot. */
export const HOT_COUNTER = `${'600054600101'}${'8060005560005260206000a0'}00`

/** Stores the caller's word under the caller's own address: callers have nothing in common. */
export const OWN_SLOT = '43335500'
