import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../test/support/process/property.ts'
import { finish } from '../core/work.ts'
import { EthBlock } from './eth-block.ts'
import { blockPieces, type JsonPieces, receiptPieces, receiptsPieces, transactionText } from './eth-text.ts'
import { decodeEvent, type ExecEvent } from './event/exec-event.ts'
import type { ExecRecorder } from './event/recorder.ts'
import { createFoldRing } from './fold/test-fold.ts'
import { EventBatch } from './ring/event-batch.ts'
import { DESCRIPTOR, DESCRIPTOR_BYTES } from './ring/layout.ts'
import { openReader } from './ring/test-ring.ts'
import { addressOf, slotOf } from './test-block.ts'
import { assembleBlock, logOf, receiptOf, transactionOf } from './test-eth-block.ts'

const admitAll = () => {}
const textOf = (pieces: JsonPieces): unknown => JSON.parse([...pieces].map((piece) => piece ?? '').join(''))

/** A copy of recorded events, as stored for a block. */
function batchOf(record: (recorder: ExecRecorder) => void): EventBatch {
  const { recorder, source } = createFoldRing()
  record(recorder)
  recorder.flush()
  const reader = openReader(source, { seqno: 1 }, { eventsMax: 2 ** 12 })
  assert.equal(reader.poll(0).kind, 'events')
  const { batch } = reader
  const memory = { descriptors: batch.descriptorBytes.slice(0, batch.count * 64), payloads: batch.payloadBytes.slice() }
  return EventBatch.over({ ...memory, payloadAt: batch.payloadAt.slice(0, batch.count) })
}

function without(batch: EventBatch, gone: number): EventBatch {
  const kept = Array.from({ length: batch.count }, (_, at) => at).filter((at) => at !== gone)
  const descriptors = Buffer.concat(kept.map((at) => batch.descriptorBytes.subarray(at * 64, at * 64 + 64)))
  const payloadAt = Int32Array.from(kept, (at) => batch.payloadAt[at] as number)
  return EventBatch.over({ descriptors: new Uint8Array(descriptors), payloads: batch.payloadBytes, payloadAt })
}

const eventsOf = (batch: EventBatch): ExecEvent[] =>
  Array.from({ length: batch.count }, (_, at) => decodeEvent(batch, at)).map((decoded) =>
    decoded.ok ? decoded.event : assert.fail(decoded.reason),
  )

type Txn = { logs: { contract: number; topics: number[] }[]; keys: number; auths: number; type: number }

function recordTxns(recorder: ExecRecorder, txns: readonly Txn[]): void {
  const at = { timeNs: 1n }
  recorder.add('BLOCK_START', { number: 9n, txn_count: BigInt(txns.length), base_fee_per_gas: 3n }, at)
  const steps = txns.map(({ logs, keys, auths, type }, txnIndex) => {
    const position = { ...at, txnIndex }
    const lists = { access_list_count: 1, auth_list_count: auths }
    const header = { txn_hash: slotOf(txnIndex), txn_type: type, data: '0xabcd' as const, ...lists }
    return [
      () => recorder.add('TXN_HEADER_START', header, position),
      () =>
        recorder.add(
          'TXN_ACCESS_LIST_ENTRY',
          { storage_keys: Array.from({ length: keys }, (_, n) => slotOf(n)) },
          position,
        ),
      ...Array.from(
        { length: auths },
        (_, n) => () => recorder.add('TXN_AUTH_LIST_ENTRY', { nonce: BigInt(n) }, position),
      ),
      () => recorder.add('TXN_EVM_OUTPUT', { gas_used: BigInt(txnIndex + 5), log_count: logs.length }, position),
      ...logs.map(({ contract, topics }, index) => () => {
        const payload = { index, address: addressOf(contract), topics: topics.map(slotOf), data: '0x01' as const }
        recorder.add('TXN_LOG', payload, position)
      }),
    ]
  })
  // Interleaved, as recorded by a node that executes in parallel.
  for (let step = 0; steps.some((of) => step < of.length); step++) for (const of of steps) of[step]?.()
  recorder.add('BLOCK_END', { gas_used: 7n }, at)
}

