import assert from 'node:assert/strict'
import { getEventListeners } from 'node:events'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { RunningProcess } from '../operations/running-process.ts'
import { pollEachSecond } from './watch.ts'

const ask = (process: RunningProcess) => process.call('top')
const running = (call: () => Promise<unknown>): RunningProcess =>
  ({ call, [Symbol.dispose]() {} }) as unknown as RunningProcess

test('polls once a second for any time with one listener on the signal, and ends with it during the pause', async () => {
  const clock = createManualClock()
  const leaving = new AbortController()
  let calls = 0
  const open = async () => running(async () => ++calls)
  const polls = pollEachSecond(open, ask, { clock, signal: leaving.signal })
  for (let count = 1; count <= 100; count += 1) {
    const next = polls.next()
    if (count > 1) {
      await Promise.resolve()
      assert.equal(getEventListeners(leaving.signal, 'abort').length, 1)
      clock.advance(1000)
    }
    assert.deepEqual((await next).value, { response: count })
    assert.equal(getEventListeners(leaving.signal, 'abort').length, 0)
  }
  const last = polls.next()
  await Promise.resolve()
  leaving.abort()
  assert.deepEqual(await last, { done: true, value: undefined })
  assert.equal(clock.pendingTimers(), 0)
})

test('a first call that fails is an error, a later one is shown and the process is opened again', async () => {
  const clock = createManualClock()
  const { signal } = new AbortController()
  const script = [() => 1, () => fail('gone'), () => 3]
  let opened = 0
  const open = async () => {
    opened += 1
    return running(async () => script.shift()?.())
  }
  const polls = pollEachSecond(open, ask, { clock, signal })
  const found: unknown[] = [(await polls.next()).value]
  for (let count = 0; count < 2; count += 1) {
    const next = polls.next()
    await Promise.resolve()
    clock.advance(1000)
    found.push((await next).value)
  }
  assert.deepEqual(found, [{ response: 1 }, { failure: 'gone' }, { response: 3 }])
  assert.equal(opened, 2)
  const refused = pollEachSecond(async () => running(async () => fail('no')), ask, { clock, signal })
  await assert.rejects(refused.next(), /no/)
})

function fail(message: string): never {
  throw new Error(message)
}
