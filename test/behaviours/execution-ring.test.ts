import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { closeSync, copyFileSync, openSync, rmSync, writeSync } from 'node:fs'
import { describe, test } from 'node:test'
import { createPublicClient, http } from 'viem'
import type { LifecycleRecord } from '../../src/contract/execution-routes.ts'
import type { RawEvent } from '../../src/contract/stream-events.ts'
import { createManualClock } from '../../src/core/clock.ts'
import { ExecRecorder } from '../../src/evm/event/recorder.ts'
import { encodeRingHeader, ringFileBytes } from '../../src/evm/ring/layout.ts'
import { RingWriter } from '../../src/evm/ring/writer.ts'
import { recordBlock } from '../../src/evm/test-block.ts'
import { startRingWriter } from '../../src/localnet/ring/writer-service.ts'
import { loadFileMapper } from '../../src/platform/files/mapped.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { createRingFile } from '../../src/platform/ring-file/writer.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { startExecutionOverRing } from '../support/execution/over-ring.ts'
import { createLastEvent, getJson, statusOf } from '../support/execution/start.ts'
import { helloOf, openStream } from '../support/execution/stream-reader.ts'

/** The whole service over a real ring file: a writer, the reader in its thread, the endpoints, and third-party clients. */

const writerDeps = { log: silentLogger, clock: systemClock }

