import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { createManualClock } from '../../core/clock.ts'
import { HOUR_MS } from '../../core/human-units.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { Calendar } from '../quota/calendar.ts'
import type { Counts } from '../store/counts.ts'
import type { AddedUsage } from '../store/model.ts'
import { USAGE_INTERFACES, type UsageCounter } from './counter.ts'
import {
  createUsageMemory,
  EVENTS,
  HEADER,
  hourOf,
  METERS,
  METHODS_MAX,
  packKind,
  usageArrays,
} from './event-memory.ts'
import { UsageEventReader } from './event-reader.ts'
import { UsageEventWriter } from './event-writer.ts'
import { startUsage } from './service.ts'

const START = Date.parse('2026-11-15T12:30:00Z')
const METHODS = ['getSlot', 'getBalance', 'sendTransaction', 'näme', 'other']

/** Sums by hour, subscription, interface and method. */
type Sums = Record<string, { calls: number; units: number; refused: number; bytes?: number }>

/** Usage of the main thread, with the events of one other thread. */
function open({ startMs = START, threads = 1 } = {}) {
  const clock = createManualClock(startMs)
  const calendar = new Calendar(clock)
  const memory = Array.from({ length: threads }, createUsageMemory)
  const sums: Sums = {}
  const used = new Map<string, number>()
  const addTo = (key: string, { calls, units, refused, bytes = 0 }: Counts) => {
    const sum = (sums[key] ??= { calls: 0, units: 0, refused: 0 })
    sum.calls += calls
    sum.units += units
    sum.refused += refused
    if (bytes !== 0) sum.bytes = (sum.bytes ?? 0) + bytes
    if (sum.calls === 0 && sum.units === 0 && sum.refused === 0 && sum.bytes === undefined) delete sums[key]
  }
  const store = {
    async addUsage(rows: readonly AddedUsage[], uses: ReadonlyMap<string, number>) {
      for (const row of rows) {
        const key = `${new Date(row.hour).toISOString().slice(0, 13)} ${row.subscriptionId} ${row.interface}`
        addTo(key, row)
        for (const [method, counts] of Object.entries(row.methods ?? {})) addTo(`${key} ${method}`, counts)
      }
      for (const [tokenId, atMs] of uses) used.set(tokenId, atMs)
    },
  }
  const usage = startUsage({ store, calendar, clock, log: silentLogger, threads: memory })
  const writer = (thread = 1) => {
    const own = new Calendar(calendar.shared)
    own.update(clock.monotonicMs())
    // As every charge does.
    const look = () => own.update(clock.monotonicMs())
    const counter = new UsageEventWriter(memory[thread - 1] as SharedArrayBuffer, { calendar: own, clock })
    return { counter, look }
  }
  return { clock, calendar, memory, usage, sums, used, writer }
}

