import assert from 'node:assert/strict'
import { mkdirSync, readdirSync, rmdirSync, statSync } from 'node:fs'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { ethBlock } from '../../../test/support/execution/eth-blocks.ts'
import { history as historySchema } from '../../contract/schemas/execution-history.ts'
import { createManualClock } from '../../core/clock.ts'
import { idOf } from '../../evm/test-block.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { until } from '../../platform/process/test-wait.ts'
import { createLogger } from '../../platform/telemetry/logger.ts'
import { HeldBlock } from '../rpc/held-block.ts'
import { createHistoryDocument } from './document.ts'
import type { History } from './history.ts'
import { feedBlock, feedHour, figuresOf, openTestHistory, recordOf } from './test-history.ts'

const HOUR_MS = 3_600_000

function documentOf(history: History, clock: ReturnType<typeof createManualClock>) {
  const { text } = createHistoryDocument({ clock, history, isSimulated: () => false })()
  return historySchema.parse(JSON.parse(text.toString()))
}

describe('the seconds of the history', () => {
  test('have the means and sums of the blocks that ended in them, and null without a block', async () => {
    const clock = createManualClock(1_800_000_000_000)
    await using history = await openTestHistory({ clock })
    feedBlock(history, 1, { tps: 100 })
    clock.advance(400)
    feedBlock(history, 2, { tps: 301 })
    clock.advance(2600)
    feedBlock(history, 3, { tps: 50 })
    clock.advance(1000)
    const { seconds } = documentOf(history, clock)
    assert.deepEqual(seconds, {
      from_ms: 1_800_000_000_000,
      step_ms: 1000,
      tps: [201, null, null, 50],
      txns: [23, null, null, 13],
      gas_used: [2_000_003, null, null, 1_000_003],
      block_time_ms: [400, null, null, 2600],
    })
  })

  test('count a block number once, and a block that is read again not again', async () => {
    const clock = createManualClock()
    await using history = await openTestHistory({ clock })
    feedBlock(history, 5)
    feedBlock(history, 5)
    feedBlock(history, 5, { variant: 2 })
    clock.advance(1000)
    assert.deepEqual(documentOf(history, clock).seconds.txns, [15])
  })

  test('are those of the last hour: older ones are overwritten', async () => {
    const clock = createManualClock()
    await using history = await openTestHistory({ clock })
    for (let second = 0; second < 4000; second++) {
      history.blockEnded({ id: idOf(second), number: second, tps: second, recordedMs: undefined })
      clock.advance(1000)
    }
    const { seconds } = documentOf(history, clock)
    assert.equal(seconds.tps.length, 3599)
    assert.deepEqual([seconds.tps[0], seconds.tps.at(-1)], [401, 3999])
  })

  test('take the time at which an event was recorded, unless it is in the future or before the hour', async () => {
    const clock = createManualClock(1_800_000_000_000)
    await using history = await openTestHistory({ clock })
    const nowMs = clock.nowMs()
    feedBlock(history, 1, { timeMs: nowMs - 10_000 })
    feedBlock(history, 2, { timeMs: nowMs - HOUR_MS })
    feedBlock(history, 3, { timeMs: nowMs + 5000 })
    assert.deepEqual(
      [...history.proposals.values()].map(({ timeMs }) => timeMs - nowMs),
      [-10_000, 0, 0],
    )
  })
})

