import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { type Clock, createManualClock } from '../../../core/clock.ts'
import { isServiceError } from '../../../core/error.ts'
import { createSharedLimits } from '../../../gateway/limits.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import { createMemoryCells } from '../../../platform/process/memory-cells.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { until } from '../../../platform/process/test-wait.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { createThreadMetrics } from '../../../platform/telemetry/merged-metrics.ts'
import { configSchema } from '../config/config.ts'
import { withPort } from '../config/listener.ts'
import { createHealthReports } from './health-reports.ts'
import type { ThreadReady } from './start-data.ts'
import { methodsOf, startSupervisedThread } from './supervised-thread.ts'
import { youngMibOf } from './thread-instance.ts'

const ENTRY = new URL('../../../../test/support/process/echo-thread.ts', import.meta.url)

type Given = {
  readonly listen?: string
  readonly clock?: Clock
  /** The start takes until this has a value. */
  readonly released?: SharedArrayBuffer
  readonly reserve?: () => Promise<AsyncDisposable>
}

const LISTEN = '127.0.0.1:0'

async function start(t: TestContext, given: Given = {}) {
  const { listen = LISTEN } = given
  const { thread: starting, ...rest } = await begin(t, listen, given)
  return { ...rest, thread: await starting }
}

/** The thread is being started. */
async function begin(t: TestContext, listen: string, { clock = systemClock, released, reserve }: Given) {
  const stateDir = await mkdtemp(join(tmpdir(), 'sluice-thread-'))
  t.after(() => rm(stateDir, { recursive: true }))
  const config = configSchema.parse({ memory: { residentBytesMax: 64 * 2 ** 20 } })
  const lines: Record<string, unknown>[] = []
  const waiting: { readonly message: string; found(): void }[] = []
  const state = new Map<string, string>()
  const refused: string[] = []
  const starts: (ThreadReady | undefined)[] = []
  const limits = createSharedLimits({ threads: 4 })
  const memoryCells = createMemoryCells({ threads: 4 })
  const metrics = createThreadMetrics()
  let ends = 0
  const lifecycle = {
    degraded: (part: string, reason: string) => void state.set(part, reason),
    recovered(part: string) {
      state.delete(part)
      if (part === 'thread sender') for (const one of waiting) if (one.message === 'ready') one.found()
    },
  }
  const thread = startSupervisedThread(
    {
      name: 'sender',
      entry: ENTRY,
      reserve,
      start(ready) {
        starts.push(ready)
        const sender = withPort(
          { ...config.sender, listen },
          ready?.addresses['sender']?.port ?? Number(listen.split(':')[1]),
        )
        const settings = { config: { ...config, sender }, stateDir, loaded: { folder: stateDir, file: undefined } }
        return {
          ...{ name: 'sender', index: 3, settings, nodes: [], drainedNodes: [], access: undefined },
          ...{ limits, memory: memoryCells, metrics: metrics.families, decodedOutput: released },
        }
      },
    },
    {
      log: silentLogger,
      clock,
      random: secureRandom,
      lifecycle,
      health: createHealthReports(lifecycle),
      refusals: { record: ({ requestId }) => void refused.push(requestId) },
      writeLog(line) {
        const record = JSON.parse(line) as Record<string, unknown>
        lines.push(record)
        for (const one of waiting) if (one.message === record['msg']) one.found()
      },
      methods: { 'node-health': () => undefined },
      notifications: {
        metric: metrics.add,
        'bookings-requested'() {},
        'probe-requested'() {},
        'child-started'() {},
        'child-ended'() {},
      },
      onEnd: () => void (ends += 1),
    },
  )
  t.after(async () => (await thread.catch(() => undefined))?.[Symbol.asyncDispose]())
  const next = (message: string) => new Promise<void>((resolve) => void waiting.push({ message, found: resolve }))
  return { thread, lines, next, state, refused, starts, ends: () => ends }
}

test('a thread serves: calls, log lines with its name, faults, refusals, lame duck and drain', async (t) => {
  const { thread, lines, state, refused } = await start(t)
  assert.equal(await thread.control('echo', 'hello'), 'hello')
  assert.deepEqual(thread.details, { nodes: 0 })
  assert.deepEqual([lines[0]?.['msg'], lines[0]?.['thread'], lines[0]?.['index']], ['serves', 'sender', 3])
  await thread.control('degrade', undefined)
  assert.equal(state.get('sender'), 'asked to')
  await thread.control('refuse', undefined)
  assert.deepEqual(refused, ['r1'])
  thread.notify('log-level', 'error')
  assert.equal(await thread.control('level', undefined), 'error')
  thread.notify('log-level', 'info')
  thread.beginLameDuck()
  assert.equal(await thread.control('lame-duck', undefined), true)
  await thread.drain(250)
  assert.equal(lines.find(({ msg }) => msg === 'drained')?.['deadlineMs'], 250)
  const local: ControlMethods = { echo: () => 'not running' }
  assert.equal(await methodsOf(thread, local)['echo']?.('x' as never, { signal: new AbortController().signal }), 'x')
  assert.equal(
    methodsOf(undefined, local)['echo']?.('x' as never, { signal: new AbortController().signal }),
    'not running',
  )
})

