import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import { createResetFloodGuard } from './reset-flood-guard.ts'

function fakeStream() {
  const events: string[] = []
  let onEnd: (end: GrpcEnd) => void = () => {}
  const stream = {
    cancel: () => void events.push('cancel'),
    pause: () => void events.push('pause'),
    onEnd: (listener: typeof onEnd) => void (onEnd = listener),
  } as unknown as GrpcStream
  return { stream, events, end: () => onEnd({ status: { code: 0 }, isFromServer: true }) }
}

test('cancels an old call at once, a young one when it is old enough, and an ended one not at all', () => {
  const clock = createManualClock()
  const guard = createResetFloodGuard(clock)
  const [old, young, ended] = [fakeStream(), fakeStream(), fakeStream()]
  guard.cancel(old.stream, clock.monotonicMs() - 250, 'a')
  assert.deepEqual(old.events, ['cancel'])
  guard.cancel(young.stream, clock.monotonicMs(), 'a')
  guard.cancel(ended.stream, clock.monotonicMs(), 'a')
  ended.end()
  clock.advance(249)
  assert.deepEqual(young.events, ['pause'])
  clock.advance(1)
  assert.deepEqual([young.events, ended.events], [['pause', 'cancel'], ['pause']])
  assert.equal(clock.pendingTimers(), 0)
})

test('refuses after 100 guard cancellations in a window, for that subscription only and until the window ends', () => {
  const clock = createManualClock()
  const guard = createResetFloodGuard(clock)
  for (let at = 0; at < 100; at++) {
    assert.equal(guard.isOverLimit('a'), false)
    guard.cancel(fakeStream().stream, clock.monotonicMs(), 'a')
  }
  assert.equal(guard.isOverLimit('a'), true)
  assert.equal(guard.isOverLimit('b'), false)
  clock.advance(10_000)
  assert.equal(guard.isOverLimit('a'), false)
})
