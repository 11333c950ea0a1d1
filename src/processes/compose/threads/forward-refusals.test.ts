import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { forwardRefusals } from './forward-refusals.ts'

test('refused requests are sent at once, and no more than a thousand in a second', () => {
  const clock = createManualClock()
  let sent = 0
  const refusals = forwardRefusals(() => void (sent += 1), clock)
  for (let at = 0; at < 5000; at++) refusals.record({ requestId: `r${at}`, interface: 'rpc' })
  assert.equal(sent, 1000)
  clock.advance(1000)
  refusals.record({ requestId: 'later', interface: 'rpc' })
  assert.equal(sent, 1001)
})
