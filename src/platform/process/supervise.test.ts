import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { seedFor } from '../../core/test-seed.ts'
import { entryUrl } from './entry.ts'
import {
  type InstanceEvents,
  openSupervised,
  type Restart,
  type SuperviseDeps,
  type SuperviseOptions,
  supervise,
} from './supervise.ts'

const BACKOFF = { firstMs: 100, maxMs: 1600 }

type Fake = AsyncDisposable & { readonly events: InstanceEvents; isClosed: boolean }

/** Instances that do nothing by themselves; closing one takes `closeMs`. */
function rig(options: Partial<SuperviseOptions> = {}, { closeMs = 0, failsToStart = false } = {}) {
  const clock = createManualClock()
  const instances: Fake[] = []
  const restarts: Restart[] = []
  const start: SuperviseDeps<Fake>['start'] = (events) => {
    assert(
      instances.every(({ isClosed }) => isClosed),
      'two instances at once',
    )
    if (failsToStart) throw new Error('no such file')
    const instance: Fake = {
      events,
      isClosed: false,
      async [Symbol.asyncDispose]() {
        if (closeMs > 0) await new Promise<void>((resolve) => void clock.setTimer(closeMs, resolve))
        this.isClosed = true
      },
    }
    instances.push(instance)
    return instance
  }
  const supervised = supervise(
    { backoff: BACKOFF, ...options },
    { clock, random: createSeededRandom(1), start, onRestart: (restart) => void restarts.push(restart) },
  )
  const current = (): InstanceEvents => (instances.at(-1) as Fake).events
  return { clock, instances, restarts, supervised, current }
}

const GONE = new Error('gone')

test('restarts an instance that fails, with a delay that grows up to its maximum', async () => {
  const { clock, instances, restarts, supervised, current } = rig({ resetAfterMs: 60_000 })
  assert.equal(supervised.state, 'starting')
  for (let n = 0; n < 8; n++) {
    current().ready()
    assert.equal(supervised.state, 'running')
    current().failed(GONE)
    assert.equal(supervised.state, 'waiting')
    assert.equal(supervised.instance, undefined)
    const { delayMs } = restarts[n] as Restart
    const ceilingMs = Math.min(1600, 100 * 2 ** n)
    assert(delayMs >= ceilingMs / 2 && delayMs <= ceilingMs, `${delayMs} of ${ceilingMs}`)
    await clock.advanceAsync(delayMs - 1)
    assert.equal(instances.length, n + 1)
    await clock.advanceAsync(1)
    assert.equal(instances.length, n + 2)
    assert.equal(supervised.state, 'starting')
    assert.equal(supervised.instance, instances.at(-1))
  }
  assert.equal(supervised.restarts, 8)
  await supervised[Symbol.asyncDispose]()
})

test('an instance that was ready for resetAfterMs resets the delay; one that only started does not', async () => {
  const { clock, restarts, current } = rig({ resetAfterMs: 5000 })
  for (const readyMs of [0, 4999, undefined, 5000]) {
    if (readyMs === undefined) await clock.advanceAsync(10_000)
    else {
      current().ready()
      await clock.advanceAsync(readyMs)
    }
    current().failed(GONE)
    await clock.advanceAsync(1600)
  }
  const ceilings = restarts.map(({ delayMs }) => 100 * 2 ** Math.ceil(Math.log2(delayMs / 100)))
  assert.deepEqual(ceilings, [100, 200, 400, 100])
})

test('failed starts are counted until an instance is ready', async () => {
  const { clock, restarts, current } = rig()
  for (const isReady of [false, false, true, false]) {
    if (isReady) current().ready()
    current().failed(GONE)
    await clock.advanceAsync(1600)
  }
  assert.deepEqual(
    restarts.map(({ failedStarts }) => failedStarts),
    [1, 2, 0, 1],
  )
})

test('a start that throws counts as a failure and is repeated', async () => {
  const { clock, restarts, supervised } = rig({}, { failsToStart: true })
  await clock.advanceAsync(10_000)
  assert(restarts.length > 3)
  assert.match(restarts[0]?.error.message ?? '', /no such file/)
  await supervised[Symbol.asyncDispose]()
  assert.equal(clock.pendingTimers(), 0)
})

