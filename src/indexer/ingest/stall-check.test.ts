import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createStallCheck } from './stall-check.ts'

const MINUTE = 60_000

test('tables that stand still for three minutes while the chain goes on are reported until the next block', () => {
  const clock = createManualClock()
  const check = createStallCheck(clock)
  assert.equal(check({ headSlot: 100, tipSlot: 101 }), undefined)
  clock.advance(3 * MINUTE - 1)
  assert.equal(check({ headSlot: 100, tipSlot: 600 }), undefined)
  clock.advance(1)
  const stalled = check({ headSlot: 100, tipSlot: 601 })
  assert.match(stalled ?? '', /^no block after slot 100 was written for 3 minutes, although the chain goes on; /)
  clock.advance(MINUTE)
  assert.equal(check({ headSlot: 100, tipSlot: 700 }), stalled)
  assert.equal(check({ headSlot: 101, tipSlot: 700 }), undefined)
  clock.advance(MINUTE)
  assert.equal(check({ headSlot: 101, tipSlot: 900 }), undefined)
})

test('a chain that stands still, nodes that report no slot and a database that is not open are not such a fault', () => {
  const clock = createManualClock()
  const check = createStallCheck(clock)
  for (const ingest of [{ headSlot: 100, tipSlot: 120 }, { headSlot: 100, tipSlot: undefined }, undefined])
    for (let minute = 0; minute < 10; minute++) {
      assert.equal(check(ingest), undefined)
      clock.advance(MINUTE)
    }
  assert.equal(check({ headSlot: 100, tipSlot: 9000 }), undefined, 'it was opened a moment ago')
})

test('tables that get no first block are reported too', () => {
  const clock = createManualClock()
  const check = createStallCheck(clock)
  assert.equal(check({ headSlot: undefined, tipSlot: 500 }), undefined)
  clock.advance(3 * MINUTE)
  assert.match(check({ headSlot: undefined, tipSlot: 900 }) ?? '', /^no block was written for 3 minutes/)
})
