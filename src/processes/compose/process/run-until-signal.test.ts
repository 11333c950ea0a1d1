import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { createManualClock } from '../../../core/clock.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { createLifecycle } from '../../../platform/process/lifecycle.ts'
import { listenAsServiceManager } from '../../../platform/process/test-service-manager.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { untilRevision } from '../access/demo.ts'
import { runUntilSignal } from './run-until-signal.ts'

function fakeProcess() {
  return Object.assign(new EventEmitter(), { env: {}, pid: 1, exitCode: undefined as number | undefined, exit() {} })
}

test('a signal during the start stops the process in order after the start', { timeout: 5000 }, async () => {
  const process = fakeProcess()
  const lifecycle = createLifecycle(
    { lameDuckMs: 0, deadlineMs: 1000 },
    { clock: createManualClock(), log: silentLogger },
  )
  const closed: string[] = []
  lifecycle.defer('service', () => void closed.push('service'))
  const ready = Promise.withResolvers<void>()
  const running = runUntilSignal(process, silentLogger, async () => {
    await ready.promise
    return { lifecycle }
  })
  process.emit('SIGTERM')
  ready.resolve()
  await running
  assert.deepEqual(closed, ['service'])
  assert.equal(process.exitCode, undefined, 'a clean end')
  assert.equal(process.listenerCount('SIGTERM'), 0)
})

test('a process whose drain is given up ends right after what it has saved', { timeout: 5000 }, async () => {
  const events: string[] = []
  const process = Object.assign(fakeProcess(), { exit: () => void events.push('exit') })
  const clock = createManualClock()
  const lifecycle = createLifecycle({ lameDuckMs: 0 }, { clock, log: silentLogger })
  lifecycle.defer('stuck', () => new Promise(() => {}))
  lifecycle.onGivenUp('usage', async () => void events.push('saved'))
  const running = runUntilSignal(process, silentLogger, async () => ({ lifecycle }))
  await new Promise((resolve) => setImmediate(resolve))
  process.emit('SIGTERM')
  process.emit('SIGTERM')
  await running
  assert.deepEqual(events, ['saved', 'exit'])
  assert.equal(process.exitCode, 1)
})

test('Ctrl-C aborts the start: its error is not reported, and the exit code is 130', { timeout: 5000 }, async () => {
  const process = fakeProcess()
  const closed: string[] = []
  const running = runUntilSignal(process, silentLogger, async (starting) => {
    await using opening = new AsyncDisposableStack()
    opening.defer(() => void closed.push('opened before'))
    await new Promise((resolve) => starting.addEventListener('abort', resolve))
    starting.throwIfAborted()
    throw new Error('not reached')
  })
  await Promise.resolve()
  process.emit('SIGINT')
  await running
  assert.deepEqual(closed, ['opened before'])
  assert.equal(process.exitCode, 130)
})

test('the service manager learns of a stop during the start, whose time it would else extend', async () => {
  using position = makeTestFolder()
  const env = { NOTIFY_SOCKET: position.file('notify') }
  using heard = await listenAsServiceManager(env.NOTIFY_SOCKET)
  const process = Object.assign(fakeProcess(), { env })
  const running = runUntilSignal(process, silentLogger, async (starting) => {
    process.emit('SIGTERM')
    starting.throwIfAborted()
    throw new Error('not reached')
  })
  await running
  assert.deepEqual(heard.all(), ['STOPPING=1'])
})

test('an error of the start without a signal is reported', { timeout: 5000 }, async () => {
  const failing = runUntilSignal(fakeProcess(), silentLogger, () => Promise.reject(new Error('no port')))
  await assert.rejects(failing, /no port/)
})

test('a second Ctrl-C during the start ends the process at once', { timeout: 5000 }, async () => {
  const exited = Promise.withResolvers<void>()
  const process = Object.assign(fakeProcess(), { exit: () => exited.resolve() })
  const stuck = Promise.withResolvers<never>()
  const running = runUntilSignal(process, silentLogger, () => stuck.promise)
  for (let n = 0; n < 10; n++) await Promise.resolve()
  process.emit('SIGINT')
  process.emit('SIGINT')
  await exited.promise
  assert.equal(process.exitCode, 130)
  stuck.reject(new Error('ended'))
  await running
})

test('the demo card waits until the process has loaded its token', async () => {
  let revision = 1
  let changed = () => {}
  const access = {
    snapshot: () => ({ revision }),
    onChange(listener: () => void) {
      changed = listener
      return { [Symbol.dispose]() {} }
    },
  } as unknown as Parameters<typeof untilRevision>[0]
  let isDone = false
  const waiting = untilRevision(access, 3).then(() => (isDone = true))
  for (const next of [2, 3]) {
    await Promise.resolve()
    assert.equal(isDone, false, `at revision ${revision}`)
    revision = next
    changed()
    await Promise.resolve()
  }
  await waiting
})