test('closing a thread closes its service first', async (t) => {
  const { thread, lines, ends } = await start(t)
  await thread[Symbol.asyncDispose]()
  assert.equal(lines.at(-1)?.['msg'], 'closed')
  assert.equal(ends(), 1)
  await assert.rejects(thread.control('echo', 1), /being restarted/)
})

test('an error of the first start is thrown as it is, with its fix', async (t) => {
  await assert.rejects(
    start(t, { listen: 'refused:1' }),
    (error) => isServiceError(error, 'address-in-use') && error.fix === 'choose another',
  )
})

test('a start that takes longer than a blocked event loop may is not given up', async (t) => {
  const clock = createManualClock()
  const released = new SharedArrayBuffer(4)
  const { thread, lines } = await begin(t, LISTEN, { clock, released })
  const isStarted = thread.then(
    () => true,
    () => false,
  )
  const linesOf = () => lines.filter(({ msg }) => msg === 'is being started').length
  for (let times = 0; times < 3; times++) {
    // Longer than the second between two heartbeats.
    const from = linesOf()
    await until('its event loop runs', () => linesOf() >= from + 15)
    await clock.advanceAsync(30_000)
  }
  Atomics.store(new Int32Array(released), 0, 1)
  assert.equal(await isStarted, true)
})

test('a thread that waits for its ports before it is started again is not replaced', async (t) => {
  const clock = createManualClock()
  const ports = Promise.withResolvers<AsyncDisposable>()
  const reserved = () => ports.resolve({ async [Symbol.asyncDispose]() {} })
  t.after(reserved)
  let reserving = 0
  const reserve = () => {
    reserving += 1
    return ports.promise
  }
  const { thread, next, state, starts } = await start(t, { clock, reserve })
  await thread.control('throw', undefined)
  await until('it has ended', () => state.has('thread sender'))
  await until('it waits for its ports', async () => {
    await clock.advanceAsync(100)
    return reserving > 0
  })
  await clock.advanceAsync(60_000)
  assert.equal(state.get('thread sender'), 'the thread ended unexpectedly and is being restarted')
  const restarted = next('ready')
  reserved()
  await restarted
  assert.equal(starts.length, 2)
})

for (const [method, cause] of [
  ['throw', 'an uncaught error'],
  ['exhaust', 'no memory'],
] as const)
  test(`a thread that dies of ${cause} is started again on its port, and its reports end`, async (t) => {
    const { thread, next, state, starts, ends } = await start(t)
    const { port } = thread.addresses['sender'] ?? {}
    await thread.control('degrade', undefined)
    const restarted = next('ready')
    await thread.control(method, undefined).catch(() => {})
    await restarted
    assert.equal(await thread.control('echo', 'again'), 'again')
    assert.equal(thread.addresses['sender']?.port, port)
    assert.equal(thread.restarts, 1)
    assert.equal(starts.at(-1)?.addresses['sender']?.port, port)
    assert.equal(ends(), 1)
    assert.equal(state.size, 0)
  })

test('a thread that is started again during the lame-duck time is a lame duck too', async (t) => {
  const { thread, next } = await start(t)
  thread.beginLameDuck()
  const restarted = next('ready')
  await thread.control('throw', undefined)
  await restarted
  assert.equal(await thread.control('lame-duck', undefined), true)
})

test('a thread that dies after the drain is not started again: it would listen for new clients', async (t) => {
  const { thread, starts, ends } = await start(t)
  await thread.drain(250)
  await thread.control('throw', undefined)
  await until('it has ended', () => ends() === 1)
  assert.equal(thread.isRunning, false)
  // Longer than the first delay before a restart.
  await new Promise((resolve) => void systemClock.setTimer(600, () => resolve(undefined)))
  assert.equal(starts.length, 1)
})

for (const [when, method] of [
  ['before', 'throw'],
  ['during', 'throw-in-drain'],
] as const)
  test(`a thread that dies ${when} the drain counts as drained, and is not started again`, async (t) => {
    const { thread, state, starts, ends } = await start(t)
    await thread.control(method, undefined)
    if (method === 'throw') await until('it has ended', () => state.has('thread sender'))
    await thread.drain(60_000)
    assert.equal(ends(), 1)
    assert.equal(thread.isRunning, false)
    // Longer than the first delay before a restart.
    await new Promise((resolve) => void systemClock.setTimer(600, () => resolve(undefined)))
    assert.equal(starts.length, 1)
  })

test('a thread has less memory for new objects where only the embedded chains run', () => {
  const nodes = [{ name: 'a', rpc: 'https://a.example.net', ws: 'wss://a.example.net', grpc: 'https://a.example.net' }]
  assert.ok(youngMibOf(configSchema.parse({})) < youngMibOf(configSchema.parse({ upstreams: { nodes } })))
})
