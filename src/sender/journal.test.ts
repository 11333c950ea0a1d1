import assert from 'node:assert/strict'
import { test } from 'node:test'
import { openAppendFile } from '../host/append-file.ts'
import { makeTestFolder } from '../host/test-folder.ts'
import { encodeBase58 } from '../solana/base58.ts'
import { openJournal, readJournal } from './journal.ts'
import { receiptOf } from './test-receipt.ts'

const signature = (n: number) => encodeBase58(new Uint8Array(64).fill(n))

test('two files by turns: nothing unfinished is lost when one is overwritten', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  const open = new Set([receiptOf(signature(1)), receiptOf(signature(2))])
  const failures: unknown[] = []
  const journal = await openJournal({
    files: [first, second],
    unfinished: () => open,
    onFailure: (error) => failures.push(error),
    bytesMax: 1000,
  })
  for (const receipt of open) await journal.accepted(receipt)
  for (let n = 10; n < 60; n++) {
    const receipt = receiptOf(signature(n))
    await journal.accepted(receipt)
    Object.assign(receipt, {
      state: 'landed',
      finishedAtMs: 1,
      landed: { slot: n, confirmation: 'confirmed', error: null, atMs: 2000 + n },
    })
    journal.finished(receipt)
    await journal.settled()
  }
  assert.deepEqual(failures, [])
  assert.ok((await first.size()) <= 1200 && (await second.size()) <= 1200)
  const entries = await readJournal([first, second], 1000)
  const stateOf = (n: number) => entries.find((entry) => entry.signature === signature(n))?.state
  assert.deepEqual([stateOf(1), stateOf(2), stateOf(59)], ['accepted', 'accepted', 'landed'])
  assert.equal(entries.find((entry) => entry.signature === signature(59))?.slot, 59)

  // The next process goes on in the newer file.
  const next = await openJournal({
    files: [first, second],
    unfinished: () => [],
    onFailure: assert.fail,
    bytesMax: 1000,
  })
  await next.accepted(receiptOf(signature(99)))
  const again = await readJournal([first, second], 1000)
  assert.equal(again.find((entry) => entry.signature === signature(99))?.state, 'accepted')
  assert.equal(again.find((entry) => entry.signature === signature(1))?.state, 'accepted')
})

test('a disk that cannot be written is told, and the next line is tried again', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  let isFull = true
  const failures: unknown[] = []
  const faulty = {
    ...first,
    writeAt: (at: number, text: string) => (isFull ? Promise.reject(new Error('disk full')) : first.writeAt(at, text)),
  }
  const journal = await openJournal({
    files: [faulty, second],
    unfinished: () => [],
    onFailure: (error) => failures.push(error),
  })
  await journal.accepted(receiptOf(signature(1)))
  assert.equal(failures.length, 1)
  isFull = false
  await journal.accepted(receiptOf(signature(2)))
  assert.deepEqual(
    (await readJournal([first, second], 10)).map((entry) => entry.signature),
    [signature(2)],
  )
})
