import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import { createEarlyLeave } from './reset-flood-guard.ts'

function fakeStream() {
  const reported: string[] = []
  let onEnd: (end: GrpcEnd) => void = () => {}
  const stream = {
    cancel: () => void reported.push('cancel'),
    pause: () => void reported.push('pause'),
    onEnd: (listener: typeof onEnd) => void (onEnd = listener),
  } as unknown as GrpcStream
  return { stream, told: reported, end: () => onEnd({ status: { code: 0 }, isFromServer: true }) }
}

test('an old call is cancelled at once, a young one when it is old enough, one that ended meanwhile not at all', () => {
  const clock = createManualClock()
  const early = createEarlyLeave(clock)
  const [old, young, ended] = [fakeStream(), fakeStream(), fakeStream()]
  early.leave(old.stream, clock.monotonicMs() - 250, 'a')
  assert.deepEqual(old.told, ['cancel'])
  early.leave(young.stream, clock.monotonicMs(), 'a')
  early.leave(ended.stream, clock.monotonicMs(), 'a')
  ended.end()
  clock.advance(249)
  assert.deepEqual(young.told, ['pause'])
  clock.advance(1)
  assert.deepEqual([young.told, ended.told], [['pause', 'cancel'], ['pause']])
  assert.equal(clock.pendingTimers(), 0)
})

test('a hundred in a window are too often, for that subscription alone and until the window ends', () => {
  const clock = createManualClock()
  const early = createEarlyLeave(clock)
  for (let at = 0; at < 100; at++) {
    assert.equal(early.isTooOften('a'), false)
    early.leave(fakeStream().stream, clock.monotonicMs(), 'a')
  }
  assert.equal(early.isTooOften('a'), true)
  assert.equal(early.isTooOften('b'), false)
  clock.advance(10_000)
  assert.equal(early.isTooOften('a'), false)
})