test('an instance that fails while start() runs is closed and replaced', async () => {
  const clock = createManualClock()
  let starts = 0
  let closed = 0
  await using supervised = supervise(
    { backoff: BACKOFF },
    {
      clock,
      random: createSeededRandom(1),
      start(events) {
        starts += 1
        if (starts === 1) events.failed(GONE)
        return {
          async [Symbol.asyncDispose]() {
            closed += 1
          },
        }
      },
    },
  )
  assert.equal(supervised.state, 'waiting')
  await clock.advanceAsync(100)
  assert.deepEqual({ starts, closed, state: supervised.state }, { starts: 2, closed: 1, state: 'starting' })
})

test('the next instance starts only after the failed one is closed', async () => {
  const { clock, instances, current } = rig({}, { closeMs: 5000 })
  current().failed(GONE)
  await clock.advanceAsync(4999)
  assert.equal(instances.length, 1)
  await clock.advanceAsync(101)
  assert.equal(instances.length, 2)
})

test('an instance that cannot be closed is replaced all the same', async () => {
  const clock = createManualClock()
  const seen: InstanceEvents[] = []
  const supervised = supervise(
    { backoff: BACKOFF },
    {
      clock,
      random: createSeededRandom(1),
      start(events) {
        seen.push(events)
        return { [Symbol.asyncDispose]: () => (seen.length === 1 ? Promise.reject(GONE) : Promise.resolve()) }
      },
    },
  )
  seen[0]?.failed(GONE)
  await clock.advanceAsync(BACKOFF.maxMs)
  assert.deepEqual([seen.length, supervised.state], [2, 'starting'])
  await supervised[Symbol.asyncDispose]()
})

test('events of an instance that has failed have no effect on the next one', async () => {
  const { clock, instances, supervised, current } = rig()
  const first = current()
  first.failed(GONE)
  first.failed(GONE)
  await clock.advanceAsync(100)
  first.ready()
  assert.equal(supervised.state, 'starting')
  current().ready()
  first.failed(GONE)
  assert.equal(supervised.state, 'running')
  assert.equal(instances.length, 2)
})

test('stop while waiting cancels the restart', async () => {
  const { clock, instances, supervised, current } = rig()
  current().ready()
  current().failed(GONE)
  await clock.advanceAsync(1)
  await supervised[Symbol.asyncDispose]()
  assert.equal(supervised.state, 'stopped')
  assert.equal(clock.pendingTimers(), 0)
  await clock.advanceAsync(10_000)
  assert.equal(instances.length, 1)
})

test('stop while the failed instance is being closed waits for it and starts none', async () => {
  const { clock, instances, supervised, current } = rig({}, { closeMs: 50 })
  current().failed(GONE)
  const stopped = supervised[Symbol.asyncDispose]()
  await clock.advanceAsync(10_000)
  await stopped
  assert.deepEqual(
    instances.map(({ isClosed }) => isClosed),
    [true],
  )
})

test('stop while starting closes the instance and rejects the first start', async () => {
  const { instances, supervised, current } = rig()
  await Promise.all([supervised[Symbol.asyncDispose](), supervised[Symbol.asyncDispose]()])
  await assert.rejects(supervised.started, /stopped before/)
  assert.equal(instances[0]?.isClosed, true)
  current().ready()
  current().failed(GONE)
  assert.equal(supervised.state, 'stopped')
  assert.equal(supervised.restarts, 0)
})

test('gives up after firstStartsMax failures, but restarts without limit once it was ready', async () => {
  const never = rig({ firstStartsMax: 2 })
  never.current().failed(new Error('first'))
  await never.clock.advanceAsync(100)
  never.current().failed(new Error('second'))
  await assert.rejects(never.supervised.started, /second/)
  assert.equal(never.supervised.state, 'stopped')
  assert(never.instances.every(({ isClosed }) => isClosed))
  assert.equal(never.restarts.length, 1)
  await never.clock.advanceAsync(10_000)
  assert.equal(never.instances.length, 2)

  const once = rig({ firstStartsMax: 1 })
  once.current().ready()
  await once.supervised.started
  for (let n = 0; n < 5; n++) {
    once.current().failed(GONE)
    await once.clock.advanceAsync(1600)
  }
  assert.equal(once.instances.length, 6)
})

test('replaces an instance that is silent for livenessMs, and no other', async () => {
  const { clock, restarts, supervised, current } = rig({ livenessMs: 1000 })
  current().ready()
  for (let n = 0; n < 5; n++) {
    await clock.advanceAsync(900)
    current().alive()
  }
  assert.equal(supervised.restarts, 0)
  await clock.advanceAsync(1250)
  assert.match(restarts[0]?.error.message ?? '', /no heartbeat for 1000 ms/)
  await supervised[Symbol.asyncDispose]()
  assert.equal(clock.pendingTimers(), 0)
})

