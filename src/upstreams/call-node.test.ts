import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../core/clock.ts'
import { createCallNode } from './call-node.ts'
import type { UpstreamResponse } from './response.ts'

test('a response that does not end in time is aborted, also when it has begun', async () => {
  const clock = createManualClock()
  let isAborted = false
  const rest = { start() {}, pause() {}, resume() {}, abort: () => void (isAborted = true) }
  const begun: UpstreamResponse = { kind: 'responded', status: 200, body: Buffer.from('{'), rest, nodeName: 'a' }
  const forward = (_request: unknown, done: (response: UpstreamResponse) => void) => {
    queueMicrotask(() => done(begun))
    return { abort() {} }
  }
  const called = createCallNode({ forward }, clock)('getLeaderSchedule', [], 5000)
  await Promise.resolve()
  clock.advance(4999)
  assert.equal(isAborted, false)
  clock.advance(1)
  assert.equal(await called, undefined)
  assert.equal(isAborted, true)
})
