import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
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
    requestProbe: () => void (probes += 1),
    onChange() {
      if (changes.at(-1) !== breaker.state) changes.push(breaker.state)
    },
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

describe('a failed response that may be due to its call', () => {
  const failAmbiguously = ({ breaker }: ReturnType<typeof setUp>, count: number) => {
    for (let at = 0; at < count; at++) breaker.recordAmbiguousFailure(false)
  }

  test('does not open it, however many there are: a probe decides, at most one in a second', () => {
    const on = setUp()
    failAmbiguously(on, 4)
    assert.equal(on.probes(), 0)
    failAmbiguously(on, 1000)
    assert.deepEqual([on.breaker.state, on.probes()], ['closed', 1])
    on.breaker.recordProbe(true)
    failAmbiguously(on, 1000)
    assert.deepEqual([on.breaker.state, on.probes()], ['closed', 1])
    on.clock.advance(1000)
    failAmbiguously(on, 1)
    assert.equal(on.probes(), 2)
    on.breaker.recordProbe(false)
    assert.equal(on.breaker.state, 'open')
  })

  test('makes the node suspect for ten seconds, where good probes but no good calls come between', () => {
    const on = setUp()
    for (let at = 0; at < 5; at++) {
      assert.equal(on.breaker.isSuspect, false)
      failAmbiguously(on, 1)
      on.breaker.recordProbe(true)
    }
    assert.deepEqual([on.breaker.isSuspect, on.breaker.state], [true, 'closed'])
    on.clock.advance(9999)
    failAmbiguously(on, 1)
    assert.equal(on.breaker.isSuspect, true)
    on.clock.advance(1)
    assert.equal(on.breaker.isSuspect, false)
    failAmbiguously(on, 4)
    on.breaker.record(true)
    failAmbiguously(on, 4)
    assert.equal(on.breaker.isSuspect, false)
    failAmbiguously(on, 1)
    assert.equal(on.breaker.isSuspect, true)
  })

  test('makes the node suspect by its share of the calls of ten seconds', () => {
    const on = setUp()
    for (let at = 0; at < 40; at++) {
      if (at % 2 === 0) on.breaker.record(true)
      else failAmbiguously(on, 1)
      assert.equal(on.breaker.isSuspect, at >= 19)
    }
    const served = setUp()
    for (let at = 0; at < 100; at++) {
      if (at % 3 !== 0) served.breaker.record(true)
      else failAmbiguously(served, 1)
    }
    assert.equal(served.breaker.isSuspect, false)
  })

  test('does not bring forward what other failures do', () => {
    const on = setUp()
    failAmbiguously(on, 1000)
    on.breaker.recordProbe(true)
    for (let at = 0; at < 4; at++) on.breaker.record(false)
    assert.equal(on.breaker.state, 'closed')
    on.breaker.record(false)
    assert.equal(on.breaker.state, 'open')
  })

  test('is decided at once where it is likely a fault of the node, and by a share of the calls too', () => {
    const refused = setUp()
    refused.breaker.recordAmbiguousFailure(true)
    assert.equal(refused.probes(), 1)
    refused.breaker.recordProbe(false)
    assert.equal(refused.breaker.state, 'open')
    const mixed = setUp()
    for (let at = 0; at < 20; at++) {
      if (at % 2 === 0) mixed.breaker.record(true)
      else mixed.breaker.recordAmbiguousFailure(false)
    }
    assert.deepEqual([mixed.probes(), mixed.breaker.recent()], [1, { calls: 20, failures: 10 }])
  })
})

test('property: is never open for longer than the maximum, and only a probe closes it', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.constantFrom('good', 'bad', 'ambiguous', 'probe-good', 'probe-bad', 'wait'), fc.nat(400)), {
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
          else if (step === 'ambiguous') breaker.recordAmbiguousFailure(waitMs % 2 === 0)
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
