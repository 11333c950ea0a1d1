import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createLimitedLog } from './limited-log.ts'

test('one line a minute is written, with the count of those that were left out', () => {
  const clock = createManualClock()
  const log = createLimitedLog(clock)
  const lines: object[] = []
  for (let second = 0; second < 150; second++) {
    for (let request = 0; request < 10; request++) log((fields) => lines.push(fields))
    clock.advance(1000)
  }
  assert.deepEqual(lines, [{}, { suppressed: 599 }, { suppressed: 599 }])
})
