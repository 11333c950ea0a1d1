import assert from 'node:assert/strict'
import { EventEmitter } from 'node:events'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createLogger, silentLogger } from '../telemetry/logger.ts'
import { createLifecycle } from './lifecycle.ts'
import { type SignalSource, watchSignals } from './signals.ts'

function make(options = {}) {
  const clock = createManualClock(1_000_000)
  return { clock, life: createLifecycle(options, { clock, log: silentLogger }) }
}

test('starting, ok, degraded with reasons and ages, ok again, draining', () => {
  const { clock, life } = make()
  assert.deepEqual(life.health(), { state: 'starting', reasons: [], startedMs: 1_000_000 })
  life.degraded('disk', 'full')
  assert.equal(life.health().state, 'starting')
  life.started()
  assert.equal(life.health().state, 'degraded')
  clock.advance(5000)
  life.degraded('disk', 'nearly full')
  life.degraded('store', 'locked')
  assert.deepEqual(life.health().reasons, [
    { part: 'disk', reason: 'nearly full', sinceMs: 1_000_000 },
    { part: 'store', reason: 'locked', sinceMs: 1_005_000 },
  ])
  assert(life.isReady())
  life.recovered('disk')
  life.recovered('store')
  assert.equal(life.health().state, 'ok')
  life.stop('SIGTERM')
  assert.equal(life.health().state, 'draining')
  assert(!life.isReady())
  life.started()
  assert.equal(life.health().state, 'draining')
})

test('a drain ends readiness, waits the lame-duck time, then closes in reverse order with the remaining time', async () => {
  const { clock, life } = make({ lameDuckMs: 5000, deadlineMs: 20_000 })
  const story: string[] = []
  life.started()
  life.use('store', { [Symbol.dispose]: () => void story.push('store') })
  life.defer('bundle', (leftMs) => void story.push(`bundle ${leftMs}`))
  life.use('shreds', { [Symbol.asyncDispose]: async () => void story.push('shreds') })
  life.onDraining(() => story.push('told'))
  life.onDraining(() => assert.fail('a hook that fails stops nothing'))
  life.stop('SIGTERM')
  assert(life.stopping.aborted)
  assert.deepEqual(story, ['told'])
  await clock.advanceAsync(4999)
  assert.deepEqual(story, ['told'])
  await clock.advanceAsync(1)
  assert.deepEqual(story, ['told', 'shreds', 'bundle 15000', 'store'])
  assert.deepEqual(await life.stopped, { clean: true, reason: 'SIGTERM' })
  assert.equal(clock.pendingTimers(), 0)
})

test('services with clients drain at the same time, each with all the time but what the closing needs', async () => {
  const { clock, life } = make({ lameDuckMs: 5000, deadlineMs: 25_000 })
  const story: string[] = []
  const slow = (name: string) => async (leftMs: number) => {
    story.push(`${name} ${leftMs}`)
    await new Promise<void>((resolve) => void clock.setTimer(leftMs, resolve))
    story.push(`${name} cut`)
  }
  life.defer('store', (leftMs) => void story.push(`store ${leftMs}`))
  life.deferClients({
    bundle: async (leftMs) => void story.push(`bundle ${leftMs}`),
    indexer: slow('indexer'),
    broken: () => Promise.reject(new Error('does not keep the others from it')),
  })
  life.stop('SIGTERM')
  await clock.advanceAsync(5000)
  assert.deepEqual(story, ['bundle 17000', 'indexer 17000'])
  await clock.advanceAsync(16_999)
  assert.equal(story.length, 2, 'the store is closed after all of them')
  await clock.advanceAsync(1)
  assert.deepEqual(story.slice(2), ['indexer cut', 'store 3000'])
  assert.equal((await life.stopped).clean, false, 'one has failed')
})

test('a short deadline keeps a quarter for the closing', async () => {
  const { clock, life } = make({ lameDuckMs: 0, deadlineMs: 1000 })
  const left: number[] = []
  life.deferClients({ bundle: async (leftMs) => void left.push(leftMs) })
  life.stop('SIGTERM')
  await clock.advanceAsync(0)
  assert.deepEqual(left, [750])
})

for (const [when, stuck] of [
  ['in the lame-duck time', 1000],
  ['while clients drain', 6000],
] as const)
  test(`a drain that is given up ${when} cuts clients off before it saves, and closes nothing more`, async () => {
    const { clock, life } = make()
    const story: string[] = []
    life.defer('store', () => void story.push('store'))
    life.onGivenUp('usage', async () => void story.push('saved'))
    life.deferClients({
      bundle: async () => {},
      indexer: (leftMs) => (leftMs === 0 ? Promise.resolve(void story.push('cut')) : new Promise(() => {})),
    })
    life.stop('SIGTERM')
    await clock.advanceAsync(stuck)
    life.stop('SIGINT')
    await clock.advanceAsync(0)
    assert.deepEqual(await life.stopped, { clean: false, reason: 'SIGTERM' })
    await clock.advanceAsync(30_000)
    assert.deepEqual(story, ['cut', 'saved'])
  })

