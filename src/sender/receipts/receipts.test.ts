import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createReceipts } from './receipts.ts'
import { receiptOf } from './test-receipt.ts'

const OPTIONS = { receiptsMax: 3, keepMs: 1000, waitersMax: 4, waitersPerAddressMax: 2 }

function openTest() {
  const clock = createManualClock()
  const receipts = createReceipts(OPTIONS, { clock, onFinished() {} })
  const receipt = receiptOf('one')
  receipts.add(receipt)
  const wait = (address: string, waitMs = 1000) => receipts.wait(receipt, waitMs, address)
  const limitOf = (address: string) => {
    const waiting = wait(address)
    return 'limit' in waiting ? waiting.limit : undefined
  }
  return { clock, receipts, receipt, wait, limitOf }
}

test('limits the waits of one address and leaves the rest to others', async () => {
  const { clock, wait, limitOf } = openTest()
  const [first, second] = [wait('a'), wait('a', 2000)]
  assert.ok(!('limit' in first) && !('limit' in second))
  assert.equal(limitOf('a'), 'waitersPerAddressMax')
  assert.deepEqual([limitOf('b'), limitOf('b')], [undefined, undefined])
  assert.equal(limitOf('c'), 'waitersMax')
  first.cancel()
  first.cancel()
  await first.ended
  assert.deepEqual([limitOf('a'), limitOf('a')], [undefined, 'waitersPerAddressMax'], 'given up once, room for one')
  clock.advance(2000)
  await second.ended
  assert.deepEqual([limitOf('a'), limitOf('a'), limitOf('a')], [undefined, undefined, 'waitersPerAddressMax'])
})

test('counts pending receipts by address and payer through every change of state', () => {
  const { receipts, receipt } = openTest()
  const of = () => [receipts.pending, receipts.pendingOfAddress('address'), receipts.pendingOfPayer('payer')]
  assert.deepEqual(of(), [1, 1, 1])
  receipts.recordAttempt(receipt, { path: 'p', to: 't', response: 'taken', message: '' })
  assert.deepEqual(of(), [1, 1, 1], 'a sent transaction is pending too')
  receipts.land(receipt, { slot: 1, confirmation: 'processed', error: null })
  assert.deepEqual(of(), [0, 0, 0])
  receipts.unland(receipt)
  assert.deepEqual(of(), [1, 1, 1])
  receipts.add(receiptOf('one'))
  assert.deepEqual(of(), [1, 1, 1], 'one of the same signature takes its place')
  for (const signature of ['two', 'three', 'four']) receipts.add(receiptOf(signature))
  assert.deepEqual(of(), [3, 3, 3], 'the oldest is forgotten')
  receipts.add(receiptOf('five', { state: 'unknown', address: undefined, feePayer: undefined }))
  assert.deepEqual(of(), [2, 2, 2])
})

test('a pending receipt that was removed is not counted again when its transaction ends', () => {
  const { receipts, receipt } = openTest()
  const of = () => [receipts.pending, receipts.pendingOfAddress('address'), receipts.pendingOfPayer('payer')]
  for (const signature of ['two', 'three', 'four']) receipts.add(receiptOf(signature))
  assert.deepEqual([receipts.get('one'), ...of()], [undefined, 3, 3, 3])
  receipts.finish(receipt, 'ended')
  assert.deepEqual([receipt.state, ...of()], ['ended', 3, 3, 3])
  const repeated = receiptOf('four')
  const before = receipts.get('four')
  receipts.add(repeated)
  assert.ok(before !== undefined && before !== repeated)
  receipts.finish(before, 'ended')
  assert.deepEqual(of(), [3, 3, 3])
  receipts.finish(repeated, 'expired', 1)
  assert.deepEqual(of(), [2, 2, 2])
})

test('a taken attempt changes accepted to sent, and never changes landed', () => {
  const { receipts, receipt } = openTest()
  const report = { path: 'rpc', to: 'node', response: 'taken', message: '' } as const
  receipts.recordAttempt(receipt, { ...report, response: 'failed' })
  assert.equal(receipt.state, 'accepted')
  receipts.recordAttempt(receipt, report)
  assert.equal(receipt.state, 'sent')
  receipts.land(receipt, { slot: 5, confirmation: 'confirmed', error: null })
  receipts.recordAttempt(receipt, report)
  assert.equal(receipt.state, 'landed')
})
