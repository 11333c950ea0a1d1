import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSlicedChecks } from './sliced-checks.ts'

/** A check takes `checkMs`; the other work of the event loop takes `otherMs` in each turn. */
function rig({ checkMs, otherMs = 0 }: { readonly checkMs: number; readonly otherMs?: number }) {
  let nowMs = 1000
  let next: (() => void) | undefined
  const checked: number[] = []
  const checks = createSlicedChecks<number>(
    (item) => {
      nowMs += checkMs
      checked.push(item)
    },
    { nowMs: () => nowMs, nextTurn: (run) => void (next = run) },
  )
  return {
    checks,
    checked,
    nowMs: () => nowMs,
    /** How long the checks of the next turn take; undefined where none are left. */
    turn(): number | undefined {
      const run = next
      if (run === undefined) return undefined
      next = undefined
      nowMs += otherMs
      const fromMs = nowMs
      run()
      return nowMs - fromMs
    },
  }
}

const range = (count: number) => Array.from({ length: count }, (_, at) => at)

test('a few items are checked at once', () => {
  const { checks, checked, turn } = rig({ checkMs: 0.02 })
  checks.check([1, 2, 3])
  assert.deepEqual(checked, [1, 2, 3])
  assert.equal(turn(), undefined)
})

test('many items are checked in short slices, each once, in order', () => {
  const { checks, checked, nowMs, turn } = rig({ checkMs: 0.02 })
  checks.check(range(10_000))
  assert.ok(nowMs() - 1000 < 6, 'the first slice')
  for (let ms = turn(); ms !== undefined; ms = turn()) assert.ok(ms < 6, `${ms} ms`)
  assert.deepEqual(checked, range(10_000))
})

test('items that wait for long get larger slices, so that a busy event loop does not delay them beyond a second', () => {
  const { checks, checked, nowMs, turn } = rig({ checkMs: 0.02, otherMs: 40 })
  checks.check(range(10_000))
  for (let ms = turn(); ms !== undefined; ms = turn()) assert.ok(ms < 16, `${ms} ms`)
  assert.equal(checked.length, 10_000)
  assert.ok(nowMs() - 1000 < 1000, `${nowMs() - 1000} ms`)
})

test('a check that is repeated all the time reaches every item, and none of them twice before the others', () => {
  const { checks, checked, turn } = rig({ checkMs: 1 })
  const repeats = 40
  for (let times = 0; times < repeats; times++) {
    checks.check(range(50))
    turn()
  }
  const timesOf = range(50).map((item) => checked.filter((one) => one === item).length)
  assert.ok(Math.max(...timesOf) - Math.min(...timesOf) <= 1, timesOf.join(' '))
  assert.ok(Math.min(...timesOf) >= 3)
})

test('after the end nothing more is checked', () => {
  const { checks, checked, turn } = rig({ checkMs: 1 })
  checks.check(range(50))
  const before = checked.length
  checks[Symbol.dispose]()
  turn()
  assert.equal(checked.length, before)
})