test('a first start without a heartbeat fails with the name of the part, and not as a bug', async () => {
  const { clock, supervised } = rig({ name: 'the thread relay', livenessMs: 1000, firstStartsMax: 1 })
  await clock.advanceAsync(1250)
  await assert.rejects(supervised.started, {
    code: 'start-timeout',
    message: 'the thread relay sent no heartbeat for 1000 ms while it started',
  })
})

test('a stall of the supervising thread does not count as silence of the instance', () => {
  // After a stall the timer of the runtime runs once, however long the stall was.
  const clock = createManualClock()
  let tick = (): void => {}
  const stalling = {
    ...clock,
    setRepeating: (_ms: number, run: () => void) => ((tick = run), clock.setTimer(1e9, run)),
  }
  const supervised = supervise(
    { backoff: BACKOFF, livenessMs: 1000 },
    { clock: stalling, random: createSeededRandom(1), start: () => ({ [Symbol.asyncDispose]: async () => {} }) },
  )
  clock.advance(60_000)
  tick()
  assert.equal(supervised.restarts, 0)
})

test('an instance that opens asynchronously is ready when open, and closed when the stop comes first', async () => {
  const clock = createManualClock()
  const opening = Promise.withResolvers<AsyncDisposable>()
  let closed = 0
  const value = {
    async [Symbol.asyncDispose]() {
      closed += 1
    },
  }
  const deps = { clock, random: createSeededRandom(1) }
  const ready = supervise(
    { backoff: BACKOFF },
    { ...deps, start: (events) => openSupervised(events, async () => value) },
  )
  await ready.started
  assert.equal(ready.instance?.value, value)

  const early = supervise(
    { backoff: BACKOFF },
    { ...deps, start: (events) => openSupervised(events, () => opening.promise) },
  )
  const stopped = early[Symbol.asyncDispose]()
  opening.resolve(value)
  await stopped
  assert.equal(closed, 1)

  const broken = supervise(
    { backoff: BACKOFF, firstStartsMax: 1 },
    { ...deps, start: (events) => openSupervised(events, () => Promise.reject(GONE)) },
  )
  await assert.rejects(broken.started, GONE)
})

test('under any order of events at most one instance is open, and a stop leaves none', async () => {
  const step = fc.oneof(
    fc.constantFrom('ready' as const, 'failed' as const, 'alive' as const, 'stop' as const),
    fc.integer({ min: 0, max: 3000 }),
  )
  const property = fc.asyncProperty(
    fc.array(step, { maxLength: 40 }),
    fc.nat(400),
    fc.option(fc.integer({ min: 100, max: 4000 }), { nil: undefined }),
    async (steps, closeMs, livenessMs) => {
      const { clock, instances, supervised, restarts, current } = rig({ livenessMs }, { closeMs })
      let hasStopped = false
      for (const next of steps) {
        if (next === 'stop') {
          hasStopped = true
          void supervised[Symbol.asyncDispose]()
        } else if (typeof next === 'number') await clock.advanceAsync(next)
        else current()[next](GONE)
        assert(instances.filter(({ isClosed }) => !isClosed).length <= 1)
        assert.equal(supervised.state === 'stopped', hasStopped)
        assert.equal(supervised.instance !== undefined, ['starting', 'running'].includes(supervised.state))
        assert.equal(supervised.restarts, restarts.length)
      }
      if (!hasStopped && supervised.state === 'waiting') {
        await clock.advanceAsync(closeMs + BACKOFF.maxMs)
        assert.notEqual(instances.length, 1, 'a failed instance is always replaced')
      }
      const count = instances.length
      const stopped = supervised[Symbol.asyncDispose]()
      await clock.advanceAsync(10_000)
      await stopped
      assert(instances.length === count && instances.every(({ isClosed }) => isClosed))
      assert.equal(clock.pendingTimers(), 0)
    },
  )
  await fc.assert(property, seedFor('supervise'))
})

test('an entry is named as source and found as JavaScript in the published package', () => {
  const source = new URL('file:///app/src/shreds/relay/thread.ts')
  assert.equal(entryUrl(source, 'file:///app/src/platform/process/entry.ts').href, source.href)
  assert.equal(entryUrl(source, 'file:///app/platform/process/entry.js').href, 'file:///app/src/shreds/relay/thread.js')
})
