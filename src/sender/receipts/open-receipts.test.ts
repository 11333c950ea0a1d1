import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { openAppendFile } from '../../platform/files/append.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { type OpenReceiptsDeps, openReceipts, type RecordedReceipts } from './open-receipts.ts'
import { signatureKeyOf } from './receipt.ts'
import { receiptOf } from './test-receipt.ts'

const LIMITS = { receiptsMax: 3, knownSignaturesMax: 100, waitersMax: 1, waitersPerAddressMax: 1 }
const MINUTES = 60_000
const signature = (n: number) => encodeBase58(new Uint8Array(64).fill(n))

/** The receipts and the journal of a process, in the folder of a test. */
async function openTest(
  folder: { file(name: string): string },
  clock: ManualClock,
  given: Partial<OpenReceiptsDeps> = {},
) {
  await using opening = new AsyncDisposableStack()
  const file = async (name: string) => opening.use(await openAppendFile(folder.file(name), 'write'))
  const opened: RecordedReceipts = opening.use(
    await openReceipts(LIMITS, {
      journalFiles: [await file('journal-0'), await file('journal-1')],
      clock,
      onSettled() {},
      onConfirmed() {},
      onJournalFailure: assert.fail,
      onJournalRecovery() {},
      ...given,
    }),
  )
  const accept = async (n: number) => {
    const text = signature(n)
    const receipt = receiptOf(text, {
      key: signatureKeyOf(text),
      tip: undefined,
      acceptedUnixMs: clock.nowMs(),
      acceptedMonotonicMs: clock.monotonicMs(),
    })
    opened.receipts.add(receipt)
    assert.ok(await opened.journal.recordAccepted(receipt))
    return receipt
  }
  const closing = opening.move()
  return {
    ...opened,
    accept,
    async [Symbol.asyncDispose]() {
      await opened.journal.flushed()
      await closing.disposeAsync()
    },
  }
}

test('a receipt is kept for ten minutes after its transaction is settled, over a restart too', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(1_000_000)
  {
    await using before = await openTest(folder, clock)
    const receipt = await before.accept(1)
    clock.advance(MINUTES)
    before.receipts.land(receipt, { slot: 7, confirmation: 'confirmed', error: null })
    clock.advance(10 * MINUTES - 1000)
    assert.equal(before.receipts.get(receipt.key), receipt)
    clock.advance(2000)
    assert.equal(before.receipts.get(receipt.key), undefined)
    before.receipts.land(await before.accept(2), { slot: 8, confirmation: 'confirmed', error: null })
  }
  clock.advance(9 * MINUTES)
  await using after = await openTest(folder, clock)
  const restored = () => after.receipts.get(signatureKeyOf(signature(2)))?.state
  assert.equal(restored(), 'landed')
  clock.advance(MINUTES - 1000)
  assert.equal(restored(), 'landed')
  clock.advance(2000)
  assert.equal(restored(), undefined)
})

test('after a restart the signatures of two minutes are known, also those beyond receiptsMax', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(1_000_000)
  {
    await using before = await openTest(folder, clock)
    for (let n = 1; n <= 8; n++) {
      before.receipts.settle(await before.accept(n), 'expired', 9)
      clock.advance(20_000)
    }
  }
  await using after = await openTest(folder, clock)
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8]
  const isFound = (find: (key: string) => unknown) =>
    numbers.filter((n) => find(signatureKeyOf(signature(n))) !== undefined)
  assert.deepEqual(
    isFound((key) => after.receipts.get(key)),
    [6, 7, 8],
  )
  assert.deepEqual(
    isFound((key) => after.receipts.findKnown(key)),
    [4, 5, 6, 7, 8],
  )
})

test('a receipt whose block was dropped is unknown after a restart, not landed', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(1_000_000)
  {
    await using before = await openTest(folder, clock)
    const [reverted, again] = [await before.accept(1), await before.accept(2)]
    clock.advance(1000)
    for (const receipt of [reverted, again]) {
      before.receipts.land(receipt, { slot: 7, confirmation: 'processed', error: null })
    }
    clock.advance(20_000)
    for (const receipt of [reverted, again]) before.receipts.revert(receipt)
    before.receipts.land(again, { slot: 50, confirmation: 'processed', error: null })
  }
  await using after = await openTest(folder, clock)
  const stateOf = (n: number) => after.receipts.get(signatureKeyOf(signature(n)))
  assert.deepEqual([stateOf(1)?.state, stateOf(1)?.landed, after.unknown], ['unknown', undefined, 1])
  assert.deepEqual([stateOf(2)?.state, stateOf(2)?.landed?.slot], ['landed', 50])
})

test('a landed receipt that could not be followed counts as confirmed when it is removed', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(1_000_000)
  const confirmed: string[] = []
  await using opened = await openTest(folder, clock, { onConfirmed: (receipt) => confirmed.push(receipt.signature) })
  opened.receipts.land(await opened.accept(1), { slot: 7, confirmation: 'processed', error: null })
  clock.advance(9 * MINUTES)
  assert.deepEqual(confirmed, [])
  clock.advance(2 * MINUTES)
  assert.deepEqual([confirmed, opened.receipts.size], [[signature(1)], 0])
})

test('lines of the journal from the future, at a start with a clock that is behind, are not followed and counted again', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(48 * 60 * MINUTES)
  {
    await using before = await openTest(folder, clock)
    for (let n = 1; n <= 8; n++)
      before.receipts.land(await before.accept(n), { slot: n, confirmation: 'processed', error: null })
  }
  clock.setWallMs(24 * 60 * MINUTES)
  {
    await using before = await openTest(folder, clock)
    before.receipts.settle(await before.accept(9), 'expired', 9)
  }
  await using after = await openTest(folder, clock, { onConfirmed: () => assert.fail('a tip was counted') })
  assert.deepEqual([after.receipts.watched.size, after.receipts.knownSignatures, after.unknown], [0, 0, 0])
  assert.deepEqual(
    after.entries.map((entry) => entry.signature),
    [signature(9)],
  )
})

test('receipts that do not fit at a start are not reported as confirmed: they are recorded from the journal', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(1_000_000)
  {
    await using before = await openTest(folder, clock)
    for (let n = 1; n <= 5; n++)
      before.receipts.land(await before.accept(n), { slot: n, confirmation: 'processed', error: null })
  }
  const confirmed: string[] = []
  await using after = await openTest(folder, clock, { onConfirmed: (receipt) => confirmed.push(receipt.signature) })
  assert.deepEqual([after.entries.length, after.receipts.size, confirmed], [5, 3, []])
  after.receipts.land(await after.accept(6), { slot: 9, confirmation: 'processed', error: null })
  assert.deepEqual(confirmed, [signature(3)])
})
