import assert from 'node:assert/strict'
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
