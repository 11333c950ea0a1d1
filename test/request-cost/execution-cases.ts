import { WebSocket } from 'ws'
import { EXECUTION_ROUTES, EXECUTION_RPC_METHODS } from '../../src/contract/execution-routes.ts'
import { FIGURE_KINDS, RAW_EVENTS } from '../../src/contract/stream-events.ts'
import { nextAddress, post, send, type WorkCase, type WorkTarget, worstJson } from './work-case.ts'

const ITEMS_MAX = 100
/** How long a stream is read: the snapshot and some blocks. */
const STREAM_MS = 300

const ADDRESS = `0x${'00'.repeat(20)}`

type Params = (blocks: { readonly newest: string; readonly oldest: string; readonly hash: string }) => unknown[]

/** The parameters with which each method returns the most. */
const PARAMS: Readonly<Record<(typeof EXECUTION_RPC_METHODS)[number], Params>> = {
  eth_chainId: () => [],
  net_version: () => [],
  web3_clientVersion: () => [],
  eth_blockNumber: () => [],
  eth_syncing: () => [],
  eth_getBlockByNumber: ({ newest }) => [newest, true],
  eth_getBlockByHash: ({ hash }) => [hash, true],
  eth_getBlockTransactionCountByNumber: ({ newest }) => [newest],
  eth_getBlockTransactionCountByHash: ({ hash }) => [hash],
  eth_getTransactionByHash: ({ hash }) => [hash],
  eth_getTransactionByBlockNumberAndIndex: ({ newest }) => [newest, '0x0'],
  eth_getTransactionByBlockHashAndIndex: ({ hash }) => [hash, '0x0'],
  eth_getTransactionReceipt: ({ hash }) => [hash],
  eth_getBlockReceipts: ({ newest }) => [newest],
  eth_getLogs: ({ oldest, newest }) => [{ fromBlock: oldest, toBlock: newest }],
}

/** The open service on 8443: JSON-RPC, REST, metrics, page and stream. */
export function executionCases(): WorkCase[] {
  const rpc = (name: string, body: (blocks: Parameters<Params>[0]) => string): WorkCase => ({
    name: `execution ${name}`,
    run: async ({ http }) => post(`${http.execution}/`, body(await heldBlocks(http.execution))),
  })
  const call = (method: string, params: unknown, id: number) => JSON.stringify({ jsonrpc: '2.0', id, method, params })
  return [
    ...EXECUTION_RPC_METHODS.flatMap((method) => [
      rpc(method, (blocks) => call(method, PARAMS[method](blocks), 1)),
      rpc(`a batch of ${method}`, (blocks) => {
        return `[${Array.from({ length: ITEMS_MAX }, (_, at) => call(method, PARAMS[method](blocks), at)).join(',')}]`
      }),
    ]),
    rpc('logs of a thousand addresses', ({ oldest, newest }) => {
      const address = Array.from({ length: 1000 }, (_, at) => `0x${at.toString(16).padStart(40, '0')}`)
      return call('eth_getLogs', [{ fromBlock: oldest, toBlock: newest, address }], 1)
    }),
    ...Object.entries(worstJson(1_000_000)).flatMap(([name, json]) => [
      rpc(`a body of ${name}`, () => json),
      rpc(`params of ${name}`, () => `{"jsonrpc":"2.0","id":1,"method":"eth_getLogs","params":${json}}`),
    ]),
    rpc('a batch of invalid items', () => `[${'0,'.repeat(ITEMS_MAX - 1)}0]`),
    ...EXECUTION_ROUTES.filter(({ method }) => method === 'GET').map(({ path }) => ({
      name: `execution GET ${path}`,
      run: ({ http }: WorkTarget) =>
        send(`${http.execution}${path.replace(':number', '1').replace(':address', ADDRESS)}`),
    })),
    {
      name: 'execution GET the most transactions',
      async run({ http }: WorkTarget) {
        const { newest } = await heldBlocks(http.execution)
        return await send(`${http.execution}/v1/blocks/${Number(newest)}/transactions?limit=500`)
      },
    },
    ...['0', 'a', '0000', `0x${'ab'.repeat(32)}`, '…'.repeat(80)].map((query) => ({
      name: `execution GET a search for ${query.slice(0, 8)}`,
      run: ({ http }: WorkTarget) => send(`${http.execution}/v1/search?q=${encodeURIComponent(query)}`),
    })),
    { name: 'execution GET the most blocks', run: ({ http }) => send(`${http.execution}/v1/blocks?count=100000`) },
    stream('execution stream of everything', ''),
    stream('execution stream of raw events', '', [...FIGURE_KINDS.slice(0, 4), ...RAW_EVENTS.slice(0, 4)]),
    stream('execution stream resumed from the oldest', '?resume_from=1'),
    ...Object.entries(worstJson(60_000)).map(([name, json]) => stream(`execution stream message of ${name}`, '', json)),
  ]
}

async function heldBlocks(url: string): Promise<Parameters<Params>[0]> {
  const ask = async (method: string, params: unknown[]) => {
    const { text } = await post(url, JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }))
    // The text of a large block is truncated; its number and hash are near the start.
    const field = (name: string) => new RegExp(`"${name}":"(0x[0-9a-f]+)"`).exec(text)?.[1]
    return { number: field('number'), hash: field('hash') }
  }
  const newest = await ask('eth_getBlockByNumber', ['latest', false])
  const oldest = await ask('eth_getBlockByNumber', ['earliest', false])
  // Above the oldest block, which may be dropped during the request.
  const from = BigInt(oldest?.number ?? '0x0') + 5n
  return { newest: newest?.number ?? '0x0', oldest: `0x${from.toString(16)}`, hash: newest?.hash ?? '0x0' }
}

/** Reads a stream for a while, after sending one message or subscribing to these kinds. */
function stream(name: string, query: string, message?: string | readonly string[]): WorkCase {
  return {
    name,
    run: ({ http }) =>
      new Promise<void>((resolve) => {
        const socket = new WebSocket(`${http.execution.replace('http', 'ws')}/v1/ws${query}`, {
          localAddress: nextAddress(),
        })
        const timer = setTimeout(() => socket.terminate(), STREAM_MS)
        socket.on('open', () => {
          if (message === undefined) return
          socket.send(typeof message === 'string' ? message : JSON.stringify({ subscribe: message }))
        })
        socket.on('error', () => {})
        socket.on('close', () => {
          clearTimeout(timer)
          resolve()
        })
      }),
  }
}
