import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { type Receipt, signatureKeyOf } from './receipt.ts'
import { restoreReceipts } from './restore.ts'
import { followRig as rig } from './test-follow.ts'
import { receiptOf } from './test-receipt.ts'

test('re-sends until the transaction lands, then updates its confirmation', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  assert.equal(receipt.state, 'sent')
  await sluice.clock.advanceAsync(7000)
  assert.equal(sluice.sent.length, 4)
  sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'processed' })
  await sluice.clock.advanceAsync(2000)
  assert.deepEqual([receipt.state, receipt.landed?.slot, receipt.landed?.confirmation], ['landed', 101, 'processed'])
  const before = sluice.sent.length
  sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'finalized' })
  await sluice.clock.advanceAsync(20_000)
  assert.equal(sluice.sent.length, before)
  assert.deepEqual(
    [receipt.landed?.confirmation, sluice.receipts.watched.size, receipt.job],
    ['finalized', 0, undefined],
  )
  assert.deepEqual(sluice.settled, ['a landed'])
})

test('a transaction that is seen first when it is final settles at once', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'finalized' })
  await sluice.clock.advanceAsync(2000)
  assert.deepEqual([receipt.state, receipt.landed?.confirmation], ['landed', 'finalized'])
  assert.deepEqual([sluice.receipts.watched.size, sluice.settled, sluice.confirmed], [0, ['a landed'], ['a null']])
})

test('when another bank of the same slot remains, the receipt has the result of that one', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'processed' })
  await sluice.clock.advanceAsync(2000)
  assert.deepEqual([receipt.landed?.slot, receipt.landed?.error], [101, null])
  const error = { InstructionError: [0, 'Custom'] }
  sluice.node.statuses.set('a', { slot: 101, err: error, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(2000)
  assert.deepEqual([receipt.landed?.slot, receipt.landed?.error], [101, error])
  // It is counted once: the first result is taken back.
  assert.deepEqual([sluice.settled, sluice.replaced.length], [['a landed', 'a landed'], 1])
  assert.deepEqual(sluice.confirmed, [`a ${JSON.stringify(error)}`])
})

test('reverts the receipt when a fork drops its block, and sends the transaction again', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'processed' })
  await sluice.clock.advanceAsync(2000)
  assert.equal(receipt.state, 'landed')
  sluice.node.statuses.delete('a')
  sluice.node.slot = 120
  await sluice.clock.advanceAsync(2000)
  assert.equal(receipt.state, 'landed', 'a node that is a little behind proves nothing')
  sluice.node.slot = 140
  const before = sluice.sent.length
  await sluice.clock.advanceAsync(5000)
  assert.deepEqual([receipt.state, sluice.receipts.pending, sluice.replaced.length], ['sent', 1, 1])
  assert.ok(sluice.sent.length > before)
})

test('expires only when the blockhash has expired and a later status call does not find the transaction', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  sluice.node.isValid = false
  sluice.node.height = 260
  await sluice.clock.advanceAsync(12_000)
  assert.deepEqual([receipt.state, receipt.expiredHeight, sluice.receipts.pending], ['expired', 260, 0])

  const late = sluice.accept('b', 'another')
  await sluice.clock.advanceAsync(4000)
  sluice.node.statuses.set('b', { slot: 300, err: { InstructionError: [0, 'x'] }, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(12_000)
  assert.deepEqual([late.state, late.landed?.error], ['landed', { InstructionError: [0, 'x'] }])
})

test('a node that is behind the one that found the blockhash expired does not prove that the transaction is in no block', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  Object.assign(sluice.node, { isValid: false, validSlot: 260, height: 250, slot: 259 })
  sluice.best.slot = 260
  await sluice.clock.advanceAsync(12_000)
  assert.equal(receipt.state, 'sent')
  sluice.node.statuses.set('a', { slot: 255, err: null, confirmationStatus: 'confirmed' })
  const other = sluice.accept('b')
  await sluice.clock.advanceAsync(6000)
  assert.equal(receipt.state, 'landed')
  sluice.node.slot = 260
  await sluice.clock.advanceAsync(6000)
  assert.deepEqual([other.state, other.expiredHeight], ['expired', 250])
})

