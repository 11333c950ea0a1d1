import assert from 'node:assert/strict'
import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import type { RecentBlocks } from '../../src/contract/execution-routes.ts'
import { addressOf } from '../../src/evm/test-block.ts'
import { BlockArchive } from '../../src/execution/archive/archive.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { ethBlock, rpcCall, txnHashOf } from '../support/execution/eth-blocks.ts'
import { getJson, startTestExecution, type TestExecution } from '../support/execution/start.ts'
import { watchEventLoop } from '../support/process/event-loop-cost.ts'

/** Which blocks JSON-RPC serves: those in memory and those on disk, over restarts, and every response names the range. */

type Rpc = { result?: unknown; error?: { code: number; message: string; data?: unknown } }

async function call(service: TestExecution, method: string, ...params: unknown[]) {
  const response = await fetch(service.http, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(rpcCall(method, params)),
  })
  return { held: response.headers.get('x-sluice-blocks-held'), ...((await response.json()) as Rpc) }
}

const IN_MEMORY = { heldMax: 3, bytesMax: 2 ** 26, diskMax: 100, diskBytesMax: 2 ** 26 }
const hex = (number: number) => `0x${number.toString(16)}`

function openArchive(folder: string, blocksMax = 100): Promise<BlockArchive> {
  return BlockArchive.open({ folder, blocksMax, bytesMax: 2 ** 26 }, { log: silentLogger, clock: systemClock })
}

function start(archive?: BlockArchive): Promise<TestExecution> {
  return startTestExecution({ clock: systemClock, settings: { blocks: IN_MEMORY }, deps: { archive } })
}

function report(service: TestExecution, from: number, to: number): void {
  for (let number = from; number <= to; number++)
    service.source.report(ethBlock({ number, txns: 4, logsPerTxn: 2, contract: number }))
}

describe('the blocks that JSON-RPC serves', () => {
  test('a response names the range; outside of it a block is null', async () => {
    await using service = await start()
    assert.equal((await call(service, 'eth_blockNumber')).held, null, 'before the first block')
    assert.deepEqual(((await getJson(service, '/v1/blocks')).json as RecentBlocks).held, [])
    report(service, 1, 5)
    const gone = await call(service, 'eth_getBlockByNumber', '0x1', false)
    assert.deepEqual([gone.result, gone.held], [null, '3-5'])
    assert.deepEqual(((await getJson(service, '/v1/blocks')).json as RecentBlocks).held, [{ from: 3, to: 5 }])
    const metrics = await (await fetch(`${service.http}/metrics`)).text()
    assert.match(metrics, /^sluice_execution_blocks_held_from 3$/m)
    assert.match(metrics, /^sluice_execution_blocks_held_to 5$/m)
  })

  test('where the service did not run or events were lost, there are several ranges', async () => {
    using folder = makeTestFolder()
    {
      await using archive = await openArchive(folder.path)
      await using service = await start(archive)
      report(service, 1, 4)
    }
    await using archive = await openArchive(folder.path)
    await using service = await start(archive)
    report(service, 8, 9)
    const between = await call(service, 'eth_getBlockByNumber', '0x6', false)
    assert.deepEqual([between.result, between.held], [null, '1-4, 8-9'])
    const logs = await call(service, 'eth_getLogs', { fromBlock: '0x1', toBlock: '0x9' })
    assert.match(logs.error?.message ?? '', /held are blocks 1 to 4, 8 to 9/)
    assert.deepEqual(logs.error?.data, { oldest: '0x1', newest: '0x9' })
  })

  test('a block stays readable by every method when it has left memory, and after a restart', async () => {
    using folder = makeTestFolder()
    const asked = async (service: TestExecution, number: number) => {
      const block = (await call(service, 'eth_getBlockByNumber', hex(number), true)).result as { hash: string }
      return {
        block,
        byHash: (await call(service, 'eth_getBlockByHash', block.hash, true)).result,
        hashes: (await call(service, 'eth_getBlockByNumber', hex(number), false)).result,
        count: (await call(service, 'eth_getBlockTransactionCountByNumber', hex(number))).result,
        txn: (await call(service, 'eth_getTransactionByHash', txnHashOf(number, 2))).result,
        byIndex: (await call(service, 'eth_getTransactionByBlockNumberAndIndex', hex(number), '0x2')).result,
        receipt: (await call(service, 'eth_getTransactionReceipt', txnHashOf(number, 3))).result,
        receipts: (await call(service, 'eth_getBlockReceipts', hex(number))).result,
        logs: (
          await call(service, 'eth_getLogs', {
            fromBlock: hex(number),
            toBlock: hex(number),
            address: addressOf(number),
          })
        ).result,
      }
    }
    await using archive = await openArchive(folder.path)
    await using service = await start(archive)
    report(service, 1, 2)
    const fresh = await asked(service, 1)
    // EIP-1898: the block as an object.
    for (const block of [{ blockHash: fresh.block.hash }, { blockNumber: hex(1) }])
      assert.deepEqual((await call(service, 'eth_getBlockReceipts', block)).result, fresh.receipts)
    for (const [name, value] of Object.entries(fresh)) assert.ok(value, name)
    assert.equal((fresh.logs as unknown[]).length, 8)
    report(service, 3, 20)
    await archive.flushed()
    assert.deepEqual(await asked(service, 1), fresh, 'from disk')
    assert.equal((await call(service, 'eth_blockNumber')).held, '1-20')

    await using later = await openArchive(folder.path)
    await using again = await start(later)
    assert.deepEqual(await asked(again, 1), fresh, 'after a restart')
    assert.equal((await call(again, 'eth_blockNumber')).result, '0x14')
    const all = await call(again, 'eth_getLogs', { fromBlock: 'earliest', toBlock: 'latest' })
    assert.equal((all.result as unknown[]).length, 20 * 8)
    assert.equal((await call(again, 'eth_getTransactionByHash', txnHashOf(77, 1))).result, null)
  })

  test('a block on disk that is damaged is an error, not null, and then not in the index', async () => {
    using folder = makeTestFolder()
    {
      await using archive = await openArchive(folder.path)
      await using service = await start(archive)
      report(service, 1, 1)
    }
    const [name = ''] = readdirSync(folder.path)
    const bytes = readFileSync(folder.file(name))
    bytes[bytes.length - 9] = (bytes[bytes.length - 9] as number) ^ 4
    writeFileSync(folder.file(name), bytes)
    await using archive = await openArchive(folder.path)
    await using service = await start(archive)
    const damaged = await call(service, 'eth_getBlockByNumber', '0x1', false)
    assert.match(damaged.error?.message ?? '', /block 1 cannot be read from disk/)
    assert.equal((await call(service, 'eth_getBlockByNumber', '0x1', false)).result, null)
  })

  test('reading many large blocks from disk blocks the event loop less than 50 ms', async () => {
    using folder = makeTestFolder()
    await using archive = await openArchive(folder.path)
    await using service = await start(archive)
    for (let number = 1; number <= 12; number++)
      service.source.report(ethBlock({ number, txns: 300, logsPerTxn: 5, hasNoBloom: true }))
    await archive.flushed()
    await call(service, 'eth_getBlockByNumber', '0x1', true)
    using turns = watchEventLoop()
    const found = await call(service, 'eth_getLogs', { fromBlock: '0x1', toBlock: '0xc', address: addressOf(99) })
    assert.deepEqual(found.result, [])
    for (let number = 1; number <= 8; number++)
      assert.ok((await call(service, 'eth_getBlockByNumber', hex(number), true)).result)
    assert.ok(turns.longestMs < 50, `${turns.longestMs} ms`)
  })
})
