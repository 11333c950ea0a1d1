import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createServer, request, type ServerResponse } from 'node:http'
import { readResult, sendResult } from '../../src/indexer/query/result.ts'
import type { StoreProcess } from '../../src/indexer/store/process.ts'

export type LargeResult = {
  readonly rows: number
  readonly bytes: number
  readonly seconds: number
  /** CPU time of the database process and of this one, which sends the result to an HTTP client and receives it. */
  readonly storeCpuSeconds: number
  readonly storeGrownBytes: number
  readonly gatewayGrownBytes: number
}

const SAMPLE_MS = 50
const MIB = 1024 * 1024

/**
 * Runs a query in the database process, sends its result through HTTP on loopback and drops what arrives. Memory is the resident size of either
 * process above its size before; for the database process without the engine's own memory, which `memory_limit` bounds.
 */
export async function measureResult(
  store: StoreProcess,
  { id, query, rows }: { readonly id: number; readonly query: string; readonly rows: number },
): Promise<LargeResult> {
  const limits = { secondsMax: 3600, rowsMax: rows, bytesMax: 64 * 1024 * MIB }
  const send = async (response: ServerResponse): Promise<void> => {
    const job = { query, parameters: {}, defaultFormat: 'TabSeparated', settings: {}, limits }
    const started = await store.ask({ kind: 'query', id, job, owner: 'bench' })
    if (!started.ok) throw new Error(started.message)
    using result = readResult(id, started, { store, permit: { [Symbol.dispose]() {} } })
    const failure = await sendResult(response, result, { headers: {}, exceptionTag: 'bench' })
    if (failure !== undefined) throw failure
  }
  const server = createServer((_, response) => void send(response)).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const before = { store: store.residentBytes() ?? 0, gateway: process.memoryUsage.rss(), cpu: cpuSecondsOf(store) }
  let [storeMax, gatewayMax] = [before.store, before.gateway]
  const sampling = setInterval(() => {
    storeMax = Math.max(storeMax, store.residentBytes() ?? 0)
    gatewayMax = Math.max(gatewayMax, process.memoryUsage.rss())
  }, SAMPLE_MS)
  const startedMs = performance.now()
  const { port } = server.address() as { port: number }
  const [response] = (await once(request({ port, host: '127.0.0.1' }).end(), 'response')) as [AsyncIterable<Buffer>]
  let bytes = 0
  for await (const part of response) bytes += part.length
  clearInterval(sampling)
  server.close()
  server.closeAllConnections()
  return {
    rows,
    bytes,
    seconds: (performance.now() - startedMs) / 1000,
    storeCpuSeconds: cpuSecondsOf(store) - before.cpu,
    storeGrownBytes: storeMax - before.store,
    gatewayGrownBytes: gatewayMax - before.gateway,
  }
}

/** User and system time of the database process so far. */
export function cpuSecondsOf({ pid }: StoreProcess): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}
