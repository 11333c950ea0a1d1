import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { describe, test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { type DecodedEvent, decodeEvent, type ExecEvent } from '../../evm/event/exec-event.ts'
import { BlockFold, type BlockSink } from '../../evm/fold/block.ts'
import type { LifecycleChange } from '../../evm/fold/lifecycle-entry.ts'
import { createFoldLog, type FoldLog } from '../../evm/fold/test-fold.ts'
import { createRingReader, type RingReader } from '../../evm/ring/reader.ts'
import { assembleBlock, bloomOf, type DecodedBlock } from '../../evm/test-eth-block.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { openRingFile } from '../../platform/ring-file/reader.ts'
import { createLogger } from '../../platform/telemetry/logger.ts'
import type { RingWriterOptions } from './options.ts'
import { type RingWriterStats, startRingWriter } from './writer-service.ts'

const log = createLogger({ level: 'silent' })

type Recording = { events: ExecEvent[]; fold: BlockFold; log: FoldLog; stats: RingWriterStats }

/** Runs the chain for some blocks on a manual clock and reads all recorded events. */
async function record(blocks: number, options: Omit<RingWriterOptions, 'path'>): Promise<Recording> {
  using folder = makeTestFolder()
  const clock = createManualClock()
  await using writer = await startRingWriter({ path: folder.file('ring'), ...options }, { log, clock })
  const file = openRingFile(writer.path) ?? assert.fail()
  const created = createRingReader(file, { seqno: 1 })
  assert(created.ok)
  const { reader } = created
  const foldLog = createFoldLog()
  const fold = new BlockFold({ seed: 1 }, foldLog.sink satisfies BlockSink)
  const events: ExecEvent[] = []
  for (let block = 0; block < blocks; block++) {
    clock.advance(options.blockMs ?? 400)
    for (const decoded of take(reader, fold)) {
      assert(decoded.ok, decoded.ok ? '' : decoded.reason)
      events.push(decoded.event)
    }
  }
  assert.equal(reader.stats.eventsLost + reader.stats.payloadsLost, 0)
  file.close()
  return { events, fold, log: foldLog, stats: writer.stats() }
}

function take(reader: RingReader, fold: BlockFold): DecodedEvent[] {
  const decoded: DecodedEvent[] = []
  while (reader.poll(0).kind === 'events') {
    fold.fold(reader.batch)
    for (let at = 0; at < reader.batch.count; at++) decoded.push(decodeEvent(reader.batch, at))
  }
  return decoded
}

/** Blocks with a BLOCK_END, in that order. */
function blocksOf(events: readonly ExecEvent[]): DecodedBlock[] {
  const byStart = Map.groupBy(events, ({ blockSeqno }) => blockSeqno)
  byStart.delete(null)
  return [...byStart.values()].flatMap((parts) => assembleBlock(parts) ?? [])
}

const RATES = { abandonedShare: 0.1, invalidShare: 0.1, skippedVoteShare: 0.1 }

describe('the simulated chain', () => {
  test('the same seed gives the same events, another seed different ones', async () => {
    const [first, again, other] = await Promise.all(
      [7, 7, 8].map((seed) => record(20, { seed, tps: 50, ...RATES }).then(({ events }) => events)),
    )
    assert(first !== undefined && first.length > 2000)
    assert.deepEqual(again, first)
    assert.notDeepEqual(other, first)
  })

  test('every block can be folded, and every proposal is finalized or rejected', async () => {
    const { log: message, stats, fold } = await record(300, { seed: 3, tps: 10, ...RATES })
    assert.deepEqual([message.dropped, message.incomplete], [[], []])
    assert.equal(fold.stats.unknownTypes + fold.stats.recordErrors, 0)
    assert.equal(message.contention.length, stats.blocks)
    assert.equal(fold.lifecycle.stats.unknownIds, 0)
    const to = (stage: string): LifecycleChange[] => message.lifecycle.filter(({ to_stage }) => to_stage === stage)
    assert.equal(to('Proposed').length, stats.blocks + stats.invalid)
    assert(stats.abandoned > 5 && stats.invalid > 5 && stats.skippedVotes > 5, JSON.stringify(stats))
    // Abandoned proposals are rejected when another with their number is finalized; the last ones are still pending.
    const waiting = stats.abandoned + stats.invalid - to('Rejected').length
    assert(waiting >= 0 && waiting <= 6, `${waiting} of ${stats.abandoned} abandoned ones are pending`)
    assert.equal(to('Finalized').filter(({ from_stage }) => from_stage === 'Proposed').length, stats.skippedVotes)
    assert(to('Verified').length > 200)
    const verified = to('Verified').map(({ block_number }) => block_number)
    assert.deepEqual(
      verified,
      Array.from(verified, (_, at) => (verified[0] as number) + at),
      'in order, without duplicates',
    )
  })

  test('blocks are consistent: gas, logs and bloom, parent hashes, nonces', async () => {
    const { events } = await record(25, { seed: 5, tps: 80, abandonedShare: 0, invalidShare: 0 })
    const blocks = blocksOf(events)
    assert.equal(blocks.length, 25)
    const nonces = new Map<string, bigint>()
    for (const [at, { start, end, txns }] of blocks.entries()) {
      assert.equal(txns.at(-1)?.cumulativeGas ?? 0n, end.gas_used)
      assert.equal(bloomOf(txns.flatMap(({ logs }) => logs)), end.logs_bloom)
      if (at > 0) assert.equal(start.parent_eth_hash, blocks[at - 1]?.end.eth_block_hash)
      for (const { header } of txns) {
        assert.equal(header.nonce, nonces.get(header.sender) ?? 0n, 'nonces have no gaps')
        nonces.set(header.sender, header.nonce + 1n)
      }
    }
    const txns = blocks.flatMap((block) => block.txns)
    const calls = new Set(txns.map(({ header }) => header.data.slice(0, 10)))
    assert.equal(calls.size, 4, 'transfers, token transfers, swaps and mints')
    assert(txns.some(({ output }) => !output.status && output.log_count === 0))
    assert(events.some((event) => event.name === 'STORAGE_ACCESS' && event.payload.transient))
    assert(events.some((event) => event.name === 'TXN_CALL_FRAME' && event.payload.depth === 2n))
  })

  test('storage values are those the previous transactions wrote', async () => {
    const { events } = await record(30, { seed: 6, tps: 100, abandonedShare: 0, invalidShare: 0 })
    const values = new Map<string, string>()
    const touches = events.filter((event) => event.name === 'STORAGE_ACCESS')
    const inOrder = touches.toSorted(
      (a, b) => (a.blockSeqno ?? 0) - (b.blockSeqno ?? 0) || (a.txnIndex ?? -1) - (b.txnIndex ?? -1),
    )
    let checked = 0
    for (const { payload, txnIndex } of inOrder) {
      if (payload.transient || txnIndex === null) continue
      const slot = payload.address + payload.key
      const before = values.get(slot)
      if (before !== undefined) checked += 1
      if (before !== undefined) assert.equal(payload.start_value, before, `slot ${slot}`)
      values.set(slot, payload.modified ? payload.end_value : payload.start_value)
    }
    assert(checked > 1000, `${checked}`)
  })

  test('efficiency reflects how many transactions ran in parallel', async () => {
    const mean = async (lanes: number): Promise<number> => {
      const { log: message } = await record(12, { seed: 9, tps: 200, lanes })
      return (
        message.contention.reduce((sum, { data }) => sum + data.parallel_efficiency_pct, 0) / message.contention.length
      )
    }
    const [one, four, sixteen] = [await mean(1), await mean(4), await mean(16)]
    assert(one < 1, `one lane: ${one}`)
    assert(four > 50 && four < 75, `four lanes: ${four}`)
    assert(sixteen > four && sixteen < 90, `sixteen lanes with conflicts: ${sixteen}`)
  })

  test('keeps the configured rate, from less than one per block to more than 10,000 per second', async () => {
    for (const [tps, blocks] of [
      [1, 200],
      [12_000, 4],
    ] as const) {
      using folder = makeTestFolder()
      const clock = createManualClock()
      const options = { path: folder.file('ring'), seed: 2, tps, abandonedShare: 0, invalidShare: 0 }
      await using writer = await startRingWriter(options, { log, clock })
      clock.advance(blocks * 400)
      const rate = writer.stats().txns / (blocks * 0.4)
      assert(rate > tps * 0.75 && rate < tps * 1.25, `${rate} instead of ${tps}`)
    }
  })
})

describe('the ring writer', () => {
  test('pauses, resumes, and removes its file on close', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    const path = folder.file('ring')
    const writer = await startRingWriter({ path, tps: 20 }, { log, clock })
    clock.advance(2000)
    const { events } = writer.stats()
    assert(events > 50)
    writer.pause()
    clock.advance(60_000)
    assert.equal(writer.stats().events, events)
    writer.resume()
    clock.advance(400)
    assert(writer.stats().events > events)
    await assert.rejects(startRingWriter({ path }, { log, clock }), /is being written by another process/)
    assert(existsSync(path))
    await writer[Symbol.asyncDispose]()
    assert(!existsSync(path))
    assert.equal(clock.pendingTimers(), 0)
  })

  test('block numbers keep increasing after a restart, contracts stay, transactions are others', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    const numbers: number[] = []
    const contracts: unknown[] = []
    for (let run = 0; run < 2; run++) {
      await using writer = await startRingWriter(
        { path: folder.file('ring'), tps: 1, abandonedShare: 0 },
        { log, clock },
      )
      numbers.push(writer.stats().nextNumber)
      contracts.push([...writer.labels])
      clock.advance(4000)
      numbers.push(writer.stats().nextNumber)
    }
    assert.deepEqual(
      numbers,
      numbers.toSorted((a, b) => a - b),
    )
    assert((numbers[2] as number) >= (numbers[1] as number))
    assert.deepEqual(contracts[1], contracts[0])
    const hashesOf = async (firstNumber: number) => {
      const { events } = await record(3, { tps: 100, firstNumber })
      return blocksOf(events).flatMap(({ txns }) => txns.map(({ header }) => header.txn_hash))
    }
    const [first, second] = [await hashesOf(1000), await hashesOf(2000)]
    assert(first.length > 0 && new Set(first).isDisjointFrom(new Set(second)))
  })
})
