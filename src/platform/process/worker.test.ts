import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { makeTestFolder } from '../files/test-folder.ts'
import { until } from './test-wait.ts'
import { openWorkerPort, processTimeMs, startWorker } from './worker.ts'

const OWN = JSON.stringify(new URL('./worker.ts', import.meta.url).href)

function entryOf(folder: { file(name: string): string }, body: string): URL {
  writeFileSync(
    folder.file('entry.mjs'),
    `import { openWorkerPort, processTimeMs } from ${OWN}\nconst port = openWorkerPort()\n${body}`,
  )
  return pathToFileURL(folder.file('entry.mjs'))
}

test('a thread gets its data, replies to messages and ends when it is disposed of', async () => {
  using folder = makeTestFolder()
  const entry = entryOf(folder, 'port.onMessage((message) => port.post([port.data, message, processTimeMs()]))')
  const messages: [{ a: number }, string, number][] = []
  {
    await using thread = startWorker<string, [{ a: number }, string, number]>(
      entry,
      { a: 1 },
      {
        onMessage: (message) => void messages.push(message),
        onDeath: (error) => assert.fail(error),
      },
    )
    thread.post('hello')
    await until('it replied', () => messages.length === 1)
  }
  const [data, text, timeMs] = messages[0] ?? assert.fail()
  assert.deepEqual([data, text], [{ a: 1 }, 'hello'])
  // Both threads count from the same moment.
  assert(Math.abs(processTimeMs() - timeMs) < 60_000)
})

test('reports the error of a thread that dies, and terminates one that hangs', async () => {
  using folder = makeTestFolder()
  const deaths: string[] = []
  const deps = { onMessage() {}, onDeath: (error: Error) => void deps.deaths.push(error.message), deaths }
  startWorker(entryOf(folder, "port.onMessage(() => { throw new Error('broken') })"), {}, deps).post('x')
  await until('its death is reported', () => deaths.length === 1)
  assert.deepEqual(deaths, ['broken'])
  const hanging = startWorker(entryOf(folder, 'port.onMessage(() => { for (;;) {} })'), {}, deps)
  hanging.post('x')
  await hanging[Symbol.asyncDispose]()
  assert.equal(deaths.length, 1, 'a requested end is not reported as a death')
})

test('in the main thread there is no port', () => assert.equal(openWorkerPort(), undefined))

test('the last messages of a thread are delivered before its death, also when the listener was busy', async () => {
  using folder = makeTestFolder()
  const entry = entryOf(folder, "port.post('one'); port.post('the reason')")
  const heard: string[] = []
  const ended = Promise.withResolvers<void>()
  startWorker<never, string>(
    entry,
    {},
    {
      onMessage: (message) => void heard.push(message),
      onDeath: (error) => ended.resolve(void heard.push(error.message)),
    },
  )
  // Long enough that the messages and the exit are both pending; the exit event is then emitted first.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  await ended.promise
  assert.deepEqual(heard, ['one', 'the reason', 'the thread ended with code 0'])
})

test('each thread has the young generation that it is started with, also under the flag with which the launcher limits that of main', () => {
  using folder = makeTestFolder()
  const OLD_MIB = 64
  const entry = entryOf(
    folder,
    "import { getHeapStatistics } from 'node:v8'\nport.post(getHeapStatistics().heap_size_limit / 2 ** 20)",
  )
  writeFileSync(
    folder.file('main.mjs'),
    `import { startWorker } from ${OWN}
for (const youngMib of [3, 6, 12]) {
  const limit = await new Promise((resolve, reject) =>
    startWorker(new URL('${entry.href}'), {}, { onMessage: resolve, onDeath: reject, youngMib, oldMib: ${OLD_MIB} }))
  console.log(limit - ${OLD_MIB})
}`,
  )
  const flags = ['--max-semi-space-size=4']
  const printed = execFileSync(process.execPath, [...flags, folder.file('main.mjs')], { encoding: 'utf8' })
  assert.deepEqual(printed.trim().split('\n').map(Number), [3, 6, 12])
})
