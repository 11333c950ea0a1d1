import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { recordedDataFolder, skipWithoutRecordedData } from '../../test/recorded-data.ts'
import { headerJson } from './eth-json.ts'
import type { ExecEvent } from './event/exec-event.ts'
import { BlockFold } from './fold/block.ts'
import { createFoldLog, type FoldLog, foldAll } from './fold/test-fold.ts'
import { createRingReader, type RingReader } from './ring/reader.ts'
import { createMemorySource } from './ring/test-memory-ring.ts'
import { decodeAll } from './ring/test-ring.ts'
import { assembleBlock, bloomOf, type DecodedBlock, logOf, receiptOf, transactionOf } from './test-eth-block.ts'

/** One block of Ethereum mainnet, executed and recorded by a Monad node, with reference figures and JSON-RPC responses from other programs. */
const folder = join(recordedDataFolder, 'rings')
const skip = skipWithoutRecordedData()
let image: Uint8Array | undefined

function openRecording(): RingReader {
  image ??= zstdDecompressSync(readFileSync(join(folder, 'emn-1b-15m.snapshot.zst')))
  const created = createRingReader(createMemorySource(image), 'oldest')
  assert(created.ok, created.ok ? '' : created.message)
  return created.reader
}

function readJson(name: string): Record<string, unknown> {
  return JSON.parse(readFileSync(join(folder, name), 'utf8')) as Record<string, unknown>
}

function readEvents(): ExecEvent[] {
  return decodeAll(openRecording()).map((decoded) =>
    decoded.ok ? decoded.event : assert.fail(JSON.stringify(decoded)),
  )
}

function readBlock(): DecodedBlock {
  return assembleBlock(readEvents()) ?? assert.fail('the block is not whole')
}

function foldRecording(seed: number): FoldLog & { fold: BlockFold } {
  const log = createFoldLog()
  const fold = new BlockFold({ seed }, log.sink)
  foldAll(fold, openRecording())
  return { ...log, fold }
}

