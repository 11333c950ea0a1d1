import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../core/random.ts'
import { type CommitmentStep, Commitments } from './commitments.ts'

const start = { headSlot: 0, finalizedSlot: -1, random: createSeededRandom(1) }
const show = (steps: readonly CommitmentStep[]) => steps.map(({ kind, slot }) => `${kind} ${slot}`)

test('the tower follows the newest block at its distances', () => {
  const levels = new Commitments({ confirmedSlots: 1, finalizedSlots: 3 }, start)
  assert.deepEqual(show(levels.advance(1, 'tower')), ['confirmed 0'])
  assert.deepEqual(show(levels.advance(2, 'tower')), ['confirmed 1'])
  assert.deepEqual(show(levels.advance(3, 'tower')), ['confirmed 2', 'finalized 0'])
  assert.deepEqual([levels.slot('confirmed'), levels.slot('finalized')], [2, 0])
})

test('under Alpenglow a block is finalized in its slot or in the next, and every second time directly after it is confirmed', () => {
  const levels = new Commitments({ confirmedSlots: 1, finalizedSlots: 31 }, start)
  const log: string[] = []
  let atOnce = 0
  for (let head = 1; head <= 400; head++) {
    const steps = show(levels.advance(head, 'alpenglow'))
    log.push(...steps)
    assert.ok(levels.slot('finalized') >= head - 1)
    assert.ok(levels.slot('confirmed') >= levels.slot('finalized'))
    if (levels.slot('finalized') === head) atOnce++
  }
  assert.ok(atOnce > 150 && atOnce < 250, `${atOnce} of 400`)
  for (let slot = 0; slot <= 398; slot++) {
    const confirmed = log.indexOf(`confirmed ${slot}`)
    const finalized = log.indexOf(`finalized ${slot}`)
    assert.ok(confirmed >= 0 && confirmed < finalized, `slot ${slot}`)
    assert.equal(log.lastIndexOf(`finalized ${slot}`), finalized)
  }
})

test('a change of the consensus never takes a level back, and leaves no block out', () => {
  const levels = new Commitments({ confirmedSlots: 1, finalizedSlots: 31 }, { ...start, headSlot: 100 })
  const finalized: number[] = []
  let before = levels.slot('finalized')
  assert.equal(before, 69)
  const modes = ['tower', 'alpenglow', 'tower', 'alpenglow'] as const
  for (let head = 101; head <= 260; head++) {
    const steps = levels.advance(head, modes[Math.floor((head - 101) / 40)] as (typeof modes)[number])
    finalized.push(...steps.filter(({ kind }) => kind === 'finalized').map(({ slot }) => slot))
    assert.ok(levels.slot('finalized') >= before)
    before = levels.slot('finalized')
  }
  assert.deepEqual(
    finalized,
    Array.from({ length: finalized.length }, (_, index) => 70 + index),
  )
  assert.ok(finalized.length > 180 - 40)
})
