import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { RingFollower } from '../../../evm/ring/follow.ts'
import { recordBlock } from '../../../evm/test-block.ts'
import { loadFileMapper } from '../../../platform/files/mapped.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { openRingFile } from '../../../platform/ring-file/reader.ts'
import type { SourceMessage } from '../message.ts'
import { RingProcessor } from '../ring-processor.ts'
import { NodeRing } from './ring.ts'

const READ = { seed: 7, topAccessesMs: 5000, topAccessesResetMs: 300_000, blockBytesMax: 2 ** 20, isOwnRing: true }

for (const [skipped, reported] of [
  [159, 159],
  [1_000_000, 4096],
] as const) {
  test(`${skipped} skipped blocks are a gap of ${reported} events in the same ring`, async () => {
    using folder = makeTestFolder()
    const path = folder.file('ring')
    using ring = new NodeRing(path, { mapper: await loadFileMapper(), clock: createManualClock() })
    using follower = new RingFollower(() => openRingFile(path), { start: 'oldest' })
    const read = new RingProcessor(follower, { ...READ, path }, () => {})
    const messages: SourceMessage[] = []
    const readUntil = (nowMs: number): void => {
      for (let steps = 0; steps < 100; steps++) {
        const result = read.step(nowMs)
        messages.push(...result.messages)
        if (result.isIdle) return
      }
      assert.fail('the ring has no end')
    }
    ring.record((recorder) => recordBlock(recorder, { number: 40, txns: [] }))
    readUntil(0)
    ring.skip(skipped)
    readUntil(1)
    ring.record((recorder) => recordBlock(recorder, { number: 40 + skipped + 1, txns: [] }))
    // A number without an event counts as lost after three seconds.
    for (let nowMs = 1000; nowMs <= 5000; nowMs += 500) readUntil(nowMs)
    const lines = messages.flatMap((message) => {
      if (message.kind === 'tps') return `block ${message.blockNumber}`
      if (message.kind === 'gap') return `gap of ${message.toSeqno - message.fromSeqno + 1}`
      return message.kind === 'restart' ? 'restart' : []
    })
    assert.deepEqual(lines, ['block 40', `gap of ${reported}`, `block ${40 + skipped + 1}`])
  })
}
