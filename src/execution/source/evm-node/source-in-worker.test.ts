import assert from 'node:assert/strict'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import { createSeededRandom } from '../../../core/random.ts'
import { RingFollower } from '../../../evm/ring/follow.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { until } from '../../../platform/process/test-wait.ts'
import { openRingFile } from '../../../platform/ring-file/reader.ts'
import { createLogger } from '../../../platform/telemetry/logger.ts'
import { startEvmNodeWorker } from './source-in-worker.ts'

const word = (digit: string): string => `0x${digit.repeat(64)}`

/** A node with one empty block. */
async function startNode(): Promise<AsyncDisposable & { url: string; credentials: Set<string | undefined> }> {
  const block = {
    number: '0x5',
    hash: word('5'),
    parentHash: word('4'),
    miner: `0x${'c'.repeat(40)}`,
    gasLimit: '0x1',
    gasUsed: '0x0',
    timestamp: '0x1',
    transactions: [],
  }
  const results: Record<string, unknown> = { eth_chainId: '0x1', eth_blockNumber: '0x5', eth_getBlockByNumber: block }
  const credentials = new Set<string | undefined>()
  const server = createServer((request, response) => {
    credentials.add(request.headers.authorization)
    let text = ''
    request.on('data', (chunk) => (text += String(chunk)))
    request.on('end', () => {
      const { id, method } = JSON.parse(text) as { id: number; method: string }
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result: results[method] }))
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    credentials,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections()
      await new Promise((resolve) => void server.close(resolve))
    },
  }
}

test('the source of an EVM node runs in its own thread, logs as this one, and removes its ring', async (t) => {
  using folder = makeTestFolder()
  await using node = await startNode()
  // Traces are parsed where they are fetched; this thread serves the clients of the stream.
  t.mock.method(globalThis, 'fetch', () => Promise.reject(new Error('called in the thread of the service')))
  const lines: Record<string, unknown>[] = []
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
  const deps = {
    log: createLogger({ level: 'info', destination: { write } }),
    clock: systemClock,
    random: createSeededRandom(1),
  }
  const path = folder.file('ring')
  const options = { url: node.url, headers: { authorization: 'Bearer secret' }, path, pollMs: 100 }
  await using source = await startEvmNodeWorker(options, deps)
  const follower = new RingFollower(() => openRingFile(path), { start: 'oldest', checkMs: 0 })
  await until('the block is in the ring', () => follower.poll(performance.now()).kind === 'events', 20_000)
  follower[Symbol.dispose]()
  assert.deepEqual([...node.credentials], ['Bearer secret'])
  await assert.rejects(startEvmNodeWorker(options, deps), /is being written by another process/)
  await source[Symbol.asyncDispose]()
  assert(!existsSync(path))
  const [line] = lines.filter(({ msg }) => String(msg).includes('no times'))
  assert.deepEqual([line?.['level'], line?.['part']], ['info', 'evm-node'])
})
