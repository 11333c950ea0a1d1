import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { createSeededRandom, randomInt } from '../../core/random.ts'
import { seedFor } from '../../core/test-seed.ts'
import { ExecRecorder } from '../event/recorder.ts'
import { EVENT } from '../event/type.ts'
import { createSmallRing, openReader } from '../ring/test-ring.ts'
import { addressOf, idOf, recordBlock, recordOpenBlock, slotOf, type TestBlock } from '../test-block.ts'
import { BlockFold } from './block.ts'
import { createFoldLog, createFoldRing, foldBlocks } from './test-fold.ts'

const TXN = { accesses: [{ contract: 1, slot: 1 }] }
const at = { timeNs: 1_900_000_000_000_000_000n }

function blockOf(number: number, txns = 2): TestBlock {
  return { number, txns: Array.from({ length: txns }, () => TXN) }
}

describe('order of results', () => {
  test('reports Proposed at the start, TPS before ContentionData at the end, then consensus stages', () => {
    const { recorder, run } = createFoldRing()
    recordBlock(recorder, blockOf(5))
    recorder.add('BLOCK_QC', { id: idOf(5), block_number: 5n }, at)
    recorder.add('BLOCK_FINALIZED', { id: idOf(5), block_number: 5n }, at)
    recorder.add('BLOCK_VERIFIED', { block_number: 5n }, at)
    assert.deepEqual(run().order, ['Proposed 5', 'TPS 5', 'ContentionData 5', 'Voted 5', 'Finalized 5', 'Verified 5'])
  })

  test('reports rejected siblings after the finalized block', () => {
    const { recorder, run } = createFoldRing()
    recordBlock(recorder, { ...blockOf(5), fork: 1 })
    recordBlock(recorder, { ...blockOf(5), fork: 2 })
    recordBlock(recorder, { ...blockOf(5), fork: 3 })
    recorder.add('BLOCK_FINALIZED', { id: idOf(5, 2), block_number: 5n }, at)
    const { lifecycle, tps } = run()
    assert.deepEqual(
      lifecycle.slice(3).map(({ block_hash, to_stage }) => [block_hash, to_stage]),
      [
        [idOf(5, 2), 'Finalized'],
        [idOf(5, 1), 'Rejected'],
        [idOf(5, 3), 'Rejected'],
      ],
    )
    assert.deepEqual(tps, [undefined, undefined, undefined], 'one number is no whole window')
  })
})

describe('blocks without a regular end', () => {
  test('a block without an end is dropped when the next one starts', () => {
    const { recorder, run } = createFoldRing()
    recordOpenBlock(recorder, blockOf(5))
    recordBlock(recorder, blockOf(6))
    const { order, tps } = run()
    assert.deepEqual(order, ['Proposed 5', 'dropped 5 unterminated', 'Proposed 6', 'TPS 6', 'ContentionData 6'])
    assert.deepEqual(tps, [undefined])
  })

  test('rejects an invalid block, also directly after its start', () => {
    const { recorder, run } = createFoldRing()
    recorder.add('BLOCK_START', { id: idOf(5), block_number: 5n }, at)
    recorder.add('BLOCK_REJECT', { reason: 3 }, at)
    recordBlock(recorder, blockOf(6))
    assert.deepEqual(run().order, ['Proposed 5', 'Rejected 5', 'Proposed 6', 'TPS 6', 'ContentionData 6'])
  })

  test('rejects the block of an invalid transaction', () => {
    const { recorder, run, fold } = createFoldRing()
    recorder.add('BLOCK_START', { id: idOf(5), block_number: 5n, txn_count: 1n }, at)
    recorder.add('TXN_PERF_EVM_ENTER', {}, { ...at, txnIndex: 0 })
    recorder.add('TXN_HEADER_START', {}, { ...at, txnIndex: 0 })
    recorder.add('TXN_HEADER_END', {}, { ...at, txnIndex: 0 })
    recorder.add('TXN_REJECT', { reason: 3 }, { ...at, txnIndex: 0 })
    recorder.add('EVM_ERROR', { domain_id: 1n, status_code: -1n }, { ...at, txnIndex: 0 })
    recorder.add('EVM_ERROR', { domain_id: 1n, status_code: -1n }, at)
    recordBlock(recorder, blockOf(6))
    assert.deepEqual(run().order, ['Proposed 5', 'Rejected 5', 'Proposed 6', 'TPS 6', 'ContentionData 6'])
    assert.equal(fold.stats.txnsRejected, 1)
  })
})