describe('usage events of a thread', () => {
  test('the main thread keeps a meter for an hour, also where no event comes after it', () => {
    const { clock, memory, writer } = open()
    const { counter } = writer()
    const meters = { made: 0, calls: 0 }
    const reader = new UsageEventReader(memory[0] as SharedArrayBuffer, {
      createMeter: () => {
        meters.made += 1
        return {}
      },
      add: () => {
        meters.calls += 1
      },
    })
    const meter = counter.createMeter('sub_a', 'tok_a')
    const hour = Math.floor(clock.nowMs() / HOUR_MS)
    for (let call = 0; call < 3; call++) {
      counter.countAdmitted(meter, 'rpc', 1)
      reader.drain(hour)
    }
    assert.deepEqual([meters, reader.meters], [{ made: 1, calls: 3 }, 1])
    reader.drain(hour + 1)
    assert.equal(reader.meters, 0)
    counter.countAdmitted(meter, 'rpc', 1)
    reader.drain(hour + 1)
    assert.deepEqual([meters, reader.meters], [{ made: 2, calls: 4 }, 1])
  })

  test('give the same rows as calls that the main thread counts, whatever the order, at any fill level', async (t) => {
    const random = createRandom(seedOf(t))
    const runs = repeatsOf({ short: 2, full: 40 })
    for (let run = 0; run < runs; run++) {
      const here = open()
      const there = open()
      const { counter, look } = there.writer()
      for (let round = 0; round < 6; round++) {
        // Up to three times as many as there is room for.
        for (let left = random(3 * EVENTS); left > 0; left--) {
          if (random(8000) === 0) {
            const ms = random(3) === 0 ? random(1_200_000) : random(90)
            // Timers of the thread and of the main thread run, or only the time passes.
            here.clock.advance(ms)
            there.clock.advance(ms)
            here.calendar.update(here.clock.monotonicMs())
            look()
          }
          const [sub, tok] = [`sub_${random(5)}`, `tok_${random(40)}`]
          const at = USAGE_INTERFACES[random(USAGE_INTERFACES.length)] as 'rpc'
          const method = METHODS[random(METHODS.length)] as string
          const units = random(4) / 4 + random(30)
          const kind = random(5)
          for (const on of [here.usage, counter] as UsageCounter[]) {
            const meter = on.createMeter(sub, tok)
            if (kind === 0) on.countRefused(meter, at, method)
            else if (kind === 1) on.countRefunded(meter, at, units, method)
            else if (kind === 4) on.countBytes(meter, at, left)
            else on.countAdmitted(meter, at, units, method)
          }
        }
        if (random(2) === 0) await Promise.all([here.usage.flush(), there.usage.flush()])
      }
      // The last sums are written when there is room.
      for (let pass = 0; pass < 13; pass++) {
        there.usage.state()
        here.clock.advance(100)
        there.clock.advance(100)
      }
      // The first may be the one that the timer began.
      for (let pass = 0; pass < 2; pass++) await Promise.all([here.usage.flush(), there.usage.flush()])
      assert.ok(Object.keys(here.sums).length > 100)
      const keys = [...new Set([...Object.keys(here.sums), ...Object.keys(there.sums)])]
      const different = keys.filter((key) => JSON.stringify(here.sums[key]) !== JSON.stringify(there.sums[key]))
      assert.deepEqual(different.slice(0, 5), [])
      assert.deepEqual([...there.used.keys()].toSorted(), [...here.used.keys()].toSorted())
    }
  })

  test('are read every 100 ms, and with the state', () => {
    const { clock, memory, usage, writer } = open()
    const { counter } = writer()
    const { header } = usageArrays(memory[0] as SharedArrayBuffer)
    const meter = counter.createMeter('sub_a', 'tok_a')
    counter.countAdmitted(meter, 'rpc', 1, 'getSlot')
    clock.advance(99)
    assert.deepEqual([header[HEADER.written], header[HEADER.read]], [1, 0])
    clock.advance(1)
    assert.equal(header[HEADER.read], 1)
    counter.countRefused(meter, 'rpc', 'getSlot')
    usage.state()
    assert.equal(header[HEADER.read], 2)
  })

  test('wait as sums while the main thread reads none, and nothing is lost', async () => {
    const { clock, memory, usage, sums, writer } = open()
    const { counter } = writer()
    const calls = 3 * EVENTS
    for (let at = 0; at < calls; at++) {
      const meter = counter.createMeter('sub_a', `tok_${at % 10}`)
      counter.countAdmitted(meter, 'rpc', 2, 'getSlot')
      if (at % 4 === 0) counter.countRefused(meter, 'rpc', 'getSlot')
      if (at % 8 === 0) counter.countRefunded(meter, 'rpc', 2, 'getSlot')
    }
    const { header } = usageArrays(memory[0] as SharedArrayBuffer)
    assert.ok((header[HEADER.written] as number) <= EVENTS)
    usage.state()
    clock.advance(100)
    await usage.flush()
    const expected = { calls: calls - calls / 8, units: 2 * (calls - calls / 8), refused: calls / 4 }
    assert.deepEqual(sums['2026-11-15T12 sub_a rpc'], expected)
    // From then on events are written one by one again.
    const before = header[HEADER.written] as number
    counter.countRefused(counter.createMeter('sub_a', 'tok_1'), 'rpc')
    assert.equal(header[HEADER.written], before + 1)
  })

  test('count for the right caller when there are more callers than numbers, and in later snapshots', async () => {
    const { usage, sums, writer } = open()
    const { counter } = writer()
    const callers = METERS + 5000
    const meters = Array.from({ length: callers }, (_, at) => counter.createMeter(`sub_${at % 7}`, `tok_${at}`))
    // One caller is always there: its number is never given to another one while its events are unread.
    const busy = counter.createMeter('sub_busy', 'tok_busy')
    for (const [at, meter] of meters.entries()) {
      counter.countAdmitted(busy, 'ws', 100, 'getSlot')
      counter.countAdmitted(meter, 'ws', at % 7, 'getSlot')
      if (at % 5000 === 0) usage.state()
    }
    // Older callers have lost their numbers, and get others.
    for (const [at, meter] of meters.entries()) {
      counter.countAdmitted(meter, 'ws', at % 7, 'getSlot')
      if (at % 10_000 === 0) usage.state()
    }
    const again = counter.createMeter(`sub_${(callers - 1) % 7}`, `tok_${callers - 1}`)
    assert.equal(again, meters.at(-1), 'the meter of a caller stays')
    await usage.flush()
    assert.deepEqual(sums['2026-11-15T12 sub_busy ws'], { calls: callers, units: 100 * callers, refused: 0 })
    for (let sub = 0; sub < 7; sub++) {
      const calls = 2 * meters.filter(({ subscriptionId }) => subscriptionId === `sub_${sub}`).length
      assert.deepEqual(sums[`2026-11-15T12 sub_${sub} ws`], { calls, units: calls * sub, refused: 0 })
    }
  })

  test('of the last moment of an hour belong to it, also when they are read in the next one', async () => {
    const { clock, usage, sums, writer } = open({ startMs: Date.parse('2026-11-15T12:59:59.950Z') })
    const { counter, look } = writer()
    const meter = counter.createMeter('sub_a', 'tok_a')
    counter.countAdmitted(meter, 'rpc', 3, 'getSlot')
    clock.advance(49)
    look()
    counter.countAdmitted(meter, 'rpc', 4, 'getSlot')
    clock.advance(1)
    look()
    counter.countAdmitted(meter, 'rpc', 5, 'getSlot')
    await usage.flush()
    assert.equal(sums['2026-11-15T12 sub_a rpc']?.units, 7)
    assert.equal(sums['2026-11-15T13 sub_a rpc']?.units, 5)
  })

  test('bytes become one event a second, in the hour in which they were sent, without a call and as no use of the token', async () => {
    const { clock, memory, usage, sums, used, writer } = open({ startMs: Date.parse('2026-11-15T12:59:55Z') })
    const { counter } = writer()
    const { header } = usageArrays(memory[0] as SharedArrayBuffer)
    const meter = counter.createMeter('sub_a', 'tok_a')
    for (let second = 0; second < 10; second++) {
      for (let message = 0; message < 1000; message++) counter.countBytes(meter, 'grpc', 2 ** 31)
      assert.equal(header[HEADER.written], second, 'nothing is written for a message')
      clock.advance(1000)
    }
    // The first is the one that the timer began.
    for (let pass = 0; pass < 2; pass++) await usage.flush()
    const none = { calls: 0, units: 0, refused: 0 }
    assert.deepEqual(sums, {
      '2026-11-15T12 sub_a grpc': { ...none, bytes: 5000 * 2 ** 31 },
      '2026-11-15T13 sub_a grpc': { ...none, bytes: 5000 * 2 ** 31 },
    })
    assert.deepEqual([...used], [])
  })

  test('bytes wait as sums of their hour while there is no room, and a thread that closes writes its last ones', async () => {
    const { clock, usage, sums, writer } = open({ startMs: Date.parse('2026-11-15T12:59:59.950Z') })
    const { counter, look } = writer()
    const meter = counter.createMeter('sub_a', 'tok_a')
    for (let call = 0; call < EVENTS; call++) counter.countAdmitted(meter, 'rpc', 1, 'getSlot')
    counter.countBytes(meter, 'ws', 7)
    // Only the time passes: the main thread does not read.
    clock.advance(50)
    look()
    counter.countBytes(meter, 'ws', 9)
    counter[Symbol.dispose]()
    await usage.flush()
    assert.equal(Object.keys(sums).length, 2, 'there was no room for them')
    counter[Symbol.dispose]()
    await usage.flush()
    assert.equal(sums['2026-11-15T12 sub_a ws']?.bytes, 7)
    assert.equal(sums['2026-11-15T13 sub_a ws']?.bytes, 9)
  })

  test('are of the hour nearest to now', () => {
    for (let hourNow = 495_000; hourNow < 495_070; hourNow++)
      for (let hour = hourNow - 16; hour < hourNow + 16; hour++) assert.equal(hourOf(packKind(5, hour), hourNow), hour)
  })

  test('are counted beyond 2^31 of them', async () => {
    const { memory, usage, sums, writer } = open()
    const { header } = usageArrays(memory[0] as SharedArrayBuffer)
    header[HEADER.written] = header[HEADER.read] = 2 ** 31 - 5
    const { counter } = writer()
    for (let at = 0; at < 2 * EVENTS; at++) {
      counter.countAdmitted(counter.createMeter('sub_a', 'tok_a'), 'rpc', 1, 'getSlot')
      if (at % EVENTS === 0) usage.state()
    }
    await usage.flush()
    assert.deepEqual(sums['2026-11-15T12 sub_a rpc'], { calls: 2 * EVENTS, units: 2 * EVENTS, refused: 0 })
  })

  test('with more method names than fit count the further ones as other', async () => {
    const { usage, sums, writer } = open()
    const { counter } = writer()
    const meter = counter.createMeter('sub_a', 'tok_a')
    for (let at = 0; at < METHODS_MAX + 9; at++) counter.countAdmitted(meter, 'rpc', 1, `method${at}`)
    await usage.flush()
    assert.equal(sums['2026-11-15T12 sub_a rpc method7']?.calls, 1)
    assert.equal(sums['2026-11-15T12 sub_a rpc other']?.calls, 10)
  })

  test('of a thread that is killed while there is no room: those in memory count, and sums that it held are lost', async () => {
    const { usage, sums, writer } = open()
    const { counter } = writer()
    const meter = counter.createMeter('sub_a', 'tok_a')
    const unseen = 7
    for (let call = 0; call < EVENTS + unseen; call++) counter.countAdmitted(meter, 'rpc', 1, 'getSlot')
    usage.threadEnded(1)
    await usage.flush()
    assert.deepEqual(sums['2026-11-15T12 sub_a rpc'], { calls: EVENTS, units: EVENTS, refused: 0 })
    // The next instance has all the room, and nothing is counted twice.
    const next = writer().counter
    const again = next.createMeter('sub_a', 'tok_a')
    for (let call = 0; call < EVENTS; call++) next.countAdmitted(again, 'rpc', 1, 'getSlot')
    await usage.flush()
    assert.deepEqual(sums['2026-11-15T12 sub_a rpc'], { calls: 2 * EVENTS, units: 2 * EVENTS, refused: 0 })
  })

  test('of a thread that ended are read, and its next instance starts with an empty memory', async () => {
    const { memory, usage, sums, writer } = open({ threads: 2 })
    const first = writer(2).counter
    first.countAdmitted(first.createMeter('sub_a', 'tok_a'), 'rpc', 1, 'getSlot')
    usage.threadEnded(2)
    assert.equal(usageArrays(memory[1] as SharedArrayBuffer).header[HEADER.written], 0)
    // The same numbers mean another caller and another method now.
    const second = writer(2).counter
    second.countAdmitted(second.createMeter('sub_b', 'tok_b'), 'rpc', 2, 'getBalance')
    await usage.flush()
    assert.deepEqual(Object.keys(sums).toSorted(), [
      '2026-11-15T12 sub_a rpc',
      '2026-11-15T12 sub_a rpc getSlot',
      '2026-11-15T12 sub_b rpc',
      '2026-11-15T12 sub_b rpc getBalance',
    ])
  })
})
