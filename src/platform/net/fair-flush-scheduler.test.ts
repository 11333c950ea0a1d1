import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createFairFlushScheduler } from './fair-flush-scheduler.ts'

function start() {
  const clock = createManualClock()
  const deferred: (() => void)[] = []
  const rounds = createFairFlushScheduler(clock, (run) => void deferred.push(run))
  return { clock, rounds, deferred, turn: () => deferred.shift()?.() }
}

describe('fair flush scheduler', () => {
  it('starts at once after a fast pass', () => {
    const { rounds, deferred, turn } = start()
    const story: string[] = []
    for (const name of ['a', 'b']) rounds.add({ flush: () => void story.push(name) })
    assert.equal(deferred.length, 1)
    turn()
    rounds.add({ flush: () => void story.push('c') })
    assert.equal(deferred.length, 1)
    turn()
    assert.deepEqual(story, ['a', 'b', 'c'])
  })

  it('yields within a pass, and pauses after it for half its length, at most 10 ms', () => {
    const { clock, rounds, deferred, turn } = start()
    let written = 0
    const writer = {
      flush() {
        written += 1
        clock.advance(0.1)
      },
    }
    for (let at = 0; at < 100; at++) rounds.add(writer)
    turn()
    assert(written > 0 && written < 100, `${written} in the first slice`)
    // Is added again while others still wait.
    rounds.add(writer)
    for (let turns = 0; turns < 20 && deferred.length > 0; turns++) turn()
    assert.equal(written, 100)
    clock.advance(4)
    assert.equal(written, 100)
    clock.advance(2)
    assert.equal(written, 101)

    for (let at = 0; at < 1000; at++) rounds.add(writer)
    for (let turns = 0; turns < 200 && (deferred.length > 0 || written === 101); turns++) {
      turn()
      clock.advance(1)
    }
    rounds.add(writer)
    assert.equal(written, 1101)
    clock.advance(11)
    turn()
    assert.equal(written, 1102)
  })
})