describe('lost and malformed events', () => {
  test('a gap drops the open block; consensus events are processed at once, blocks from the next BLOCK_START on', () => {
    const { recorder, run, fold, log } = createFoldRing()
    recordOpenBlock(recorder, blockOf(5))
    run()
    assert.equal(fold.gap(), 1)
    assert.equal(fold.gap(), 0)
    recorder.add('BLOCK_END', { gas_used: 9n }, at)
    recorder.add('BLOCK_FINALIZED', { id: idOf(5), block_number: 5n }, at)
    recordBlock(recorder, blockOf(6))
    run()
    assert.deepEqual(log.order, [
      'Proposed 5',
      'dropped 5 gap',
      'Finalized 5',
      'Proposed 6',
      'TPS 6',
      'ContentionData 6',
    ])
    assert.equal(log.lifecycle[1]?.gas_used, 9, 'the end of a dropped block still has its gas')
    assert.deepEqual(log.tps, [undefined])
  })

  test('a restart resets windows and counters and keeps known blocks', () => {
    const { recorder, run, fold, log } = createFoldRing()
    for (const number of [3, 4, 5]) recordBlock(recorder, blockOf(number, 10))
    run()
    assert.equal(fold.tps.value, 25)
    assert.equal(fold.restart(), 0)
    assert.deepEqual([fold.tps.value, fold.topAccesses.seen], [undefined, 0])
    recordBlock(recorder, blockOf(5, 10))
    run()
    assert.deepEqual(log.order.slice(-5), ['Proposed 5', 'TPS 5', 'ContentionData 5', 'TPS 5', 'ContentionData 5'])
    assert.deepEqual(log.tps, [undefined, undefined, 25, undefined])
    assert.equal(log.contention.at(-1)?.data.replaces_block_id, undefined, 'the same proposal again')
  })

  const RECORD_ERROR = { error_type: 2, dropped_event_type: EVENT.TXN_LOG, truncated_payload: '0x' as const }
  const damages: [string, (ring: ReturnType<typeof createFoldRing>) => void, string[]][] = [
    [
      'an event that could not be recorded',
      ({ recorder }) => recorder.add('RECORD_ERROR', RECORD_ERROR, { ...at, txnIndex: 0 }),
      ['TPS 5', 'incomplete 5 record-error'],
    ],
    [
      'a transaction that could not be recorded still counts',
      ({ recorder }) =>
        recorder.add(
          'RECORD_ERROR',
          { ...RECORD_ERROR, dropped_event_type: EVENT.TXN_HEADER_START },
          { ...at, txnIndex: 0 },
        ),
      ['TPS 5', 'incomplete 5 record-error'],
    ],
    [
      'an announced log that never came',
      ({ recorder }) => recorder.add('TXN_EVM_OUTPUT', { log_count: 1 }, { ...at, txnIndex: 0 }),
      ['TPS 5', 'incomplete 5 shortfall'],
    ],
    [
      'an announced account that never came',
      ({ recorder }) => recorder.add('ACCOUNT_ACCESS_LIST_HEADER', { entry_count: 1 }, { ...at, txnIndex: 0 }),
      ['TPS 5', 'incomplete 5 shortfall'],
    ],
    [
      'an announced transient slot that never came',
      ({ recorder }) => recorder.add('ACCOUNT_ACCESS', { transient_count: 1 }, { ...at, txnIndex: 0 }),
      ['TPS 5', 'incomplete 5 shortfall'],
    ],
    [
      'a transient slot in place of an announced one that is not',
      ({ recorder }) => {
        recorder.add('ACCOUNT_ACCESS', { storage_key_count: 1 }, { ...at, txnIndex: 0 })
        recorder.add('STORAGE_ACCESS', { transient: true }, { ...at, txnIndex: 0 })
      },
      ['TPS 5', 'incomplete 5 shortfall'],
    ],
    [
      'an event of a block with the same lower half of its number',
      ({ writer, recorder }) => {
        const payload = new Uint8Array(0)
        const blockSeqno = 2 ** 32 + 1
        recorder.flush()
        writer.record({ type: EVENT.TXN_END, payload, ...at, blockSeqno, txnIndex: 0, accountIndex: 0 })
      },
      ['dropped 5 misplaced-event'],
    ],
    [
      'a payload shorter than its type',
      ({ recorder }) => recorder.addEncoded(EVENT.STORAGE_ACCESS, new Uint8Array(123), { ...at, txnIndex: 0 }),
      ['dropped 5 malformed'],
    ],
    [
      'a transaction beyond the announced ones',
      ({ recorder }) => recorder.add('TXN_END', {}, { ...at, txnIndex: 2 }),
      ['dropped 5 misplaced-event'],
    ],
    [
      'an unknown type is skipped',
      ({ recorder }) => recorder.addEncoded(25, new Uint8Array(8), at),
      ['TPS 5', 'ContentionData 5'],
    ],
    [
      'a consensus event that could not be recorded is none of the block',
      ({ writer, recorder }) => {
        recorder.flush()
        const payload = new Uint8Array(16)
        writer.record({ type: EVENT.RECORD_ERROR, payload, ...at, blockSeqno: 0, txnIndex: -1, accountIndex: 0 })
      },
      ['TPS 5', 'ContentionData 5'],
    ],
  ]
  for (const [name, damage, order] of damages) {
    test(name, () => {
      const ring = createFoldRing()
      recordOpenBlock(ring.recorder, blockOf(5))
      damage(ring)
      ring.recorder.add('BLOCK_END', {}, at)
      recordBlock(ring.recorder, blockOf(6))
      assert.deepEqual(ring.run().order, ['Proposed 5', ...order, 'Proposed 6', 'TPS 6', 'ContentionData 6'])
    })
  }

  test('a block with a missing announced transaction is incomplete', () => {
    const { recorder, run } = createFoldRing()
    recorder.add('BLOCK_START', { id: idOf(5), block_number: 5n, txn_count: 1n }, at)
    recorder.add('BLOCK_END', {}, at)
    assert.deepEqual(run().order, ['Proposed 5', 'TPS 5', 'incomplete 5 shortfall'])
  })

  test('a block above the transaction limit has no figures and allocates no memory for it', () => {
    const { recorder, run } = createFoldRing()
    recorder.add('BLOCK_START', { id: idOf(5), block_number: 5n, txn_count: 2n ** 50n }, at)
    recorder.add('TXN_HEADER_START', {}, { ...at, txnIndex: 2 ** 40 })
    recorder.add('BLOCK_END', {}, at)
    assert.deepEqual(run().order, ['Proposed 5', 'TPS 5', 'incomplete 5 shortfall'])
  })

  test('a lost payload drops its block', () => {
    const ring = createSmallRing({ capacity: 256, payloadBytes: 2 ** 14, windowStepBytes: 2 ** 10 })
    const recorder = new ExecRecorder(ring.writer)
    const log = createFoldLog()
    const fold = new BlockFold({ seed: 1 }, log.sink)
    const reader = openReader(ring.source, { seqno: 1 }, { eventsMax: 4 })
    recordBlock(recorder, blockOf(5))
    recorder.flush()
    reader.poll(0)
    fold.fold(reader.batch)
    for (let number = 6; number <= 12; number++) recordBlock(recorder, blockOf(number))
    recorder.flush()
    while (reader.poll(0).kind === 'events') fold.fold(reader.batch)
    assert.deepEqual(log.order.slice(0, 2), ['Proposed 5', 'dropped 5 payload-lost'])
    assert.deepEqual(log.order.slice(-3), ['Proposed 12', 'TPS 12', 'ContentionData 12'])
    assert.equal(reader.stats.eventsLost, 0)
    assert(reader.stats.payloadsLost > 0)
  })
})