const small = fc.integer({ min: 0, max: 3 })
const log = fc.record({ contract: small, topics: fc.array(small, { maxLength: 4 }) })
const txn = fc.record({
  logs: fc.array(log, { maxLength: 4 }),
  keys: small,
  auths: small,
  type: fc.integer({ min: 0, max: 4 }),
})

describe('a block read by transaction', () => {
  test('equals the completely decoded block', (t) => {
    checkProperty(
      t,
      fc.property(fc.array(txn, { maxLength: 6 }), (txns) => {
        const batch = batchOf((recorder) => recordTxns(recorder, txns))
        const whole = assembleBlock(eventsOf(batch)) ?? assert.fail()
        const block = finish(EthBlock.read(batch)) ?? assert.fail()
        assert.equal(block.txnCount, txns.length)
        const receipts = txns.map((_, index) => receiptOf(whole, index))
        assert.deepEqual(textOf(receiptsPieces(block, admitAll)), receipts)
        for (const [index, { logs }] of txns.entries()) {
          assert.deepEqual(JSON.parse(transactionText(block, index, admitAll)), transactionOf(whole, index))
          assert.deepEqual(textOf(receiptPieces(block, index, admitAll)), receipts[index])
          const keys = [...block.logsOf(index)].map((position) => block.logKeys(position))
          const shown = logs.map((_, at) => logOf(whole, index, at))
          assert.deepEqual(
            keys,
            shown.map(({ address, topics }) => ({ address, topics })),
          )
        }
        const full = textOf(blockPieces(block, 'full', admitAll)) as { transactions: unknown[] }
        assert.deepEqual(
          full.transactions,
          txns.map((_, index) => transactionOf(whole, index)),
        )
      }),
      60,
      1000,
    )
  })

  test('is refused when an event is missing, truncated or of another block', () => {
    const txns = [{ logs: [{ contract: 1, topics: [2] }], keys: 1, auths: 2, type: 4 }]
    const batch = batchOf((recorder) => recordTxns(recorder, txns))
    for (const [at, { name }] of eventsOf(batch).entries())
      assert.equal(finish(EthBlock.read(without(batch, at))), undefined, name)
    for (let at = 0; at < batch.count; at++) {
      const cut = without(batch, -1)
      const sizeAt = (at * DESCRIPTOR_BYTES + DESCRIPTOR.payloadSize) / 4
      cut.descriptorWords[sizeAt] = (cut.descriptorWords[sizeAt] as number) - 1
      assert.equal(finish(EthBlock.read(cut)), undefined, `event ${at} is cut short`)
      const moved = without(batch, -1)
      moved.descriptorWords[(at * DESCRIPTOR_BYTES + DESCRIPTOR.txnId) / 4] = 5
      assert.equal(finish(EthBlock.read(moved)), undefined, `event ${at} of transaction 5`)
    }
    const many = batchOf((recorder) => {
      recorder.add('BLOCK_START', { txn_count: 2n ** 60n }, { timeNs: 1n })
      recorder.add('BLOCK_END', {}, { timeNs: 1n })
    })
    assert.equal(finish(EthBlock.read(many)), undefined)
  })

  test('yields between events and between logs', () => {
    const logs = Array.from({ length: 3000 }, () => ({ contract: 1, topics: [] }))
    const batch = batchOf((recorder) => recordTxns(recorder, [{ logs, keys: 0, auths: 0, type: 2 }]))
    assert([...EthBlock.read(batch)].length >= 2 * Math.floor(batch.count / 1024))
    const block = finish(EthBlock.read(batch)) ?? assert.fail()
    assert([...receiptPieces(block, 0, admitAll)].length >= 3000)
  })

  test('decodes nothing that admit refuses', () => {
    const logs = [{ contract: 1, topics: [1, 2] }]
    const batch = batchOf((recorder) => recordTxns(recorder, [{ logs, keys: 3, auths: 1, type: 4 }]))
    const block = finish(EthBlock.read(batch)) ?? assert.fail()
    const seen: number[] = []
    const admit = (bytes: number) => void seen.push(bytes)
    transactionText(block, 0, admit)
    assert.deepEqual(seen.splice(0), [352 + 2 + 28 + 3 * 32 + 168 + 24])
    void [...receiptPieces(block, 0, admit)]
    assert.deepEqual(seen, [32 + 2 * 32 + 1])
  })
})
