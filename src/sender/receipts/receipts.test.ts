import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { printReceipt } from './receipt.ts'
import { createReceipts } from './receipts.ts'
import { receiptOf } from './test-receipt.ts'

const OPTIONS = { receiptsMax: 3, knownSignaturesMax: 1000, keepMs: 1000, waitersMax: 4, waitersPerAddressMax: 2 }

function openTest() {
  const clock = createManualClock()
  const receipts = createReceipts(OPTIONS, { clock, onSettled() {} })
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

test('one whose block was dropped when it was no longer sent is unknown, and its text does not blame a restart alone', () => {
  const { receipts, receipt } = openTest()
  receipts.land(receipt, { slot: 1, confirmation: 'processed', error: null })
  receipt.job = undefined
  receipts.revert(receipt)
  const { state, message } = printReceipt(receipt) as { state?: unknown; message?: unknown }
  assert.equal(state, 'unknown')
  assert.match(String(message), /restarted .* or a fork dropped its block/)
})

test('the message and the response of an attempt have their former names too', () => {
  const { receipts, receipt } = openTest()
  receipts.recordAttempt(receipt, { path: 'p', to: 't', response: 'refused', message: 'busy' })
  const { attempts } = printReceipt(receipt) as { attempts: Record<string, unknown>[] }
  const [{ response, answer, message, says } = {}] = attempts
  assert.deepEqual([response, answer, message, says], ['refused', 'refused', 'busy', 'busy'])
})

test('counts pending receipts by address and payer through every change of state', () => {
  const { receipts, receipt } = openTest()
  const of = () => [receipts.pending, receipts.pendingOfAddress('address'), receipts.pendingOfPayer('payer')]
  assert.deepEqual(of(), [1, 1, 1])
  receipts.recordAttempt(receipt, { path: 'p', to: 't', response: 'taken', message: '' })
  assert.deepEqual(of(), [1, 1, 1], 'a sent transaction is pending too')
  receipts.land(receipt, { slot: 1, confirmation: 'processed', error: null })
  assert.deepEqual(of(), [0, 0, 0])
  receipts.revert(receipt)
  assert.deepEqual(of(), [1, 1, 1])
  receipts.add(receiptOf('one'))
  assert.deepEqual(of(), [1, 1, 1], 'one of the same signature takes its place')
  for (const signature of ['two', 'three', 'four']) receipts.add(receiptOf(signature))
  assert.deepEqual(of(), [4, 4, 4], 'whatever receiptsMax is: it is about settled ones')
  receipts.add(receiptOf('five', { state: 'unknown', address: undefined, feePayer: undefined }))
  assert.deepEqual(of(), [4, 4, 4])
})

test('a pending receipt that was replaced is not counted again when its transaction ends', () => {
  const { receipts } = openTest()
  const of = () => [receipts.pending, receipts.pendingOfAddress('address'), receipts.pendingOfPayer('payer')]
  const repeated = receiptOf('one')
  const before = receipts.get('one')
  receipts.add(repeated)
  assert.ok(before !== undefined && before !== repeated)
  receipts.settle(before, 'ended')
  assert.deepEqual([before.state, receipts.get('one') === repeated, ...of()], ['ended', true, 1, 1, 1])
  receipts.settle(repeated, 'expired', 1)
  assert.deepEqual([receipts.size, ...of()], [1, 0, 0, 0])
})

test('beyond receiptsMax the receipt that was settled first is removed, never a pending one, and its signature stays known', () => {
  const { clock, receipts, receipt: pending } = openTest()
  const keys = ['a', 'b', 'c', 'd', 'e'].map((letter) => letter.repeat(64))
  for (const key of keys) {
    const receipt = receiptOf(key, { wireHash: `hash of ${key}`, acceptedMonotonicMs: clock.monotonicMs() })
    receipts.add(receipt)
    receipts.land(receipt, { slot: 1, confirmation: 'confirmed', error: null })
    clock.advance(1)
  }
  const [first = '', second = '', third = ''] = keys
  assert.deepEqual([receipts.size, receipts.knownSignatures], [4, 2])
  assert.deepEqual([receipts.get('one'), receipts.get(first), receipts.get(second)], [pending, undefined, undefined])
  assert.ok(receipts.get(third) !== undefined)
  const { signature, wireHash, state, job } = receipts.findKnown(first) ?? {}
  assert.deepEqual([wireHash, state, job], [`hash of ${first}`, 'landed', undefined])
  assert.equal(signature, encodeBase58(Buffer.from(first, 'latin1')))
  clock.advance(119_000)
  assert.ok(receipts.findKnown(first) !== undefined)
  clock.advance(2000)
  assert.deepEqual([receipts.findKnown(first), receipts.knownSignatures], [undefined, 0])
  // A repetition has a receipt again.
  receipts.add(receiptOf(second))
  assert.equal(receipts.findKnown(second), receipts.get(second))
})

test('a receipt that is removed before its block is confirmed counts as confirmed', () => {
  const confirmed: string[] = []
  const deps = { clock: createManualClock(), onSettled() {} }
  using receipts = createReceipts(OPTIONS, { ...deps, onConfirmed: ({ signature }) => confirmed.push(signature) })
  for (const signature of ['a', 'b', 'c', 'd']) {
    const receipt = receiptOf(signature)
    receipts.add(receipt)
    receipts.land(receipt, { slot: 1, confirmation: 'processed', error: null })
  }
  assert.deepEqual([confirmed, [...receipts.watched].map(({ signature }) => signature)], [['a'], ['b', 'c', 'd']])
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
