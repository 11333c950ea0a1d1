import assert from 'node:assert/strict'
import { test } from 'node:test'
import { followRig as rig } from './test-follow.ts'
import { receiptOf } from './test-receipt.ts'

test('one that has expired is still looked up until its block would be final, and corrected when it landed', async () => {
  using sluice = rig()
  const receipt = sluice.accept('a')
  Object.assign(sluice.node, { isValid: false, height: 260 })
  await sluice.clock.advanceAsync(10_000)
  assert.deepEqual([receipt.state, receipt.expiredHeight], ['expired', 260])
  sluice.node.slot = 100 + 32
  sluice.node.statuses.set('a', { slot: 99, err: null, confirmationStatus: 'processed' })
  await sluice.clock.advanceAsync(3000)
  assert.deepEqual([receipt.state, receipt.landed?.slot, receipt.expiredHeight], ['landed', 99, undefined])
  assert.deepEqual([sluice.settled, sluice.replaced], [['a expired', 'a landed'], ['a expired']])
  sluice.node.statuses.set('a', { slot: 99, err: null, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(3000)
  assert.deepEqual([sluice.confirmed, sluice.receipts.watched.size], [['a null'], 0])

  const other = sluice.accept('b')
  await sluice.clock.advanceAsync(10_000)
  assert.deepEqual([other.state, sluice.receipts.watched.size], ['expired', 1])
  sluice.node.slot = 100 + 33
  await sluice.clock.advanceAsync(3000)
  const calls = sluice.calls['getSignatureStatuses']
  sluice.node.statuses.set('b', { slot: 99, err: null, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(10_000)
  assert.deepEqual([other.state, sluice.receipts.watched.size], ['expired', 0])
  assert.equal(sluice.calls['getSignatureStatuses'], calls, 'and not looked up any longer')
  assert.deepEqual(sluice.confirmed, ['a null'])
})

test('one that ended is looked up every two seconds until it lands or has expired', async () => {
  using sluice = rig({ resendMs: 1000, endMs: 10_000 })
  const [lands, expires, nonce] = [sluice.accept('a'), sluice.accept('b'), receiptOf('c', { blockhash: undefined })]
  sluice.receipts.add(nonce)
  sluice.dispatch.start(nonce)
  await sluice.clock.advanceAsync(12_000)
  assert.deepEqual([lands.state, expires.state, nonce.state], ['ended', 'ended', 'ended'])
  const calls = sluice.calls['getSignatureStatuses'] ?? 0
  await sluice.clock.advanceAsync(20_000)
  assert.ok(
    between(9, (sluice.calls['getSignatureStatuses'] ?? 0) - calls, 11),
    `${sluice.calls['getSignatureStatuses']}`,
  )
  sluice.node.statuses.set('a', { slot: 101, err: null, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(3000)
  Object.assign(sluice.node, { isValid: false, height: 260 })
  await sluice.clock.advanceAsync(6000)
  assert.deepEqual([lands.state, expires.state, nonce.state], ['landed', 'expired', 'ended'])
  assert.deepEqual(sluice.replaced, ['a ended', 'b ended'])
  sluice.node.statuses.set('c', { slot: 150, err: null, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(3000)
  assert.equal(nonce.state, 'landed', 'a nonce does not expire')
})

test('limits how many that expired or ended are looked up: the newest', async () => {
  using sluice = rig({ resendMs: 2000, endMs: 60_000, receiptsMax: 10_000 })
  for (let n = 0; n < 5000; n++) sluice.receipts.settle(sluice.accept(`s${n}`), 'ended')
  await sluice.clock.advanceAsync(3000)
  assert.equal(sluice.receipts.watched.size, 4096)
  for (const n of [0, 4999])
    sluice.node.statuses.set(`s${n}`, { slot: 101, err: null, confirmationStatus: 'confirmed' })
  await sluice.clock.advanceAsync(3000)
  assert.deepEqual([sluice.receipts.get('s0')?.state, sluice.receipts.get('s4999')?.state], ['ended', 'landed'])
})

const between = (low: number, found: number, high: number) => low <= found && found <= high
