import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { createManualClock } from '../core/clock.ts'
import { createSeededRandom } from '../core/random.ts'
import { seedFor } from '../core/test-seed.ts'
import { type BreakerState, createBreaker } from './breaker.ts'
import { parseUpstreamsOptions } from './options.ts'

const options = parseUpstreamsOptions().breaker

function setUp(seed = 1) {
  const clock = createManualClock()
  const changes: BreakerState[] = []
  let probes = 0
  const breaker = createBreaker(options, {
    clock,
    random: createSeededRandom(seed),
    onHalfOpen: () => void (probes += 1),
    onChange: (state) => changes.push(state),
  })
  return { clock, breaker, changes, probes: () => probes }
}

test('opens after five failures in a row; one success resets the count', () => {
  const { breaker } = setUp()
  for (const isGood of [false, false, false, false, true, false, false, false, false]) breaker.record(isGood)
  assert.equal(breaker.state, 'closed')
  breaker.record(false)
  assert.equal(breaker.state, 'open')
})

test('opens when half of at least twenty recent calls failed, though never five in a row', () => {
  const { breaker, clock } = setUp()
  for (let at = 0; at < 19; at++) breaker.record(at % 2 === 0)
  assert.equal(breaker.state, 'closed')
  breaker.record(false)
  assert.equal(breaker.state, 'open')
  const old = setUp()
  for (let at = 0; at < 19; at++) old.breaker.record(at % 2 === 0)
  old.clock.advance(11_000)
  old.breaker.record(false)
  assert.equal(old.breaker.state, 'closed', 'what is long past does not count')
  assert.ok(clock.pendingTimers() === 1)
})

test('requests one probe when half-open: success closes, failure opens for longer, old calls change nothing', () => {
  const { breaker, clock, probes, changes } = setUp()
  for (let at = 0; at < 5; at++) breaker.recordProbe(false)
  assert.equal(breaker.state, 'open')
  breaker.record(true)
  breaker.recordProbe(true)
  assert.equal(breaker.state, 'open')
  clock.advance(100)
  assert.deepEqual([breaker.state, probes()], ['half-open', 1])
  breaker.record(true)
  breaker.record(false)
  assert.equal(breaker.state, 'half-open')
  breaker.recordProbe(false)
  assert.equal(breaker.state, 'open')
  clock.advance(200)
  breaker.recordProbe(true)
  assert.equal(breaker.state, 'closed')
  assert.deepEqual(changes, ['open', 'half-open', 'open', 'half-open', 'closed'])
  assert.equal(clock.pendingTimers(), 0)
})

test('keeps growing the delay for a node that fails soon after recovery, and resets it for a stable one', () => {
  const { breaker, clock, probes } = setUp()
  const fail = () => {
    for (let at = 0; at < 5; at++) breaker.record(false)
  }
  const openForMs = () => {
    fail()
    const fromMs = clock.monotonicMs()
    const before = probes()
    while (probes() === before) clock.advance(1)
    breaker.recordProbe(true)
    return clock.monotonicMs() - fromMs
  }
  const first = openForMs()
  const soon = [openForMs(), openForMs(), openForMs()]
  assert.ok(first <= 100 && (soon[2] as number) > 300, `${first}, ${soon.join()}`)
  clock.advance(10_000)
  assert.ok(openForMs() <= 100)
})

test('property: is never open for longer than the maximum, and only a probe closes it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('good', 'bad', 'probe-good', 'probe-bad', 'wait'), fc.nat(400)), {
        maxLength: 300,
      }),
      fc.integer(),
      (steps, seed) => {
        const { breaker, clock, changes } = setUp(seed)
        let openedAtMs: number | undefined
        for (const [step, waitMs] of steps) {
          const before = breaker.state
          const changed = changes.length
          if (step === 'wait') clock.advance(waitMs)
          else if (step.startsWith('probe')) breaker.recordProbe(step === 'probe-good')
          else breaker.record(step === 'good')
          const after = breaker.state
          if (before === 'open' && after === 'open' && changed === changes.length) {
            assert.ok(clock.monotonicMs() - (openedAtMs as number) <= options.maxMs)
          } else if (after === 'open') openedAtMs = clock.monotonicMs()
          if (before !== 'closed' && after === 'closed') assert.deepEqual([before, step], ['half-open', 'probe-good'])
          if (before === 'closed' && after !== 'closed') assert.ok(step === 'bad' || step === 'probe-bad')
        }
      },
    ),
    seedFor('breaker'),
  )
})
