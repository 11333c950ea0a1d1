import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { GrantedSchedule } from '../../../platform/native/thread-schedule.ts'
import { scheduleNote } from './schedule-note.ts'

test('status notes the priority and the processor of a thread, and what was not permitted', () => {
  const noteOf = (schedule: GrantedSchedule) => scheduleNote('shreds', schedule)['shreds']
  assert.equal(noteOf({ priority: 'normal', core: null, refused: [] }), undefined)
  assert.equal(noteOf({ priority: 'realtime', core: 3, refused: [] }), 'priority realtime, on processor 3')
  assert.equal(
    noteOf({ priority: 'normal', core: null, refused: ['priority realtime: operation not permitted'] }),
    'priority normal, not permitted: priority realtime: operation not permitted',
  )
  assert.deepEqual(scheduleNote('sender', undefined), {})
})
