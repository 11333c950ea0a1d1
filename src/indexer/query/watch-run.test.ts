import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import type { StoreProcess } from '../store/process.ts'
import { watchRun } from './watch-run.ts'

/** A watched query with a limit of 10 s, in a process that responds to an interrupt when `respond` is called. */
function openRun() {
  const clock = createManualClock()
  const response = Promise.withResolvers<null>()
  const seen: string[] = []
  const leaving = new AbortController()
  const store = {
    ask: ({ reason }: { reason: string }) => (seen.push(reason), response.promise),
  } as unknown as StoreProcess
  const onStuck = (reason: string): void => void seen.push(`stuck: ${reason}`)
  const watch = watchRun({ store, id: 1, secondsMax: 10, disconnected: leaving.signal, onStuck }, clock)
  return { clock, seen, leaving, watch, respond: () => response.resolve(null) }
}

test('a query that goes on after its interrupt is stuck, and so is a process that does not respond to it', async () => {
  const on = openRun()
  on.respond()
  await on.clock.advanceAsync(14_000)
  assert.deepEqual(on.seen, ['timeout'])
  await on.clock.advanceAsync(1_000)
  assert.deepEqual(on.seen, ['timeout', 'stuck: time'])

  const silent = openRun()
  await silent.clock.advanceAsync(40_000)
  assert.deepEqual(silent.seen, ['timeout', 'stuck: unresponsive'])
})

test('a query that ends before the response to its interrupt is not stuck', async () => {
  const on = openRun()
  await on.clock.advanceAsync(10_000)
  on.watch[Symbol.dispose]()
  on.respond()
  await on.clock.advanceAsync(60_000)
  assert.deepEqual(on.seen, ['timeout'])
})

test('a client that disconnects interrupts its query until that has ended', () => {
  const on = openRun()
  on.leaving.abort()
  assert.deepEqual(on.seen, ['cancelled'])
  const ended = openRun()
  ended.watch[Symbol.dispose]()
  ended.leaving.abort()
  assert.deepEqual(ended.seen, [])
})
