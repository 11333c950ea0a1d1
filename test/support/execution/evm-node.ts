import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import {
  ContractDecoder,
  EdrContext,
  L1_CHAIN_TYPE,
  l1GenesisState,
  l1HardforkFromString,
  l1ProviderFactory,
  MineOrdering,
  type Provider,
  SHANGHAI,
} from '@nomicfoundation/edr'

export type EvmNode = AsyncDisposable & {
  readonly url: string
  call<Result>(method: string, ...params: unknown[]): Promise<Result>
}

export type EvmNodeOptions = {
  /** A node without tracers supports only struct logs, as many do. */
  readonly hasTracers?: boolean
}

type Request = { readonly id?: unknown; readonly method?: string; readonly params?: readonly unknown[] }

const ACCOUNTS = 12
const CHAIN_ID = 1337n
const GAS_LIMIT = 30_000_000n
const BALANCE = `0x${(10n ** 21n).toString(16)}`

/** One per process, as the engine requires. */
let context: Promise<EdrContext> | undefined

async function openContext(): Promise<EdrContext> {
  const opened = new EdrContext()
  await opened.registerProviderFactory(L1_CHAIN_TYPE, l1ProviderFactory())
  return opened
}

async function openProvider(): Promise<Provider> {
  context ??= openContext()
  return (await context).createProvider(
    L1_CHAIN_TYPE,
    {
      allowBlocksWithSameTimestamp: true,
      allowUnlimitedContractSize: false,
      bailOnCallFailure: false,
      bailOnTransactionFailure: false,
      chainId: CHAIN_ID,
      coinbase: new Uint8Array(20),
      defaultTransactionGasLimit: 1_000_000n,
      genesisState: l1GenesisState(l1HardforkFromString(SHANGHAI)),
      // Later hard forks have a beacon block root in the header, which the ring does not carry.
      hardfork: SHANGHAI,
      initialBaseFeePerGas: 1_000_000_000n,
      minGasPrice: 0n,
      mining: { autoMine: false, blockGasLimit: GAS_LIMIT, memPool: { order: MineOrdering.Fifo } },
      network: { genesisBlockGasLimit: GAS_LIMIT },
      networkId: CHAIN_ID,
      observability: {},
      ownedAccounts: Array.from({ length: ACCOUNTS }, (_, n) => `0x${(n + 1).toString(16).padStart(64, '0')}`),
      precompileOverrides: [],
    },
    { enable: false, decodeConsoleLogInputsCallback: () => [], printLineCallback() {} },
    { subscriptionCallback() {} },
    new ContractDecoder(),
  )
}

/** A real EVM in this process, which mines on request, behind JSON-RPC over HTTP. */
export async function startEvmNode({ hasTracers = true }: EvmNodeOptions = {}): Promise<EvmNode> {
  const provider = await openProvider()
  const server = createServer((request, response) => void serve(request, response))
  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    let text = ''
    for await (const chunk of request) text += String(chunk)
    const parsed = JSON.parse(text) as Request | Request[]
    const responses = await Promise.all([parsed].flat().map(handle))
    response.setHeader('content-type', 'application/json')
    response.end(Array.isArray(parsed) ? `[${responses.join()}]` : responses[0])
  }
  async function handle(request: Request): Promise<string> {
    const [, config] = request.params ?? []
    if (!hasTracers && (config as { tracer?: string } | undefined)?.tracer !== undefined) {
      return JSON.stringify({ jsonrpc: '2.0', id: request.id, error: { code: -32602, message: 'unknown tracer' } })
    }
    const { data } = (await provider.handleRequest(JSON.stringify(request))) as { data: unknown }
    return typeof data === 'string' ? data : JSON.stringify(data)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const call = async <Result>(method: string, ...params: unknown[]): Promise<Result> => {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const response = await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
    const { result, error } = (await response.json()) as { result: Result; error?: { message: string } }
    assert.equal(error, undefined, error?.message ?? '')
    return result
  }
  for (const account of await call<string[]>('eth_accounts')) await call('hardhat_setBalance', account, BALANCE)
  return {
    url,
    call,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

/** Bytecode that deploys `runtime`: copies it to memory and returns it. */
export function deploymentOf(runtime: string): string {
  const size = (runtime.length / 2).toString(16).padStart(2, '0')
  return `0x60${size}600c60003960${size}6000f3${runtime}`
}

/** Adds one to slot 0, then emits a log: every call uses the same slot. */
export const HOT_COUNTER = `${'600054600101'}${'8060005560005260206000a0'}00`

/** Stores a value under the caller's address: different callers use different slots. */
export const OWN_SLOT = '43335500'
