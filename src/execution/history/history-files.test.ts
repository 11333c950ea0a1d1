import assert from 'node:assert/strict'
import { readdirSync, readFileSync, truncateSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { feedBlock, figuresOf, openTestHistory, recordOf } from './test-history.ts'

const BLOCKS = 12
const START_MS = 1_800_000_000_000

/** One block a second, each written before the next. */
async function fill(folder: string, from: number, count: number): Promise<void> {
  const clock = createManualClock(START_MS + from * 1000)
  await using history = await openTestHistory({ clock, folder })
  for (let number = from; number < from + count; number++) {
    feedBlock(history, number, { stage: 'Voted', tps: number })
    clock.advance(1000)
    await history.flushed()
  }
}

type TestFolder = ReturnType<typeof makeTestFolder>

type Damage = {
  readonly log: 'seconds' | 'blocks'
  readonly at: number
  readonly how: 'cut' | 'flip' | 'zeros' | 'insert'
}

/** Damages the log at a share of its length. Returns the bytes before the damage, and those of the whole file. */
function damage(folder: TestFolder, { log, at, how }: Damage): { intact: number; all: number } {
  const [name = assert.fail('there is no file')] = readdirSync(folder.file(log)).toSorted()
  const path = folder.file(join(log, name))
  const bytes = readFileSync(path)
  const from = Math.floor(bytes.length * at)
  if (how === 'cut') truncateSync(path, from)
  else if (how === 'insert')
    writeFileSync(path, Buffer.concat([bytes.subarray(0, from), Buffer.from('abc'), bytes.subarray(from)]))
  else {
    const to = how === 'flip' ? from + 1 : from + 64
    for (let index = from; index < Math.min(to, bytes.length); index++)
      bytes[index] = how === 'flip' ? ~(bytes[index] as number) : 0
    writeFileSync(path, bytes)
  }
  return { intact: from, all: bytes.length }
}

const anyDamage: fc.Arbitrary<Damage> = fc.record({
  log: fc.constantFrom('seconds', 'blocks'),
  at: fc.double({ min: 0, max: 0.999, noNaN: true }),
  how: fc.constantFrom('cut', 'flip', 'zeros', 'insert'),
})

describe('files of the history that are cut or damaged anywhere', () => {
  test('give what was written before the damage, unchanged, and can be written to', async (t) => {
    await fc.assert(
      fc.asyncProperty(anyDamage, async (given) => {
        using folder = makeTestFolder()
        await fill(folder.path, 0, BLOCKS)
        const { intact, all } = damage(folder, given)
        const clock = createManualClock(START_MS + BLOCKS * 1000)
        {
          await using history = await openTestHistory({ clock, folder: folder.path })
          const { from_ms, tps } = history.seconds.columns(clock.nowMs())
          for (const [at, value] of tps.entries())
            assert.ok(value === null || value === (from_ms - START_MS) / 1000 + at, `second ${at} has ${value}`)
          const numbers = [...history.proposals.values()].map(({ number }) => number)
          assert.deepEqual(numbers, Array.from(numbers.keys()), 'a beginning of the blocks, without a gap')
          for (const { number, record, figures } of history.proposals.values()) {
            assert.deepEqual(record, recordOf(number, 'Voted', 1, 1_000_000 + number))
            if (figures !== undefined) assert.deepEqual(figures, figuresOf(number))
          }
          const restored = given.log === 'seconds' ? tps.filter((value) => value !== null).length : numbers.length
          // Each record has about the same size: all but the damaged one and its neighbours are there.
          assert.ok(restored >= Math.floor((intact / all) * BLOCKS) - 1, `${restored} of ${BLOCKS}`)
          const other = given.log === 'seconds' ? numbers.length : tps.filter((value) => value !== null).length
          assert.equal(other, BLOCKS, 'the other log is not affected')
        }
        await fill(folder.path, BLOCKS, 2)
        await using after = await openTestHistory({ clock, folder: folder.path })
        assert.deepEqual(after.proposals.byNumber(BLOCKS + 1)?.figures, figuresOf(BLOCKS + 1))
      }),
      { seed: seedOf(t), numRuns: repeatsOf({ short: 15, full: 300 }) },
    )
  })

  test('a file that is no log, and a folder in the place of one, cost nothing but themselves', async () => {
    using folder = makeTestFolder()
    await fill(folder.path, 0, 3)
    writeFileSync(folder.file('blocks/0000000000.log'), 'not a log')
    writeFileSync(folder.file('seconds/readme.txt'), 'not a log')
    await using history = await openTestHistory({ clock: createManualClock(START_MS + 5000), folder: folder.path })
    assert.equal(history.proposals.size, 3)
  })

  test('a folder that cannot be opened costs the history on disk, not the history', async () => {
    using folder = makeTestFolder()
    writeFileSync(folder.file('seconds'), 'a file in the place of the folder')
    await using history = await openTestHistory({ folder: folder.path })
    feedBlock(history, 1)
    await history.flushed()
    assert.equal(history.proposals.size, 1)
    assert.equal(history.bytes, 0)
  })
})

test('starts in a row leave at most 64 files of each log', async () => {
  using folder = makeTestFolder()
  for (let start = 0; start < 70; start++) await fill(folder.path, start, 1)
  for (const log of ['seconds', 'blocks']) {
    const files = readdirSync(folder.file(log)).length
    assert.ok(files > 1 && files <= 64, `${files} files of ${log}`)
  }
})
