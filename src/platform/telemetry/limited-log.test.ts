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

test('a line about one subject leaves out none about another', () => {
  const clock = createManualClock()
  const log = createLimitedLog(clock)
  const lines: string[] = []
  const fail = (node: string) => log(({ suppressed = 0 }) => lines.push(`${node} ${suppressed}`), node)
  for (const node of ['a', 'b', 'a', 'a']) fail(node)
  assert.deepEqual(lines, ['a 0', 'b 0'])
  clock.advance(60_000)
  for (const node of ['b', 'a']) fail(node)
  assert.deepEqual(lines.slice(2), ['b 0', 'a 2'])
})

test('however many subjects there are, the lines of a minute are few', () => {
  const clock = createManualClock()
  const log = createLimitedLog(clock)
  let lines = 0
  for (let minute = 1; minute <= 3; minute++) {
    for (let subject = 0; subject < 1000; subject++) log(() => (lines += 1), `${minute} ${subject}`)
    assert.equal(lines, minute * 33)
    clock.advance(60_000)
  }
})