describe('the blocks of the history', () => {
  test('have abandoned proposals, stages and figures; lists are of the finalized proposal', async () => {
    const clock = createManualClock()
    await using history = await openTestHistory({ clock })
    feedBlock(history, 7, { variant: 1 })
    feedBlock(history, 7, { variant: 2, stage: 'Rejected' })
    feedBlock(history, 7, { variant: 1, stage: 'Finalized' })
    feedBlock(history, 8)
    const { blocks, contention, incidents } = documentOf(history, clock)
    assert.deepEqual(blocks.number, [7, 7, 8])
    assert.deepEqual(blocks.stage, ['Finalized', 'Rejected', 'Proposed'])
    assert.deepEqual(blocks.finalized_ms, [800, null, null])
    assert.deepEqual(blocks.rejected_ms, [null, 400, null])
    assert.deepEqual(blocks.execution_ms, [12.345, 12.345, 12.345])
    assert.deepEqual(blocks.contended_slot_count[0], figuresOf(7, 1).contention.contended_slot_count)
    assert.deepEqual(
      [contention.number, contention.id],
      [
        [7, 8],
        [idOf(7, 1), idOf(8, 1)],
      ],
    )
    const [slot, txnCount, accessCount] = contention.top_contended_slots[0] ?? []
    const first = figuresOf(7, 1).contention.top_contended_slots[0]
    assert.deepEqual(contention.slots[slot as number], [first?.address, first?.slot])
    assert.deepEqual([txnCount, accessCount], [first?.txn_count, first?.access_count])
    assert.deepEqual(
      incidents.map(({ kind }) => kind),
      ['rejection'],
    )
  })

  test('a block without figures has nulls', async () => {
    const clock = createManualClock()
    await using history = await openTestHistory({ clock })
    const record = recordOf(3, 'Proposed')
    history.lifecycle(record, record, undefined)
    const { blocks } = documentOf(history, clock)
    assert.deepEqual([blocks.gas_used, blocks.depth, blocks.gas_limit, blocks.tps], [[null], [null], [null], [null]])
  })

  test('a block that is read again after a restart keeps its stage and its gas', async () => {
    await using history = await openTestHistory()
    feedBlock(history, 5, { stage: 'Verified' })
    const record = recordOf(5, 'Proposed')
    history.lifecycle(record, record, undefined)
    assert.deepEqual(history.proposals.byNumber(5)?.record, recordOf(5, 'Verified', 1, 1_000_005))
  })

  test('another chain is noticed also where the content of a block comes first', async () => {
    await using history = await openTestHistory()
    for (let number = 10_000; number < 10_005; number++) feedBlock(history, number)
    history.block(new HeldBlock(ethBlock({ number: 5, txns: 1, logsPerTxn: 0 }).block, 1), null)
    const record = recordOf(5, 'Proposed', 0)
    history.lifecycle(record, record, undefined)
    assert.deepEqual(
      [...history.proposals.values()].map(({ number }) => number),
      [5],
    )
  })

  test('another chain starts the history again', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    {
      await using history = await openTestHistory({ clock, folder: folder.path })
      for (let number = 10_000; number < 10_010; number++) feedBlock(history, number, { stage: 'Finalized' })
      await history.flushed()
      feedBlock(history, 5)
      assert.deepEqual(
        [...history.proposals.values()].map(({ number }) => number),
        [5],
      )
    }
    await using restored = await openTestHistory({ clock, folder: folder.path })
    assert.deepEqual(
      [...restored.proposals.values()].map(({ number }) => number),
      [5],
    )
    feedBlock(restored, 5, { variant: 1, stage: 'Finalized' })
    feedBlock(restored, 5, { variant: 3 })
    assert.equal(restored.proposals.size, 1, 'another block in the place of a final one')
  })
})