test('clients that cannot be cut off do not keep the save waiting', async () => {
  const { clock, life } = make({ lameDuckMs: 0 })
  let saved = false
  life.deferClients({ stuck: () => new Promise(() => {}) })
  life.onGivenUp('usage', async () => void (saved = true))
  life.stop('SIGTERM')
  life.stop('SIGTERM')
  await clock.advanceAsync(999)
  assert.equal(saved, false)
  await clock.advanceAsync(1)
  assert(saved)
})

test('a second stop gives up waiting', async () => {
  const { clock, life } = make()
  life.defer('stuck', () => new Promise(() => {}))
  life.stop('SIGTERM')
  await clock.advanceAsync(6000)
  life.stop('SIGINT')
  assert.deepEqual(await life.stopped, { clean: false, reason: 'SIGTERM' })
})

test('a drain that is given up saves what it can, within a limit; only a complete one logs that it stopped', async () => {
  const clock = createManualClock()
  const logged: string[] = []
  const note = (_fields: object | string, message = '') => logged.push(message)
  const log = { ...silentLogger, info: note, warn: note, error: note }
  const drained = async (close: () => Promise<void>, save: () => Promise<void>) => {
    const life = createLifecycle({ lameDuckMs: 0, deadlineMs: 1000 }, { clock, log })
    life.defer('part', close)
    life.onGivenUp('usage', save)
    logged.length = 0
    life.stop('SIGTERM')
    await clock.advanceAsync(1000)
    await clock.advanceAsync(2000)
    return { ...(await life.stopped), logged: logged.filter((line) => line.startsWith('s')) }
  }
  let saved = 0
  const count = async () => void saved++
  const never = () => new Promise<void>(() => {})
  const ok = async () => {}
  assert.deepEqual((await drained(ok, count)).logged, ['stopped'])
  assert.equal(saved, 0)
  assert.deepEqual((await drained(never, count)).logged, ['stopped before everything was closed'])
  assert.equal(saved, 1)
  assert.equal((await drained(never, never)).clean, false)
  const failed = await drained(() => Promise.reject(new Error('full')), count)
  assert.deepEqual([failed.clean, failed.logged], [false, ['stopped with errors: see the lines before this one']])
})

test('gives up parts that do not close by the deadline', async () => {
  const { clock, life } = make({ lameDuckMs: 0, deadlineMs: 1000 })
  life.defer('stuck', () => new Promise(() => {}))
  life.stop('SIGTERM')
  await clock.advanceAsync(999)
  let done = false
  void life.stopped.then(() => {
    done = true
  })
  await clock.advanceAsync(0)
  assert.equal(done, false)
  await clock.advanceAsync(1)
  assert.equal((await life.stopped).clean, false)
})

test('one part that fails to close does not keep the others open', async () => {
  const { clock, life } = make({ lameDuckMs: 0 })
  let closed = false
  life.defer('good', () => {
    closed = true
  })
  life.defer('bad', () => Promise.reject(new Error('x')))
  life.stop('SIGTERM')
  await clock.advanceAsync(0)
  assert.deepEqual(await life.stopped, { clean: false, reason: 'SIGTERM' })
  assert(closed)
})

test('signals reach their callbacks; reloads run one at a time; a failed one is logged', async () => {
  const source = new EventEmitter()
  const lines: string[] = []
  const log = createLogger({ level: 'info', destination: { write: (line: string) => lines.push(line) } })
  const stops: string[] = []
  const waiting: PromiseWithResolvers<void>[] = []
  const watching = watchSignals({
    source: source as SignalSource,
    log,
    onStop: (signal) => void stops.push(signal),
    onReload() {
      const run = Promise.withResolvers<void>()
      waiting.push(run)
      return run.promise
    },
  })
  source.emit('SIGTERM')
  source.emit('SIGINT')
  assert.deepEqual(stops, ['SIGTERM', 'SIGINT'])
  const turn = () => new Promise((resolve) => setImmediate(resolve))
  source.emit('SIGHUP')
  source.emit('SIGHUP')
  source.emit('SIGHUP')
  await turn()
  assert.equal(waiting.length, 1)
  waiting[0]?.reject(new Error('bad config'))
  await turn()
  assert.equal(waiting.length, 2)
  assert.match(lines.join(''), /reload failed.*|bad config/)
  waiting[1]?.resolve()
  await turn()
  assert.equal(waiting.length, 2)
  watching[Symbol.dispose]()
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) assert.equal(source.listenerCount(signal), 0)
})

test('a reload that throws synchronously is logged too', async () => {
  const source = new EventEmitter()
  const lines: string[] = []
  using _watching = watchSignals({
    source: source as SignalSource,
    log: createLogger({ level: 'error', destination: { write: (line: string) => lines.push(line) } }),
    onStop() {},
    onReload() {
      throw new Error('at once')
    },
  })
  source.emit('SIGHUP')
  await new Promise((resolve) => setImmediate(resolve))
  assert.match(lines.join(''), /at once/)
})

test('a lame-duck time that takes the whole drain is half of it, so that requests can finish', async () => {
  const { clock, life } = make({ lameDuckMs: 5000, deadlineMs: 4000 })
  const left: number[] = []
  life.defer('server', (leftMs) => void left.push(leftMs))
  life.started()
  life.stop('test')
  clock.advance(1999)
  assert.deepEqual(left, [])
  clock.advance(1)
  await life.stopped
  assert.deepEqual(left, [2000])
})
