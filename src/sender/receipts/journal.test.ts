import assert from 'node:assert/strict'
import { appendFileSync, readFileSync } from 'node:fs'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { type AppendFile, openAppendFile } from '../../platform/files/append.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { type JournalDeps, openJournal, readJournal } from './journal.ts'
import type { Receipt } from './receipt.ts'
import { receiptOf as makeReceipt } from './test-receipt.ts'

const signature = (n: number) => encodeBase58(new Uint8Array(64).fill(n))

/** Without a tip it has one line. */
const receiptOf = (of: string, given: Partial<Receipt> = {}) => makeReceipt(of, { tip: undefined, ...given })

type Files = readonly [AppendFile, AppendFile]

/** A journal over these files that records the failures it reports. */
async function openTestJournal(files: Files, given: Partial<JournalDeps> = {}) {
  const reported: string[] = []
  const clock = createManualClock()
  const found = await readJournal(files, 1000)
  const journal = await openJournal({
    files,
    found,
    unsettled: () => [],
    onFailure: (error) => reported.push(String(error)),
    onRecovery: () => reported.push('recovered'),
    clock,
    ...given,
  })
  return { journal, reported, clock }
}

test('writes two files alternately and loses no unsettled entry when one is overwritten', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  const open = new Set([receiptOf(signature(1)), receiptOf(signature(2))])
  const { journal, reported } = await openTestJournal([first, second], {
    unsettled: () => open,
    bytesMax: 1000,
  })
  for (const receipt of open) assert.ok(await journal.recordAccepted(receipt))
  for (let n = 10; n < 60; n++) {
    const receipt = receiptOf(signature(n))
    assert.ok(await journal.recordAccepted(receipt))
    Object.assign(receipt, {
      state: 'landed',
      settledMonotonicMs: 1,
      landed: { slot: n, confirmation: 'confirmed', error: null, unixMs: 2000 + n },
    })
    journal.recordSettled(receipt)
    await journal.flushed()
  }
  assert.deepEqual(reported, [])
  assert.ok((await first.size()) <= 1200 && (await second.size()) <= 1200)
  const { entries } = await readJournal([first, second], 1000)
  const stateOf = (n: number) => entries.find((entry) => entry.signature === signature(n))?.state
  assert.deepEqual([stateOf(1), stateOf(2), stateOf(59)], ['accepted', 'accepted', 'landed'])
  assert.equal(entries.find((entry) => entry.signature === signature(59))?.slot, 59)

  // The next process continues in the newer file.
  const next = await openTestJournal([first, second], { bytesMax: 1000 })
  assert.ok(await next.journal.recordAccepted(receiptOf(signature(99))))
  const again = (await readJournal([first, second], 1000)).entries
  assert.equal(again.find((entry) => entry.signature === signature(99))?.state, 'accepted')
  assert.equal(again.find((entry) => entry.signature === signature(1))?.state, 'accepted')
})

test('the next process continues in the newer file, whichever is longer, and empties the older one', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  const accept = async (n: number, bytesMax: number) =>
    (await openTestJournal([first, second], { bytesMax })).journal.recordAccepted(receiptOf(signature(n)))
  // One line in the first file fills it; the second may grow to two.
  await accept(1, 150)
  await accept(2, 150)
  await accept(3, 300)
  assert.ok((await second.size()) > (await first.size()))
  await accept(4, 250)
  const { entries } = await readJournal([first, second], 10)
  assert.deepEqual(new Set(entries.map((entry) => entry.signature)), new Set([2, 3, 4].map(signature)))
})

test('after a crash during the switch of files the full one is still the newer', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  await (await openTestJournal([first, second])).journal.recordAccepted(receiptOf(signature(1)))
  appendFileSync(folder.file('b'), 'turn')
  await (await openTestJournal([first, second])).journal.recordAccepted(receiptOf(signature(2)))
  assert.equal(readFileSync(folder.file('a'), 'latin1').split('\n').length, 3, 'both lines')
})

for (const [what, torn] of [
  ['half a line', 'accepted 5to'],
  ['a block that never reached the disk', '\0'.repeat(4096)],
] as const) {
  test(`after a crash during a write, the next line is not appended to ${what}`, async () => {
    using folder = makeTestFolder()
    await using first = await openAppendFile(folder.file('a'), 'write')
    await using second = await openAppendFile(folder.file('b'), 'write')
    await (await openTestJournal([first, second])).journal.recordAccepted(receiptOf(signature(1)))
    appendFileSync(folder.file('a'), torn)
    const { journal } = await openTestJournal([first, second])
    assert.match(readFileSync(folder.file('a'), 'latin1'), /^accepted \w+ \d+ \n$/, 'it is cut off')
    await journal.recordAccepted(receiptOf(signature(2)))
    const { entries } = await readJournal([first, second], 10)
    assert.deepEqual(
      entries.map((entry) => entry.signature),
      [signature(1), signature(2)],
    )
  })
}

