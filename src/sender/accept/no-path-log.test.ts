import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createNoPathLog } from './no-path-log.ts'

test('logs that no path is open at once, then once a minute with the number of refusals since', () => {
  const clock = createManualClock()
  const lines: unknown[] = []
  const log = { ...silentLogger, warn: (fields: unknown) => void lines.push(fields) }
  const onRefused = createNoPathLog({ clock, log, paths: ['leaders', 'relay'] })
  for (let n = 0; n < 120; n++) {
    onRefused()
    clock.advance(1000)
  }
  assert.deepEqual(lines, [
    { paths: ['leaders', 'relay'], refused: 1 },
    { paths: ['leaders', 'relay'], refused: 59 },
    { paths: ['leaders', 'relay'], refused: 60 },
  ])
  clock.advance(3_600_000)
  assert.equal(lines.length, 3, 'none while nothing is refused')
  onRefused()
  assert.deepEqual(lines[3], { paths: ['leaders', 'relay'], refused: 1 }, 'not those of an hour ago')
})
