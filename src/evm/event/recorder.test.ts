import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RingEvent } from '../ring/writer.ts'
import { ExecRecorder } from './recorder.ts'
import { EVENT } from './type.ts'

test('events that could not be written are not written with the next ones', () => {
  const written: RingEvent[][] = []
  let isFull = true
  const writer = {
    lastSeqno: 0,
    recordAll(events: readonly RingEvent[]) {
      // The writer allocates sequence numbers before the first write that can fail.
      this.lastSeqno += events.length
      if (isFull) throw new Error('ENOSPC')
      written.push([...events])
    },
  }
  const recorder = new ExecRecorder(writer)
  recorder.add('BLOCK_START', {}, { timeNs: 1n })
  recorder.add('BLOCK_PERF_EVM_ENTER', {}, { timeNs: 1n })
  assert.throws(() => recorder.flush(), /ENOSPC/)
  isFull = false
  recorder.flush()
  // The block that was lost is not open any more.
  recorder.add('RECORD_ERROR', {}, { timeNs: 2n })
  recorder.add('BLOCK_START', {}, { timeNs: 2n })
  recorder.add('BLOCK_END', {}, { timeNs: 2n })
  recorder.flush()
  assert.deepEqual(
    written.map((events) => events.map(({ type, blockSeqno }) => [type, blockSeqno])),
    [
      [],
      [
        [EVENT.RECORD_ERROR, 0],
        [EVENT.BLOCK_START, 4],
        [EVENT.BLOCK_END, 4],
      ],
    ],
  )
})