test('reports a failed write and retries after RETRY_MS', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  let isFull = true
  const faulty: AppendFile = {
    ...first,
    async writeAt(at, text) {
      if (!isFull) return first.writeAt(at, text)
      // A full disk accepts a partial write.
      await first.writeAt(at, text.slice(0, -3))
      throw new Error('disk full')
    },
  }
  const { journal, reported, clock } = await openTestJournal([faulty, second])
  assert.equal(journal.isOpen, true)
  const refused = journal.recordAccepted(receiptOf(signature(1)))
  assert.equal(await refused, false)
  assert.deepEqual([journal.isOpen, reported], [false, ['Error: disk full']])
  assert.equal(readFileSync(folder.file('a'), 'utf8'), '', 'nothing of a refused line stays')
  clock.advance(1000)
  assert.deepEqual([journal.isOpen, journal.isDoubtful], [true, true], 'it is time to try again')
  isFull = false
  assert.equal(await journal.recordAccepted(receiptOf(signature(2))), true)
  assert.deepEqual([journal.isOpen, journal.isDoubtful, reported.at(-1)], [true, false, 'recovered'])
  const { entries } = await readJournal([first, second], 10)
  assert.deepEqual(
    entries.map((entry) => entry.signature),
    [signature(2)],
  )
})

test('lines appended during a write share the next write and its result', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  const writes: { readonly text: string; readonly over: PromiseWithResolvers<void> }[] = []
  const slow: AppendFile = {
    ...first,
    async writeAt(at, text) {
      const over = Promise.withResolvers<void>()
      writes.push({ text, over })
      await over.promise
      return at + text.length
    },
  }
  const { journal, reported } = await openTestJournal([slow, second])
  const heard: number[] = []
  const accept = (n: number) =>
    void journal.recordAccepted(receiptOf(signature(n))).then((isRecorded) => heard.push(isRecorded ? n : -n))
  const turn = () => new Promise(setImmediate)
  accept(1)
  await turn()
  for (let n = 2; n < 50; n++) accept(n)
  await turn()
  assert.deepEqual([writes.length, heard], [1, []])
  writes[0]?.over.resolve()
  await turn()
  assert.deepEqual([writes.length, heard], [2, [1]], 'the others came after it had begun')
  assert.equal(writes[1]?.text.split('\n').length, 49, 'one write for all of them')
  writes[1]?.over.reject(new Error('input/output error'))
  await turn()
  await journal.flushed()
  assert.deepEqual([heard.length, heard[1], journal.isOpen, reported], [49, -2, false, ['Error: input/output error']])
})

test('an entry has its tip, also after its file was overwritten and in a later state', async () => {
  using folder = makeTestFolder()
  await using first = await openAppendFile(folder.file('a'), 'write')
  await using second = await openAppendFile(folder.file('b'), 'write')
  const account = encodeBase58(new Uint8Array(32).fill(7))
  const feePayer = encodeBase58(new Uint8Array(32).fill(8))
  const tipped = receiptOf(signature(1), { tip: { account, lamports: 1_234_567n }, feePayer })
  const { journal } = await openTestJournal([first, second], { unsettled: () => [tipped], bytesMax: 1500 })
  assert.ok(await journal.recordAccepted(tipped))
  for (let n = 10; n < 40; n++) assert.ok(await journal.recordAccepted(receiptOf(signature(n))))
  const tip = { account, lamports: 1_234_567n, payer: feePayer }
  const found = async () =>
    (await readJournal([first, second], 1000)).entries.find((one) => one.signature === signature(1))
  assert.deepEqual((await found())?.tip, tip)
  Object.assign(tipped, {
    state: 'landed',
    settledMonotonicMs: 1,
    landed: { slot: 5, confirmation: 'confirmed', error: null, unixMs: 3000 },
  })
  journal.recordSettled(tipped)
  await journal.flushed()
  const landed = await found()
  assert.deepEqual([landed?.state, landed?.tip], ['landed', tip])
})

test('lines of the newer file replace those of the older one, whichever of the two it is', async () => {
  const older = `turn 1\naccepted ${signature(1)} 1000 \nexpired ${signature(1)} 1000 \nlanded ${signature(2)} 1500 70\n`
  const newer = `turn 2\naccepted ${signature(1)} 200000 \nlanded ${signature(2)} 1600 71\n`
  for (const texts of [
    [older, newer],
    [newer, older],
  ] as const) {
    using folder = makeTestFolder()
    for (const [at, text] of texts.entries()) appendFileSync(folder.file(String(at)), text)
    await using first = await openAppendFile(folder.file('0'), 'write')
    await using second = await openAppendFile(folder.file('1'), 'write')
    const { entries, generations } = await readJournal([first, second], 10)
    assert.deepEqual(
      entries.map(({ state, atMs, slot }) => [state, atMs, slot]),
      [
        ['landed', 1600, 71],
        ['accepted', 200_000, undefined],
      ],
    )
    assert.equal(generations[texts.indexOf(newer)], 2)
  }
})