describe('the recorded block', { skip }, () => {
  test('decodes completely, with the expected number of events of each type', () => {
    const reader = openRecording()
    assert.deepEqual(reader.geometry, { capacity: 65_536, payloadBytes: 134_217_728, contextBytes: 0 })
    const counts = Object.fromEntries(
      Map.groupBy(readEvents(), ({ name }) => name)
        .entries()
        .map(([name, events]) => [name, events.length]),
    )
    assert.deepEqual(counts, {
      BLOCK_START: 1,
      BLOCK_PERF_EVM_ENTER: 1,
      BLOCK_PERF_EVM_EXIT: 1,
      BLOCK_END: 1,
      BLOCK_QC: 1,
      BLOCK_FINALIZED: 1,
      TXN_HEADER_START: 229,
      TXN_HEADER_END: 229,
      TXN_PERF_EVM_ENTER: 229,
      TXN_PERF_EVM_EXIT: 229,
      TXN_EVM_OUTPUT: 229,
      TXN_LOG: 483,
      TXN_CALL_FRAME: 1179,
      TXN_END: 229,
      ACCOUNT_ACCESS_LIST_HEADER: 231,
      ACCOUNT_ACCESS: 1079,
      STORAGE_ACCESS: 2245,
    })
  })

  test('has its sequence numbers, times, scopes and flags', () => {
    const events = readEvents()
    const seqnoOf = (name: string): number | undefined => events.find((event) => event.name === name)?.seqno
    assert.deepEqual(['BLOCK_START', 'BLOCK_END', 'BLOCK_QC', 'BLOCK_FINALIZED'].map(seqnoOf), [1, 6595, 6596, 6597])
    assert.equal(events[0]?.timeNs, 1_769_023_528_961_704_761n)
    assert.equal(events[6594]?.timeNs, 1_769_023_529_082_930_895n)
    const inversions = events.filter(
      (event, at) => at > 0 && event.timeNs < (events[at - 1] as ExecEvent).timeNs,
    ).length
    assert.equal(inversions, 8)
    for (const { seqno, blockSeqno } of events) assert.equal(blockSeqno, seqno <= 6595 ? 1 : null)
    const storage = events.filter((event) => event.name === 'STORAGE_ACCESS')
    assert.deepEqual(
      [
        storage.filter(({ payload }) => payload.modified).length,
        storage.filter(({ payload }) => payload.transient).length,
      ],
      [754, 0],
    )
    const rounds = events.flatMap((event) =>
      event.name === 'BLOCK_START' || event.name === 'BLOCK_QC' ? [event.payload.round] : [],
    )
    assert.deepEqual(rounds, [15_000_001n, 15_000_002n])
  })

  test('is consistent: gas, number of transactions, bloom of all logs', () => {
    const { start, end, txns } = readBlock()
    assert.equal(start.chain_id, 1n)
    assert.equal(start.id, `0x${(15_000_001).toString(16).padStart(64, '0')}`)
    assert.equal(end.eth_block_hash, '0x7a7d7c23bb8c5e340eead8537bb5e2f3e125bfa0b588cf07e4aa140ba374295e')
    assert.equal(end.gas_used, 22_516_578n)
    assert.equal(txns.at(-1)?.cumulativeGas, end.gas_used)
    assert.deepEqual(
      [0, 2].map((type) => txns.filter(({ header }) => header.txn_type === type).length),
      [2, 227],
    )
    // Hashes of 483 addresses and their topics, combined by the node itself.
    assert.equal(bloomOf(txns.flatMap(({ logs }) => logs)), end.logs_bloom)
  })

  test('renders the recorded JSON-RPC responses, field by field', () => {
    const block = readBlock()
    // An estimate of memory, neither the size of the block nor of its header.
    const { size, ...header } = readJson('json-rpc-samples/0.header.json')
    assert(size !== undefined)
    assert.deepEqual(headerJson(block), header)
    assert.deepEqual(transactionOf(block, 0), readJson('json-rpc-samples/0.tx.0.json'))
    assert.deepEqual(receiptOf(block, 0), readJson('json-rpc-samples/0.tx-receipt.0.json'))
    assert.deepEqual(logOf(block, 1, 0), readJson('json-rpc-samples/0.log.0.json'))
    const { blockId } = readJson('json-rpc-samples/0.monad-header.json')
    assert.equal(block.start.id, blockId)
  })

  test('has the reference metrics', () => {
    const reference = readJson('emn-1b.reference-metrics.json') as {
      contention: Record<string, unknown>[]
      exact_account_top10: [string, number][]
      exact_storage_top10: [[string, string], number][]
      distinct_accounts: number
      distinct_storage: number
    }
    const {
      total_tx_time_ns_perf,
      parallel_efficiency_pct_perf,
      evm_wall_ns,
      contended_with_a_writer,
      total_tx_time_ns_hdr_to_end: _older,
      parallel_efficiency_pct_hdr: _olderPct,
      ...same
    } = reference.contention[0] ?? {}
    for (const seed of [0, 1, 0xdeadbeef]) {
      const { contention, tps, lifecycle, fold, order } = foldRecording(seed)
      assert.deepEqual(order, [
        'Proposed 15000001',
        'TPS 15000001',
        'ContentionData 15000001',
        'Voted 15000001',
        'Finalized 15000001',
      ])
      assert.deepEqual(tps, [undefined])
      assert.deepEqual(contention[0]?.data, {
        ...same,
        block_id: lifecycle[0]?.block_hash,
        total_tx_time_ns: total_tx_time_ns_perf,
        parallel_efficiency_pct: parallel_efficiency_pct_perf,
      })
      const { extras } = contention[0] ?? assert.fail()
      assert.deepEqual([extras.evm_time_ns, extras.contended_with_writer], [evm_wall_ns, contended_with_a_writer])
      assert.equal(
        extras.waves.reduce((sum, txns) => sum + txns, 0),
        229,
      )

      // 484 accounts fit 1,000 counters and must be exact; 1,749 slots do not, and stay within the bounds.
      const { account, storage } = fold.topAccesses
      assert.deepEqual([account.seen, account.table.size, account.errorMax], [1079, reference.distinct_accounts, 0])
      const top = fold.topAccesses.publish()
      assert.deepEqual(
        top.account.map(({ key, count }) => [key, count]),
        reference.exact_account_top10,
      )
      assert.equal(storage.seen, 2245)
      assert(storage.errorMax > 0 && storage.errorMax <= 2245 / 1000)
      for (const { count, error } of storage.top(1000)) assert(error <= storage.errorMax && count > error)
      const exact = new Map(reference.exact_storage_top10.map(([key, count]) => [key.join(), count]))
      for (const { key, count } of top.storage) {
        const truth = exact.get(key.join())
        if (truth !== undefined) assert(truth <= count && count <= truth + storage.errorMax, key.join())
      }
    }
  })
})
