import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createManualClock } from '../../core/clock.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { startStoppableWorker } from './stoppable-worker.ts'
import { until } from './test-wait.ts'

const WORKER = JSON.stringify(new URL('./worker.ts', import.meta.url).href)
const STOP_MS = 2000

type Message = { readonly kind: 'ready' } | { readonly kind: 'stopped' }

/** A thread that writes the file of its data when it is stopped. */
function start(folder: { file(name: string): string }, onStop: string) {
  const lines = [
    "import { writeFileSync } from 'node:fs'",
    `import { openWorkerPort } from ${WORKER}`,
    'const port = openWorkerPort()',
    `port.onMessage(({ kind }) => { if (kind === 'stop') { writeFileSync(port.data, 'stopped'); ${onStop} } })`,
    "port.post({ kind: 'ready' })",
  ]
  writeFileSync(folder.file('entry.mjs'), lines.join('\n'))
  writeFileSync(folder.file('written'), '')
  const clock = createManualClock()
  const kinds: string[] = []
  const deaths: string[] = []
  const thread = startStoppableWorker<never, Message>(pathToFileURL(folder.file('entry.mjs')), folder.file('written'), {
    clock,
    onMessage: ({ kind }) => void kinds.push(kind),
    onDeath: ({ message }) => void deaths.push(message),
    stopMs: STOP_MS,
  })
  return { thread, clock, kinds, deaths, written: () => readFileSync(folder.file('written'), 'utf8') }
}

test('disposing waits until the thread confirms that it has stopped', async () => {
  using folder = makeTestFolder()
  const { thread, clock, kinds, deaths, written } = start(folder, "port.post({ kind: 'stopped' })")
  await until('it runs', () => kinds.length === 1)
  await thread[Symbol.asyncDispose]()
  assert.equal(written(), 'stopped')
  assert.deepEqual([kinds, deaths], [['ready'], []])
  assert.equal(clock.pendingTimers(), 0)
})

test('a thread that does not confirm in time is terminated', async () => {
  using folder = makeTestFolder()
  const { thread, clock, kinds, deaths, written } = start(folder, '')
  await until('it runs', () => kinds.length === 1)
  let isEnded = false
  const ended = thread[Symbol.asyncDispose]().then(() => {
    isEnded = true
  })
  await until('it received the stop', () => written() === 'stopped')
  await clock.advanceAsync(STOP_MS - 1)
  assert.equal(isEnded, false)
  await clock.advanceAsync(1)
  await ended
  assert.deepEqual(deaths, [])
})

test('a thread that has failed is ended without a stop', async () => {
  using folder = makeTestFolder()
  const { thread, clock, kinds, deaths, written } = start(folder, "port.post({ kind: 'stopped' })")
  await until('it runs', () => kinds.length === 1)
  thread.fail(new Error('no port'))
  await thread[Symbol.asyncDispose]()
  assert.deepEqual(deaths, ['no port'])
  assert.equal(written(), '')
  assert.equal(clock.pendingTimers(), 0)
})