describe('incidents', () => {
  test('a source that is silent for more than 10 s, from its last event to the next one', async () => {
    const clock = createManualClock(1_800_000_000_000)
    let lastMs = clock.monotonicMs()
    await using history = await openTestHistory({ clock, eventAgeMs: () => clock.monotonicMs() - lastMs })
    clock.advance(10_000)
    assert.deepEqual(history.incidents.list(), [])
    clock.advance(5000)
    assert.deepEqual(history.incidents.list(), [{ kind: 'source_silent', from_ms: 1_800_000_000_000, to_ms: null }])
    lastMs = clock.monotonicMs()
    clock.advance(1000)
    assert.deepEqual(history.incidents.list(), [
      { kind: 'source_silent', from_ms: 1_800_000_000_000, to_ms: 1_800_000_015_000 },
    ])
  })

  test('dropped frames within 10 s are one incident', async () => {
    const clock = createManualClock()
    await using history = await openTestHistory({ clock })
    const fromMs = clock.nowMs()
    history.framesDropped(5)
    clock.advance(9000)
    history.framesDropped(7)
    clock.advance(11_000)
    history.framesDropped(1)
    assert.deepEqual(history.incidents.list(), [
      { kind: 'backpressure', from_ms: fromMs, to_ms: fromMs + 9000, frames_dropped: 12 },
      { kind: 'backpressure', from_ms: fromMs + 20_000, to_ms: fromMs + 20_000, frames_dropped: 1 },
    ])
  })

  test('are bounded for each kind: many rejections do not remove a gap', async () => {
    await using history = await openTestHistory()
    history.ringGap(9, 1)
    for (let number = 1; number <= 300; number++) {
      const record = recordOf(number, 'Rejected')
      history.lifecycle(record, record, undefined)
    }
    const kinds = history.incidents.list().map(({ kind }) => kind)
    assert.equal(kinds.filter((kind) => kind === 'rejection').length, 50)
    assert.ok(kinds.includes('ring_gap'))
  })
})