test('a node that does not know the blockhash yet does not prove that it has expired', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  // It was accepted 5 seconds before it is asked about: 12.5 slots.
  Object.assign(sluice.node, { isValid: false, validSlot: 287, slot: 300 })
  sluice.best.slot = 300
  await sluice.clock.advanceAsync(12_000)
  sluice.node.validSlot = undefined
  await sluice.clock.advanceAsync(6000)
  assert.equal(receipt.state, 'sent')
  sluice.node.validSlot = 288
  await sluice.clock.advanceAsync(6000)
  assert.equal(receipt.state, 'expired')
})

test('a hundred blockhashes that a node responds to slowly do not delay the statuses of other transactions', async () => {
  using sluice = rig({ resendMs: 2000, endMs: 60_000, receiptsMax: 200 })
  for (let n = 0; n < 100; n++) sluice.accept(`never ${n}`, `blockhash ${n}`)
  sluice.node.validMs = 100
  await sluice.clock.advanceAsync(8000)
  assert.ok(sluice.checkingMax() > 1 && sluice.checkingMax() <= 4, `${sluice.checkingMax()} calls at once`)
  const before = sluice.calls['getSignatureStatuses'] ?? 0
  await sluice.clock.advanceAsync(10_000)
  const polls = (sluice.calls['getSignatureStatuses'] ?? 0) - before
  assert.ok(polls >= 9, `${polls} polls in 10 s`)
  assert.equal(sluice.calls['getBlockHeight'], undefined)
  Object.assign(sluice.node, { isValid: false, height: 260 })
  await sluice.clock.advanceAsync(10_000)
  assert.deepEqual([sluice.receipts.pending, sluice.receipts.get('never 7')?.expiredHeight], [0, 260])
  assert.ok((sluice.calls['getBlockHeight'] ?? 0) <= 3, 'one for each round')
})

test('a slow response about some transactions does not stop the following of others, and each is polled once at a time', async () => {
  using sluice = rig()
  const slow = sluice.accept('slow')
  sluice.node.statusMs = 2900
  await sluice.clock.advanceAsync(150)
  sluice.node.statusMs = 0
  const other = sluice.accept('other')
  const landed = { slot: 101, err: null, confirmationStatus: 'confirmed' }
  for (const signature of ['slow', 'other']) sluice.node.statuses.set(signature, landed)
  await sluice.clock.advanceAsync(1200)
  assert.deepEqual([slow.state, other.state, sluice.calls['getSignatureStatuses']], ['sent', 'landed', 2])
  await sluice.clock.advanceAsync(2000)
  assert.equal(slow.state, 'landed')
})

test('ends after endMs with state ended when no node responds', async () => {
  using sluice = rig({ resendMs: 1000, endMs: 10_000 })
  sluice.node.isUp = false
  const receipt = sluice.accept('a')
  const wait = sluice.receipts.wait(receipt, 60_000, 'reader')
  assert.ok('ended' in wait)
  let isOver = false
  void wait.ended.then(() => {
    isOver = true
  })
  await sluice.clock.advanceAsync(9000)
  assert.equal(isOver, false)
  await sluice.clock.advanceAsync(3000)
  assert.deepEqual([receipt.state, isOver, receipt.job], ['ended', true, undefined])
})

const FOUND = encodeBase58(new Uint8Array(64).fill(5))

/** A receipt that an earlier process recorded as landed in slot 101. */
function restoreLanded({ receipts, clock }: ReturnType<typeof rig>, state: 'landed' | 'failed' = 'landed'): Receipt {
  restoreReceipts([{ signature: FOUND, state, atMs: clock.nowMs(), slot: 101 }], receipts, { clock, keepMs: 600_000 })
  return receipts.get(signatureKeyOf(FOUND)) as Receipt
}