describe('transaction times', () => {
  test('without perf markers a transaction counts from header to end', () => {
    const { recorder, run } = createFoldRing()
    const startNs = 1_800_000_000_000_000_000n
    recorder.add('BLOCK_START', { id: idOf(5), block_number: 5n, txn_count: 2n }, { timeNs: startNs })
    for (const txnIndex of [0, 1]) {
      // The second one ends before it begins, as clocks of several threads may show.
      const spanNs = txnIndex === 0 ? 700n : -50n
      recorder.add('TXN_HEADER_START', {}, { timeNs: startNs + 100n, txnIndex })
      recorder.add('TXN_END', {}, { timeNs: startNs + 100n + spanNs, txnIndex })
    }
    recorder.add('BLOCK_END', {}, { timeNs: startNs - 5n })
    const { contention } = run()
    assert.deepEqual([contention[0]?.data.total_tx_time_ns, contention[0]?.data.block_wall_time_ns], [700, 0])
    assert.deepEqual([contention[0]?.extras.evm_time_ns, contention[0]?.extras.commit_time_ns], [null, null])
  })

  test('the older and the current order of perf markers give the same figures', () => {
    const [older, current] = [true, false].map(
      (hasOlderOrder) => foldBlocks([{ ...blockOf(5, 4), hasOlderOrder }]).contention,
    )
    assert.deepEqual(older, current)
  })
})

