import assert from 'node:assert/strict'
import { readdirSync, readFileSync, truncateSync } from 'node:fs'
import { describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { createHistoryDocument } from './document.ts'
import type { History } from './history.ts'
import { feedBlock, openTestHistory, recordOf } from './test-history.ts'

const START_MS = 1_800_000_000_000
const BLOCK_MS = 400

function documentOf(history: History, clock: ManualClock) {
  const { text } = createHistoryDocument({ clock, history, isSimulated: () => false })()
  const { seconds, blocks, incidents } = JSON.parse(text.toString()) as Record<string, unknown>
  return { seconds, blocks, incidents }
}

const timeOf = (number: number): number => START_MS + number * BLOCK_MS

/** The blocks of a ring, as they were recorded. */
function feedRing(history: History, from: number, to: number): void {
  for (let number = from; number <= to; number++) {
    if (number % 7 === 0) feedBlock(history, number, { variant: 2, stage: 'Rejected', timeMs: timeOf(number) })
    feedBlock(history, number, { stage: 'Verified', timeMs: timeOf(number) })
  }
}

/** Cuts a log behind so many records, as they were when the process was killed. Returns how many it had. */
function cutLog(folder: string, records: number): number {
  const [name = assert.fail('there is no file')] = readdirSync(folder)
  const path = `${folder}/${name}`
  const bytes = readFileSync(path)
  let at = 0
  let found = 0
  for (; at < bytes.length; found++) {
    if (found === records) truncateSync(path, at)
    // The head and the body of a record have their lengths before them, after a magic number.
    at += 20 + bytes.readUInt32LE(at + 4) + bytes.readUInt32LE(at + 8)
  }
  return found
}

describe('a ring that is read again from its oldest block', () => {
  for (const [name, blocks] of [
    ['slightly more blocks than the history keeps', 50],
    ['many more blocks', 400],
  ] as const) {
    test(`changes nothing after a restart: ${name}`, async () => {
      using folder = makeTestFolder()
      const clock = createManualClock(timeOf(blocks + 10))
      const options = { clock, folder: folder.path, blocksMax: 32 }
      {
        await using history = await openTestHistory(options)
        feedRing(history, 1, blocks)
      }
      await using history = await openTestHistory(options)
      const before = documentOf(history, clock)
      // The ring has overwritten its first blocks.
      feedRing(history, 10, blocks)
      assert.deepEqual(documentOf(history, clock), before)
      feedRing(history, blocks + 1, blocks + 1)
      assert.equal([...history.proposals.values()].at(-1)?.number, blocks + 1)
    })
  }

  test('changes nothing where the disk had no room for all blocks', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock(timeOf(70))
    const options = { clock, folder: folder.path, bytesMax: 256 * 1024 }
    {
      await using history = await openTestHistory(options)
      for (let number = 1; number <= 60; number++) {
        feedRing(history, number, number)
        await history.flushed()
      }
    }
    await using history = await openTestHistory(options)
    assert.ok((history.proposals.first?.number ?? 0) > 1)
    const before = documentOf(history, clock)
    feedRing(history, 1, 60)
    assert.deepEqual(documentOf(history, clock), before)
  })

  test('has the last blocks with their figures where the disk had no room for all that were read at once', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock(timeOf(510))
    const options = { clock, folder: folder.path, bytesMax: 1024 * 1024 }
    {
      await using history = await openTestHistory(options)
      feedRing(history, 1, 400)
    }
    await using history = await openTestHistory(options)
    const numbers = [...history.proposals.values()].flatMap(({ number, figures }) => (figures ? number : []))
    assert(numbers.includes(400) && numbers.length > 64 && numbers.length === history.proposals.size, numbers.join())
    const before = documentOf(history, clock)
    feedRing(history, 1, 400)
    assert.deepEqual(documentOf(history, clock), before)
  })

  for (const writes of [1, 2, 3]) {
    test(`changes nothing after a process was killed behind write ${writes} of a long ring`, async () => {
      using folder = makeTestFolder()
      const clock = createManualClock(timeOf(260))
      const options = { clock, folder: folder.path }
      let before: ReturnType<typeof documentOf>
      {
        await using history = await openTestHistory(options)
        feedRing(history, 1, 250)
        before = documentOf(history, clock)
        history.tick()
      }
      for (const log of ['seconds', 'blocks']) assert(cutLog(folder.file(log), writes) > writes)
      await using history = await openTestHistory(options)
      assert.deepEqual(documentOf(history, clock).seconds, before.seconds)
      feedRing(history, 1, 250)
      const after = documentOf(history, clock)
      assert.deepEqual([after.seconds, after.blocks], [before.seconds, before.blocks])
      for (const { figures } of history.proposals.values()) assert.notEqual(figures, undefined)
    })
  }

  test('changes nothing within a process either', async () => {
    const clock = createManualClock(timeOf(400))
    await using history = await openTestHistory({ clock, blocksMax: 32 })
    feedRing(history, 1, 390)
    const before = documentOf(history, clock)
    feedRing(history, 10, 390)
    assert.deepEqual(documentOf(history, clock), before)
  })

  test('is another chain if its old numbers were recorded later', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock(timeOf(401))
    {
      await using history = await openTestHistory({ clock, folder: folder.path, blocksMax: 32 })
      feedRing(history, 1, 400)
    }
    await using history = await openTestHistory({ clock, folder: folder.path, blocksMax: 32 })
    clock.advance(5000)
    feedBlock(history, 1, { variant: 3, timeMs: clock.nowMs() })
    assert.deepEqual(
      [...history.proposals.values()].map(({ number }) => number),
      [1],
    )
    assert.deepEqual(history.proposals.byNumber(1)?.record, recordOf(1, 'Proposed', 3, 1_000_001))
  })
})