test('a receipt that landed before a restart is followed until its block is confirmed', async () => {
  using sluice = rig()
  const receipt = restoreLanded(sluice)
  sluice.node.statuses.set(FOUND, { slot: 101, err: null, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(2000)
  assert.deepEqual([receipt.state, receipt.landed?.confirmation], ['landed', 'confirmed'])
  assert.deepEqual([sluice.settled, sluice.confirmed, sluice.receipts.watched.size], [[], [`${FOUND} null`], 0])
})

test('one that failed before a restart has the error of the chain again', async () => {
  using sluice = rig()
  const receipt = restoreLanded(sluice, 'failed')
  const err = { InstructionError: [0, 'Custom'] }
  sluice.node.statuses.set(FOUND, { slot: 101, err, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(2000)
  assert.deepEqual([receipt.state, receipt.landed?.error], ['landed', err])
  assert.deepEqual([sluice.settled, sluice.replaced, sluice.confirmed.length], [[], [], 1])
})

test('one whose block was dropped around the restart becomes unknown', async () => {
  using sluice = rig()
  const receipt = restoreLanded(sluice)
  sluice.node.slot = 101 + 32
  await sluice.clock.advanceAsync(2000)
  assert.equal(receipt.state, 'landed')
  sluice.node.slot = 101 + 33
  await sluice.clock.advanceAsync(2000)
  assert.deepEqual([receipt.state, receipt.landed, sluice.confirmed], ['unknown', undefined, []])
})

test('a node that is far past the block no longer has its statuses: the receipt stays landed', async () => {
  for (const isRestored of [true, false]) {
    using sluice = rig()
    let receipt: Receipt
    if (isRestored) receipt = restoreLanded(sluice)
    else {
      receipt = sluice.accept('a')
      sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'processed' })
      await sluice.clock.advanceAsync(2000)
      sluice.node.statuses.clear()
    }
    sluice.node.slot = 101 + 151
    await sluice.clock.advanceAsync(2000)
    assert.deepEqual([receipt.state, receipt.landed?.confirmation], ['landed', 'processed'])
    assert.deepEqual([sluice.confirmed.length, sluice.replaced, sluice.receipts.watched.size], [1, [], 0])
  }
})

test('a repeated transaction has one receipt and lands once', async () => {
  using sluice = rig()
  const before = receiptOf('a', { state: 'unknown', job: undefined })
  sluice.receipts.add(before)
  const again = sluice.accept('a')
  sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(3000)
  assert.deepEqual([before.state, again.state, sluice.settled], ['unknown', 'landed', ['a landed']])
})

test('limits the number of receipts and of waits', () => {
  using sluice = rig()
  for (let n = 0; n < 30; n++) {
    const receipt = sluice.accept(`s${n}`)
    sluice.receipts.settle(receipt, 'ended')
  }
  assert.equal(sluice.receipts.size, 10)
  assert.equal(sluice.receipts.get('s0'), undefined)
  const last = sluice.accept('last')
  const wait = (reader: string) => sluice.receipts.wait(last, 1000, reader)
  const [first] = [wait('a'), wait('b')]
  assert.deepEqual(wait('c'), { limit: 'waitersMax' })
  assert.ok('cancel' in first)
  first.cancel()
  assert.ok('ended' in wait('c'))
  sluice.clock.advance(700_000)
  assert.equal(sluice.receipts.size, 0)
})

test('transactions that land together are settled in slices, and none after the end', async () => {
  const ALL = 200
  const options = { resendMs: 2000, endMs: 60_000, receiptsMax: ALL, readMs: 0.02 }
  const landAll = async (sluice: ReturnType<typeof rig>) => {
    for (let n = 0; n < ALL; n++) {
      sluice.accept(`s${n}`)
      sluice.node.statuses.set(`s${n}`, { slot: 101, err: null, confirmationStatus: 'confirmed' })
    }
    await sluice.clock.advanceAsync(150)
  }
  using sluice = rig(options)
  await landAll(sluice)
  let turns = 0
  let most = sluice.settled.length
  for (; sluice.settled.length < ALL && turns < ALL; turns++) {
    const before = sluice.settled.length
    await nextTurn()
    most = Math.max(most, sluice.settled.length - before)
  }
  assert.equal(sluice.settled.length, ALL)
  // A slice is half a millisecond, of which each transaction takes 0.02 or more.
  assert.ok(most <= 25, `${most} in one turn`)

  const ended = rig(options)
  await landAll(ended)
  const settled = ended.settled.length
  ended[Symbol.dispose]()
  await nextTurn()
  await nextTurn()
  assert.ok(settled < ALL, `${settled} settled before the end`)
  assert.equal(ended.settled.length, settled)
})