test('top accesses count every access, also of prologue and epilogue, and are exact while counters are free', () => {
  const { recorder, run, fold } = createFoldRing()
  const hot = { contract: 9, slot: 3 }
  recordBlock(recorder, { ...blockOf(5, 3), prologue: [hot], epilogue: [hot, { contract: 2, slot: 1 }] })
  run()
  assert.deepEqual(fold.topAccesses.publish(), {
    account: [
      { key: addressOf(1), count: 3 },
      { key: addressOf(9), count: 2 },
      { key: addressOf(2), count: 1 },
    ],
    storage: [
      { key: [addressOf(1), slotOf(1)], count: 3 },
      { key: [addressOf(9), slotOf(3)], count: 2 },
      { key: [addressOf(2), slotOf(1)], count: 1 },
    ],
  })
  assert.deepEqual([fold.topAccesses.seen, fold.topAccesses.account.errorMax], [12, 0])
})

test('accesses outside a block are counted, also more than one run of them', () => {
  const { recorder, run, fold } = createFoldRing()
  for (let round = 0; round < 700; round++) {
    for (const contract of [1, 2]) recorder.add('ACCOUNT_ACCESS', { address: addressOf(contract) }, at)
    recorder.add('STORAGE_ACCESS', { address: addressOf(1), key: slotOf(round % 2) }, at)
  }
  run()
  assert.deepEqual(fold.topAccesses.publish(), {
    account: [1, 2].map((contract) => ({ key: addressOf(contract), count: 700 })),
    storage: [0, 1].map((slot) => ({ key: [addressOf(1), slotOf(slot)], count: 350 })),
  })
})

test('with a slow reader every block has exact figures or none, and the next complete block is exact', () => {
  let folded = 0
  let dropped = 0
  fc.assert(
    fc.property(fc.nat(), (seed) => {
      const random = createSeededRandom(seed)
      const access = () => ({
        contract: randomInt(random, 4),
        slot: randomInt(random, 6),
        isModified: random.float() < 0.5,
      })
      const txn = () => ({ accesses: Array.from({ length: randomInt(random, 5) }, access), logs: randomInt(random, 3) })
      const blocks: TestBlock[] = Array.from({ length: 40 }, (_, number) => ({
        number: number + 1,
        txns: Array.from({ length: 1 + randomInt(random, 4) }, txn),
      }))
      const truth = foldBlocks(blocks).contention
      const ring = createSmallRing({ capacity: 256, payloadBytes: 2 ** 15, windowStepBytes: 2 ** 11 })
      const recorder = new ExecRecorder(ring.writer)
      const log = createFoldLog()
      const fold = new BlockFold({ seed }, log.sink)
      const reader = openReader(ring.source, { seqno: 1 }, { eventsMax: 8 })
      const poll = (): boolean => {
        const result = reader.poll(0)
        if (result.kind === 'events') fold.fold(reader.batch)
        if (result.kind === 'gap') fold.gap()
        return result.kind !== 'idle'
      }
      for (const block of blocks) {
        recordBlock(recorder, block)
        recorder.flush()
        for (let polls = randomInt(random, 6); polls > 0; polls--) poll()
      }
      while (poll());
      for (const { data, extras } of log.contention) {
        const expected = truth.find((one) => one.data.block_number === data.block_number)
        assert.deepEqual({ data, extras }, expected, `block ${data.block_number}`)
      }
      assert.equal(log.contention.at(-1)?.data.block_number, 40, 'the last block is whole')
      assert.equal(reader.stats.eventsRead + reader.stats.eventsLost, ring.writer.lastSeqno)
      assert.deepEqual(log.incomplete, [])
      folded += log.contention.length
      dropped += log.dropped.length
    }),
    seedFor('slow reader', 25),
  )
  assert(folded > 100 && dropped > 5, `${folded} folded, ${dropped} dropped`)
})