describe('the history on disk', () => {
  test('is restored: seconds, blocks with figures, incidents; the time in between is null and an incident', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock(1_800_000_000_000)
    let before: ReturnType<typeof documentOf>
    {
      await using history = await openTestHistory({ clock, folder: folder.path })
      for (let number = 1; number <= 20; number++) {
        feedBlock(history, number, { stage: number <= 15 ? 'Verified' : 'Proposed' })
        await clock.advanceAsync(400)
      }
      history.ringGap(100, 2)
      before = documentOf(history, clock)
    }
    clock.advance(30_000)
    await using history = await openTestHistory({ clock, folder: folder.path })
    const after = documentOf(history, clock)
    assert.deepEqual(after.blocks, before.blocks)
    assert.deepEqual(after.contention, before.contention)
    assert.deepEqual(after.seconds.tps.slice(0, before.seconds.tps.length), before.seconds.tps)
    assert.deepEqual(new Set(after.seconds.tps.slice(before.seconds.tps.length)), new Set([null]))
    assert.deepEqual(after.incidents, [
      ...before.incidents,
      { kind: 'service_stopped', from_ms: 1_800_000_008_000, to_ms: 1_800_000_038_000 },
    ])
    assert.deepEqual(history.proposals.byNumber(3)?.record, recordOf(3, 'Verified', 1, 1_000_003))
    assert.deepEqual(history.proposals.byNumber(3)?.figures, figuresOf(3))
    // The newest block is read again after a start.
    feedBlock(history, 20)
    clock.advance(1000)
    assert.deepEqual(documentOf(history, clock).seconds.txns.slice(-2), [null, null])
  })

  test('a process that is killed loses at most the last second, and its silence is not a stop', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock(1_800_000_000_000)
    let ageMs = 0
    // Not closed before the next one is opened, as after a kill.
    await using killed = await openTestHistory({ clock, folder: folder.path, eventAgeMs: () => ageMs })
    feedBlock(killed, 1)
    for (let second = 0; second < 20; second++) {
      ageMs += 1000
      clock.advance(1000)
      await killed.flushed()
    }
    const later = createManualClock(1_800_000_027_000)
    await using history = await openTestHistory({ clock: later, folder: folder.path })
    assert.deepEqual(history.incidents.list(), [
      { kind: 'source_silent', from_ms: 1_800_000_000_000, to_ms: 1_800_000_020_000 },
      { kind: 'service_stopped', from_ms: 1_800_000_020_000, to_ms: 1_800_000_027_000 },
    ])
    assert.equal(history.proposals.size, 1)
  })

  test('is bounded in memory and on disk, however long it runs and however often it starts', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    const bytesMax = 256 * 1024
    const bytesOn = () =>
      ['seconds', 'blocks'].flatMap((name) =>
        readdirSync(folder.file(name)).map((file) => folder.file(join(name, file))),
      )
    for (let start = 0; start < 70; start++) {
      await using history = await openTestHistory({ clock, folder: folder.path, blocksMax: 20, bytesMax })
      for (let number = start * 4; number < start * 4 + 4; number++) {
        feedBlock(history, number + 1)
        clock.advance(1000)
        await history.flushed()
      }
      assert.ok(history.proposals.size <= 20)
      assert.ok(history.contracts.size <= 50, 'contracts of evicted blocks are forgotten')
      const files = bytesOn()
      assert.ok(files.length <= 2 * 64 + 2, `${files.length} files`)
      const bytes = files.reduce((sum, file) => sum + statSync(file).size, 0)
      assert.ok(bytes <= bytesMax * 1.25, `${bytes} bytes`)
    }
  })

  test('a disk that fails is logged once by name and used again later; nothing that is kept is lost', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    const lines: Record<string, unknown>[] = []
    const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>)
    const log = createLogger({ level: 'debug', destination: { write } })
    {
      await using history = await openTestHistory({ clock, folder: folder.path, log })
      rmdirSync(folder.file('seconds'))
      feedBlock(history, 1)
      /** A second, and what the disk does in it: reading the folder takes as long as a failed write. */
      const second = async () => {
        await clock.advanceAsync(1000)
        for (let reads = 0; reads < 3; reads++) await readdir(folder.path)
      }
      await until('the first write fails', async () => {
        await second()
        return history.failures === 1
      })
      for (let seconds = 0; seconds < 8; seconds++) await second()
      assert.equal(history.failures, 1, 'the disk is left alone for ten seconds after a failure')
      await until('the next write fails', async () => {
        await second()
        return history.failures >= 2
      })
      mkdirSync(folder.file('seconds'))
      await clock.advanceAsync(11_000)
      await history.flushed()
    }
    const warnings = lines.filter(({ msg }) => String(msg).includes('history cannot be written'))
    assert.equal(warnings.length, 1)
    assert.equal(warnings[0]?.['folder'], folder.path)
    await using restored = await openTestHistory({ clock, folder: folder.path })
    assert.deepEqual(restored.proposals.byNumber(1)?.figures, figuresOf(1))
    assert.equal(restored.seconds.columns(clock.nowMs()).txns[0], 11)
  })

  test('simulated data is not restored as real data, nor the reverse', async () => {
    using folder = makeTestFolder()
    {
      await using history = await openTestHistory({ folder: folder.path, isSimulated: true })
      feedBlock(history, 1)
    }
    {
      await using history = await openTestHistory({ folder: folder.path, isSimulated: false })
      assert.equal(history.proposals.size, 0)
      assert.deepEqual(history.incidents.list(), [])
    }
    await using history = await openTestHistory({ folder: folder.path, isSimulated: true })
    assert.equal(history.proposals.size, 1)
  })
})

describe('the document', () => {
  test('of a full hour has at most 200 KB compressed, is made in less than 50 ms and once a second', async () => {
    const clock = createManualClock()
    await using history = await openTestHistory({ clock })
    feedHour(history, clock)
    const document = createHistoryDocument({ clock, history, isSimulated: () => false })
    document()
    let fastestMs = Number.POSITIVE_INFINITY
    for (let round = 0; round < 5; round++) {
      clock.advance(1000)
      // Time of the processor: other tests run beside this one.
      const before = process.threadCpuUsage()
      document()
      const { user, system } = process.threadCpuUsage(before)
      fastestMs = Math.min(fastestMs, (user + system) / 1000)
    }
    assert.ok(fastestMs < 50, `${fastestMs} ms`)
    const made = document()
    clock.advance(999)
    assert.equal(document(), made)
    assert.equal(made.gzip(), made.gzip())
    const { length } = await made.gzip()
    assert.ok(length <= 200 * 1024, `${length} bytes compressed, ${made.text.length} bytes`)
    clock.advance(1)
    assert.notEqual(document(), made)
  })
})