describe('the service over a ring', () => {
  test('viem reads blocks, transactions, receipts and logs from POST /, and they agree', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    await using _writer = await startRingWriter({ path, blockMs: 50, tps: 400, seed: 5 }, writerDeps)
    await using service = await startExecutionOverRing(path)
    await until('blocks are held', async () => (await statusOf(service)).block_number > 0)
    const client = createPublicClient({ transport: http(service.http) })
    await until('some are finalized', async () => {
      const finalized = await client.getBlock({ blockTag: 'finalized' }).catch(() => undefined)
      return finalized !== undefined && finalized.transactions.length > 0
    })
    assert.equal(await client.getChainId(), 20_143)
    const block = await client.getBlock({ blockTag: 'finalized', includeTransactions: true })
    const { number } = block
    assert(number !== null && (await client.getBlockNumber()) >= number)
    assert.deepEqual(await client.getBlock({ blockHash: block.hash ?? '0x', includeTransactions: true }), block)
    assert.equal(await client.getBlockTransactionCount({ blockNumber: number }), block.transactions.length)
    let gas = 0n
    let logs = 0
    for (const [index, transaction] of block.transactions.entries()) {
      assert.deepEqual(await client.getTransaction({ hash: transaction.hash }), transaction)
      assert.deepEqual(await client.getTransaction({ blockNumber: number, index }), transaction)
      const receipt = await client.getTransactionReceipt({ hash: transaction.hash })
      gas += receipt.gasUsed
      assert.equal(receipt.cumulativeGasUsed, gas)
      assert.deepEqual([receipt.blockHash, receipt.from], [block.hash, transaction.from])
      assert(receipt.logs.every(({ logIndex }, at) => logIndex === logs + at))
      logs += receipt.logs.length
    }
    assert.equal(gas, block.gasUsed)
    const found = await client.getLogs({ fromBlock: number, toBlock: number })
    assert.equal(found.length, logs)
    assert(logs > 0)
    const [one] = found
    const same = await client.getLogs({
      blockHash: block.hash ?? '0x',
      ...(one === undefined ? {} : { address: one.address }),
    })
    assert(same.length > 0 && same.every(({ address }) => address === one?.address))
    await assert.rejects(client.getLogs({ fromBlock: 1n, toBlock: 2n }), /held are blocks \d+ to \d+/)
    await assert.rejects(client.getBalance({ address: one?.address ?? '0x' }), /Method not found/)
  })

  test('the stream carries all kinds, REST agrees with it, and raw events name their transactions', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    // The ring appears after the service has started.
    await using service = await startExecutionOverRing(path)
    await until('its absence is reported', () => /no event ring/.test(service.execution.status().failure ?? ''))
    await using writer = await startRingWriter({ path, blockMs: 50, tps: 400, seed: 6 }, writerDeps)
    await using client = await openStream(`${service.ws}/v1/ws`)
    await until('all four kinds came', () =>
      ['TPS', 'ContentionData', 'TopAccesses', 'Lifecycle'].every((kind) =>
        client.frames.some((frame) => kind in frame),
      ),
    )
    assert.equal(service.execution.status().failure, undefined)
    const seen = client.frames.flatMap((frame) => ('Lifecycle' in frame ? [frame.Lifecycle] : []))
    const verified = () =>
      client.frames.find((frame) => 'Lifecycle' in frame && frame.Lifecycle.to_stage === 'Verified')
    await until('a block is verified', () => verified() !== undefined)
    const last = verified()
    assert(last !== undefined && 'Lifecycle' in last && seen.length > 0)
    const { json } = await getJson(service, `/v1/blocks/${last.Lifecycle.block_number}/lifecycle`)
    const record = json as LifecycleRecord
    assert.deepEqual({ ...record, ...last.Lifecycle }, record, 'every field of the frame is in the record')
    assert.deepEqual(Object.keys(record.stage_timings_ms).at(-1), 'Verified')

    const subscribe = encodeURIComponent(
      JSON.stringify({ events: ['TxnLog', 'BlockStart'], filters: [{ events: ['TxnLog'], txn_index: { max: 2 } }] }),
    )
    await using raw = await openStream(`${service.ws}/v1/ws?subscribe=${subscribe}`)
    const events = (): RawEvent[] => raw.frames.flatMap((frame) => ('Events' in frame ? frame.Events : []))
    await until('raw events came', () => events().filter(({ event_name }) => event_name === 'TxnLog').length > 5)
    const logs = events().filter(({ event_name }) => event_name === 'TxnLog')
    assert(
      logs.every(
        ({ txn_idx, txn_hash }) => txn_idx !== null && txn_idx <= 2 && /^0x[0-9a-f]{64}$/.test(txn_hash ?? ''),
      ),
    )
    assert(events().some(({ event_name }) => event_name === 'BlockStart'))

    // The node restarts: the ring is replaced, and the stream reports it and continues.
    await writer[Symbol.asyncDispose]()
    await using _second = await startRingWriter({ path, blockMs: 50, tps: 400, seed: 8 }, writerDeps)
    await until('the restart is reported', () => client.texts.some((text) => text.includes('"ring_restart"')))
    const before = client.frames.length
    await until('the stream continues', () => client.frames.slice(before).some((frame) => 'ContentionData' in frame))
    const seqs = client.frames.slice(1 + helloOf(client).snapshot).map(({ seq }) => seq)
    const numbered = seqs.filter((seq) => seq > 0)
    assert(numbered.every((seq, at) => at === 0 || seq > (numbered[at - 1] as number)))
  })

  test('refuses a ring of an unknown schema with its hash, and reads the valid one that replaces it', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    {
      await using _writer = await startRingWriter({ path, blockMs: 50, tps: 10, seed: 5 }, writerDeps)
      copyFileSync(path, folder.file('other'))
    }
    const handle = openSync(folder.file('other'), 'r+')
    writeSync(handle, Buffer.alloc(32, 0xcd), 0, 32, 8)
    closeSync(handle)
    await using service = await startExecutionOverRing(folder.file('other'))
    await until('the hash is reported', () => service.execution.status().failure?.includes('cd'.repeat(32)) === true)
    assert.equal((await statusOf(service)).status, 'healthy', 'the first 10 s count from the start')
    rmSync(folder.file('other'))
    await using _good = await startRingWriter({ path: folder.file('other'), blockMs: 50, tps: 10, seed: 5 }, writerDeps)
    await until('the valid ring is read', async () => (await statusOf(service)).block_number > 0)
    assert.equal(service.execution.status().failure, undefined)
  })

  test('R13: handles a block of 25,000 transactions', async () => {
    using folder = makeTestFolder()
    const geometry = { capacity: 2 ** 19, payloadBytes: 2 ** 27, contextBytes: 0 }
    const mapper = await loadFileMapper()
    const image = { bytes: ringFileBytes(geometry), header: encodeRingHeader(geometry), mapper, isMapped: false }
    using file = createRingFile(folder.file('ring'), image)
    const recorder = new ExecRecorder(new RingWriter({ geometry }, file))
    const record = (number: number, count: number): void => {
      const txns = Array.from({ length: count }, (_, at) => ({
        accesses: [{ contract: 1, slot: at % 100, isModified: at % 100 === 0 }],
      }))
      recordBlock(recorder, { number, txns })
      recorder.flush()
    }
    record(1, 1)
    await using service = await startExecutionOverRing(folder.file('ring'))
    await until('the ring is read', async () => (await statusOf(service)).block_number === 1)
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=ContentionData`)
    await client.until(1)
    record(2, 25_000)
    record(3, 1)
    const counts = () =>
      client.frames.flatMap((frame) =>
        'ContentionData' in frame ? [[frame.ContentionData.block_number, frame.ContentionData.total_txn_count]] : [],
      )
    await until('both blocks were reported', () => counts().some(([number]) => number === 3), 30_000)
    assert.deepEqual(counts().slice(-2), [
      [2, 25_000],
      [3, 1],
    ])
    const { status, json } = await getJson(service, '/v1/blocks/2/contention')
    assert.deepEqual([status, (json as { total_txn_count: number }).total_txn_count], [200, 25_000])
  })

  test('a node that has died left events in its ring: they are served, but the source is unhealthy until a new one comes', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    const HOUR_MS = 3_600_000
    // Recorded an hour ago; nothing is recorded until this clock is advanced.
    const clock = createManualClock(Date.now() - HOUR_MS)
    await using _writer = await startRingWriter({ path, blockMs: 50, tps: 400, seed: 5 }, { log: silentLogger, clock })
    clock.advance(500)
    const lastEvent = createLastEvent(systemClock, Date.now() - HOUR_MS)
    await using service = await startExecutionOverRing(path, { lastEvent })
    await until('the old events are read', async () => (await statusOf(service)).ring_seqno > 0)
    const health = async () => (await getJson(service, '/health')).status
    assert.equal(await health(), 503)
    assert.equal((await statusOf(service)).status, 'degraded')
    clock.advance(100)
    await until('a new event was read', async () => (await health()) === 200)
  })

  test('R17: promtool accepts the metrics, and every name has the prefix', async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    await using _writer = await startRingWriter({ path, blockMs: 50, tps: 400, seed: 5 }, writerDeps)
    await using service = await startExecutionOverRing(path)
    await using client = await openStream(`${service.ws}/v1/ws`)
    await client.until(10)
    const text = await (await fetch(`${service.http}/metrics`)).text()
    execFileSync('promtool', ['check', 'metrics'], { input: text })
    const names = [...text.matchAll(/^# TYPE (\S+)/gm)].map(([, name]) => name)
    assert(names.length > 25 && names.every((name) => name?.startsWith('sluice_execution_')))
    assert(!/_(ms|ns|millis)\b/.test(names.join(' ')))
    const open = await fetch(`${service.http}/metrics`, { headers: { accept: 'application/openmetrics-text' } })
    assert.match(await open.text(), /# EOF\n$/)
  })
})
