import { once } from 'node:events'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { encodeBase58 } from '../../../src/solana/crypto/base58.ts'

/** The only argument of the node, as JSON: the one leader it reports. */
export type NodeTask = { readonly identity: string; readonly port: number } | undefined

/** Always the newest blockhash, so that transactions signed in advance stay valid. */
export const NODE_BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))

const SYSTEM_PROGRAM = encodeBase58(new Uint8Array(32))

/** Time until a transaction is in a block. */
const LAND_MS = 400

/**
 * A node that accepts every transaction, records its arrival and reports it as landed shortly after; every payer has lamports. A separate process, so
 * that it does not delay the client. It replies to each message with the arrivals since the last: the first 86 characters of the text and the time.
 */
if (import.meta.main) {
  const leader = JSON.parse(process.argv[2] ?? 'null') as { identity: string; port: number } | null
  const nowMs = () => performance.timeOrigin + performance.now()
  const startedMs = nowMs()
  const arrivals = new Map<string, number>()
  /** By signature. */
  const cameAt = new Map<string, number>()
  const slot = () => 1000 + Math.floor((nowMs() - startedMs) / LAND_MS)
  const context = () => ({ slot: slot() })
  const responses: Record<string, (params: unknown[]) => unknown> = {
    getSlot: slot,
    getLatestBlockhash: () => ({
      context: context(),
      value: { blockhash: NODE_BLOCKHASH, lastValidBlockHeight: slot() + 150 },
    }),
    isBlockhashValid: () => ({ context: context(), value: true }),
    getClusterNodes: () => (leader === null ? [] : [{ pubkey: leader.identity, tpuQuic: `127.0.0.1:${leader.port}` }]),
    getSlotLeaders: () => Array.from({ length: 1000 }, () => leader?.identity ?? ''),
    getMultipleAccounts: ([addresses]) => ({
      context: context(),
      value: (addresses as string[]).map(() => ({ lamports: 10 ** 12, owner: SYSTEM_PROGRAM, data: ['', 'base64'] })),
    }),
    getSignatureStatuses: ([signatures]) => ({
      context: context(),
      value: (signatures as string[]).map((signature) => {
        const cameMs = cameAt.get(signature) ?? Number.POSITIVE_INFINITY
        return nowMs() - cameMs < LAND_MS ? null : { slot: slot(), err: null, confirmationStatus: 'confirmed' }
      }),
    }),
  }
  const server = createServer((incoming, response) => void respond(incoming, response))
  async function respond(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const atMs = nowMs()
    let text = ''
    for await (const chunk of incoming) text += String(chunk)
    const { method, params = [] } = JSON.parse(text) as { method: string; params?: unknown[] }
    const [first] = params
    if (method === 'sendTransaction' && typeof first === 'string') {
      const signature = encodeBase58(Buffer.from(first, 'base64').subarray(1, 65))
      if (!cameAt.has(signature)) {
        cameAt.set(signature, atMs)
        arrivals.set(first.slice(0, 86), atMs)
      }
    }
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, result: responses[method]?.(params) ?? 'x' })
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length })
    response.end(body)
  }
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  process.on('message', () => {
    process.send?.([...arrivals])
    arrivals.clear()
  })
  process.send?.(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  await once(process, 'disconnect')
  process.exit(0)
}
