import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../core/clock.ts'
import { openNumberFile } from '../../platform/files/number.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { type LastEvent, type LastEventStore, openLastEvent } from './last-event.ts'

const UNKNOWN_MS = 30_000
const HOUR_MS = 3_600_000

function openIn(folder: ReturnType<typeof makeTestFolder>, clock: ManualClock, faults: unknown[] = []): LastEvent {
  const store = openNumberFile(folder.file('last-event'))
  return openLastEvent({ clock, store, unknownAgeMs: UNKNOWN_MS, onFault: (error) => void faults.push(error) })
}

describe('the age of the last event', () => {
  test('counts from the opening before the first event ever, and nothing is stored', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    for (const run of [1, 2]) {
      await using last = openIn(folder, clock)
      assert.equal(last.ageMs, 0, `run ${run}`)
      clock.advance(5000)
      assert.equal(last.ageMs, 5000)
    }
  })

  test('continues in the next process, after an ordinary stop exactly', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    {
      await using last = openIn(folder, clock)
      for (let at = 0; at < 7; at++) {
        clock.advance(400)
        last.arrived()
      }
      clock.advance(300)
    }
    const later = createManualClock(clock.nowMs() + HOUR_MS)
    await using last = openIn(folder, later)
    assert.equal(last.ageMs, HOUR_MS + 300)
    later.advance(50)
    assert.equal(last.ageMs, HOUR_MS + 350)
    last.arrived()
    assert.equal(last.ageMs, 0)
  })

  test('after a kill at most the last second is missing, with at most one write a second', async () => {
    const clock = createManualClock()
    const written: number[] = []
    const store: LastEventStore = { read: () => undefined, replace: async (unixMs) => void written.push(unixMs) }
    const last = openLastEvent({
      clock,
      store,
      unknownAgeMs: UNKNOWN_MS,
      onFault: (error) => assert.fail(String(error)),
    })
    for (let at = 0; at < 1000; at++) {
      await clock.advanceAsync(10)
      last.arrived()
      assert(clock.nowMs() - (written.at(-1) ?? 0) <= 1000)
    }
    assert.equal(written.length, 10)
  })

  test('waits for a slow disk: no second write starts before the first has ended', async () => {
    const clock = createManualClock()
    let writes = 0
    const first = Promise.withResolvers<void>()
    const store: LastEventStore = {
      read: () => undefined,
      replace: () => (++writes === 1 ? first.promise : Promise.resolve()),
    }
    const last = openLastEvent({
      clock,
      store,
      unknownAgeMs: UNKNOWN_MS,
      onFault: (error) => assert.fail(String(error)),
    })
    for (let at = 0; at < 10; at++) {
      last.arrived()
      await clock.advanceAsync(1000)
    }
    assert.equal(writes, 1)
    first.resolve()
    await last[Symbol.asyncDispose]()
    assert.equal(writes, 2, 'the end writes what was held back')
  })

  test('a stored time that is not readable or in the future is an unknown age, not a young one', async () => {
    const clock = createManualClock()
    for (const [text, faultsMin] of [
      ['', 1],
      ['soon\n', 1],
      ['99999999999999999999\n', 1],
      [`${clock.nowMs() + 1}\n`, 0],
      [`${clock.nowMs() + 24 * HOUR_MS}\n`, 0],
    ] as const) {
      using folder = makeTestFolder()
      writeFileSync(folder.file('last-event'), text)
      const faults: unknown[] = []
      await using last = openIn(folder, clock, faults)
      assert.deepEqual([last.ageMs, faults.length], [UNKNOWN_MS, faultsMin], JSON.stringify(text))
      last.arrived()
      assert.equal(last.ageMs, 0)
      await last[Symbol.asyncDispose]()
      assert.equal(readFileSync(folder.file('last-event'), 'utf8'), `${clock.nowMs()}\n`, 'an event repairs the file')
    }
  })

  test('steps of the wall clock do not change the age in a process, and the next process gets the time of the new clock', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    {
      await using last = openIn(folder, clock)
      last.arrived()
      for (const jumpMs of [HOUR_MS, -HOUR_MS, -24 * HOUR_MS]) {
        clock.setWallMs(clock.nowMs() + jumpMs)
        assert.equal(last.ageMs, 0)
      }
      last.arrived()
      clock.advance(2000)
    }
    await using next = openIn(folder, createManualClock(clock.nowMs() + 1000))
    assert.equal(next.ageMs, 3000)
  })

  test('an event found in the ring counts from its recording, if it is newer than the last one and not from the future', async () => {
    using folder = makeTestFolder()
    const clock = createManualClock()
    writeFileSync(folder.file('last-event'), `${clock.nowMs() - HOUR_MS}\n`)
    await using last = openIn(folder, clock)
    last.found(clock.nowMs() - 2 * HOUR_MS)
    last.found(clock.nowMs() + 1)
    last.found(0)
    assert.equal(last.ageMs, HOUR_MS)
    last.found(clock.nowMs() - 40_000)
    assert.equal(last.ageMs, 40_000)
  })

  test('a disk that cannot be written is reported once in a row, and the age is still right', async () => {
    const clock = createManualClock()
    const faults: unknown[] = []
    let isFull = true
    const store: LastEventStore = {
      read: () => undefined,
      async replace() {
        if (isFull) throw new Error('ENOSPC')
      },
    }
    const last = openLastEvent({ clock, store, unknownAgeMs: UNKNOWN_MS, onFault: (error) => void faults.push(error) })
    const run = async (): Promise<void> => {
      for (let at = 0; at < 3; at++) {
        last.arrived()
        await clock.advanceAsync(1000)
      }
    }
    await run()
    assert.deepEqual([faults.length, last.ageMs], [1, 1000])
    isFull = false
    await run()
    isFull = true
    await run()
    assert.equal(faults.length, 2)
  })
})
