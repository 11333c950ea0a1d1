import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { ServiceError } from '../../core/error.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { Calendar } from '../quota/calendar.ts'
import type { AddedUsage, UsageRow } from '../store/model.ts'
import { startUsage } from './service.ts'

const START = Date.parse('2026-11-15T12:59:58.500Z')

function open(options: { waitingRowsMax?: number } = {}) {
  const clock = createManualClock(START)
  const calendar = new Calendar(clock)
  const stored = new Map<string, UsageRow>()
  const lastUsed = new Map<string, number>()
  const batches: number[] = []
  const written: AddedUsage[] = []
  const state = { error: undefined as Error | undefined, failAt: 0, policy: undefined as Promise<void> | undefined }
  const logged: string[] = []
  const log = {
    ...silentLogger,
    warn: (_f: object | string, m = '') => logged.push(m),
    info: (_f: object | string, m = '') => logged.push(m),
    error: (_f: object | string, m = '') => logged.push(m),
  }
  const usage = startUsage({
    calendar,
    clock,
    log,
    slices: { isSpent: () => true, yield: async () => {} },
    ...options,
    store: {
      async addUsage(rows, used) {
        await state.policy
        if (state.error !== undefined && batches.length >= state.failAt) throw state.error
        batches.push(rows.length)
        written.push(...rows)
        for (const row of rows) {
          const key = `${row.subscriptionId} ${row.interface} ${new Date(row.hour).toISOString().slice(11, 13)}`
          const before = stored.get(key) ?? { calls: 0, units: 0, refused: 0, bytes: 0 }
          stored.set(key, {
            ...row,
            calls: before.calls + row.calls,
            units: before.units + row.units,
            refused: before.refused + row.refused,
            bytes: before.bytes + (row.bytes ?? 0),
          })
        }
        for (const [id, at] of used) lastUsed.set(id, at)
      },
    },
  })
  const total = () =>
    [...stored.values()].reduce((sum, row) => ({ calls: sum.calls + row.calls, units: sum.units + row.units }), {
      calls: 0,
      units: 0,
    })
  return {
    clock,
    usage,
    stored,
    lastUsed,
    batches,
    rows: written,
    state,
    logged,
    total /** As every charge does. */,
    look: () => calendar.update(clock.monotonicMs()),
    tick: () => clock.advanceAsync(1000),
  }
}

describe('usage', () => {
  test('is written every second by subscription, hour and interface', async () => {
    const { usage, stored, lastUsed, clock, look, tick } = open()
    const a = usage.createMeter('sub_a', 'tok_a')
    usage.countAdmitted(a, 'rpc', 30)
    usage.countAdmitted(a, 'rpc', 1)
    usage.countRefused(a, 'ws')
    assert.equal(stored.size, 0)
    await tick()
    await clock.advanceAsync(600)
    look()
    usage.countAdmitted(a, 'rpc', 5)
    await tick()
    const rows = [...stored].map(([key, row]) => [key, row.calls, row.units, row.refused])
    assert.deepEqual(rows, [
      ['sub_a rpc 12', 2, 31, 0],
      ['sub_a ws 12', 0, 0, 1],
      ['sub_a rpc 13', 1, 5, 0],
    ])
    assert.deepEqual([...lastUsed], [['tok_a', Date.parse('2026-11-15T13:00:00Z')]])
  })

  test('a meter in use at the end of an hour splits its usage there, also without a flush', async () => {
    const { usage, stored, clock, look, state, tick } = open()
    state.error = new ServiceError('store-locked', 'busy')
    const a = usage.createMeter('sub_a', 'tok_a')
    usage.countAdmitted(a, 'rpc', 1)
    await clock.advanceAsync(1500)
    look()
    usage.countAdmitted(a, 'rpc', 1)
    state.error = undefined
    await tick()
    assert.deepEqual([...stored.keys()], ['sub_a rpc 12', 'sub_a rpc 13'])
  })

  test('several meters of one subscription add up, and a refund subtracts', async () => {
    const { usage, stored, tick } = open()
    const [a, b] = [usage.createMeter('sub_a', 'tok_a'), usage.createMeter('sub_a', 'tok_b')]
    usage.countAdmitted(a, 'rpc', 2)
    usage.countAdmitted(b, 'rpc', 3)
    usage.countAdmitted(b, 'rpc', 4)
    await tick()
    usage.countRefunded(b, 'rpc', 4)
    await tick()
    const row = stored.get('sub_a rpc 12')
    assert.deepEqual([row?.calls, row?.units], [2, 5])
  })

  test('is counted by method too, and the methods add up to the row', async () => {
    const { usage, rows, state, tick } = open()
    const a = usage.createMeter('sub_a', 'tok_a')
    usage.countAdmitted(a, 'rpc', 1, 'getSlot')
    usage.countAdmitted(a, 'rpc', 5, 'getBlock')
    usage.countRefused(a, 'rpc', 'getBlock')
    usage.countAdmitted(a, 'ws', 1)
    state.error = new ServiceError('store-locked', 'busy')
    await tick()
    usage.countAdmitted(a, 'rpc', 1, 'getSlot')
    state.error = undefined
    await tick()
    // Nothing but a refund of what was written, and another call of the same cost.
    usage.countRefunded(a, 'rpc', 1, 'getSlot')
    usage.countAdmitted(a, 'rpc', 1, 'getBalance')
    await tick()
    assert.deepEqual(
      rows.map(({ interface: at, calls, units, refused, methods }) => ({ at, calls, units, refused, methods })),
      [
        {
          at: 'rpc',
          calls: 3,
          units: 7,
          refused: 1,
          methods: {
            getSlot: { calls: 2, units: 2, refused: 0 },
            getBlock: { calls: 1, units: 5, refused: 1 },
          },
        },
        { at: 'ws', calls: 1, units: 1, refused: 0, methods: { other: { calls: 1, units: 1, refused: 0 } } },
        {
          at: 'rpc',
          calls: 0,
          units: 0,
          refused: 0,
          methods: {
            getSlot: { calls: -1, units: -1, refused: 0 },
            getBalance: { calls: 1, units: 1, refused: 0 },
          },
        },
      ],
    )
  })

  test('is written in batches, each of them once', async () => {
    const { usage, batches, state, total, tick } = open()
    for (let at = 0; at < 1200; at++) usage.countAdmitted(usage.createMeter(`sub_${at}`, `tok_${at}`), 'rpc', 1)
    state.error = new ServiceError('store-locked', 'busy')
    state.failAt = 1
    await tick()
    assert.deepEqual(batches, [200])
    assert.equal(usage.state().waitingRows, 1000)
    state.error = undefined
    await tick()
    assert.deepEqual(batches, [200, 200, 200, 200, 200, 200])
    assert.deepEqual(total(), { calls: 1200, units: 1200 })
  })

  test('stays in memory while the store refuses writes, logs that once, and loses nothing', async () => {
    const { usage, state, logged, total, tick } = open()
    state.error = new ServiceError('disk-full', 'no space')
    const a = usage.createMeter('sub_a', 'tok_a')
    for (let second = 0; second < 120; second++) {
      usage.countAdmitted(a, 'rpc', 1)
      await tick()
    }
    assert.equal(usage.state().failing?.code, 'disk-full')
    assert.ok(usage.state().waitingRows <= 2)
    assert.deepEqual(logged, ['usage cannot be written and is held in memory'])
    state.error = undefined
    await tick()
    assert.equal(usage.state().failing, undefined)
    assert.deepEqual(total(), { calls: 120, units: 120 })
    assert.equal(usage.state().lostRows, 0)
    assert.equal(logged.at(-1), 'usage is written again')
  })

  test('at the maximum the oldest rows are dropped and counted', async () => {
    const { usage, state, stored, tick } = open({ waitingRowsMax: 100 })
    state.error = new ServiceError('store-locked', 'busy')
    for (let at = 0; at < 130; at++) usage.countAdmitted(usage.createMeter(`sub_${at}`, `tok_${at}`), 'rpc', 1)
    await tick()
    assert.deepEqual([usage.state().waitingRows, usage.state().lostRows], [100, 30])
    state.error = undefined
    await tick()
    assert.equal(stored.has('sub_29 rpc 12'), false)
    assert.equal(stored.has('sub_30 rpc 12'), true)
  })

  test('usage counted during a slow write is part of the next write', async () => {
    const { usage, state, total, clock, tick } = open()
    const policy = Promise.withResolvers<void>()
    state.policy = policy.promise
    const a = usage.createMeter('sub_a', 'tok_a')
    usage.countAdmitted(a, 'rpc', 1)
    await tick()
    usage.countAdmitted(a, 'rpc', 1)
    await tick()
    assert.deepEqual(total(), { calls: 0, units: 0 })
    policy.resolve()
    await clock.advanceAsync(1000)
    assert.deepEqual(total(), { calls: 2, units: 2 })
  })

  test('closing writes the remaining usage, also that counted during a write', async () => {
    const { usage, state, total, clock } = open()
    const policy = Promise.withResolvers<void>()
    state.policy = policy.promise
    const a = usage.createMeter('sub_a', 'tok_a')
    usage.countAdmitted(a, 'rpc', 1)
    const writing = usage.flush()
    usage.countAdmitted(a, 'rpc', 1)
    const closing = usage[Symbol.asyncDispose]()
    policy.resolve()
    await Promise.all([writing, closing])
    assert.deepEqual(total(), { calls: 2, units: 2 })
    assert.equal(clock.pendingTimers(), 0)
  })
  test('closing waits for another writer, up to a limit', async () => {
    for (const [heldMs, written] of [
      [4000, 7],
      [Number.POSITIVE_INFINITY, 0],
    ] as const) {
      const { usage, state, total, clock, logged } = open()
      state.error = new ServiceError('store-locked', 'busy')
      usage.countAdmitted(usage.createMeter('sub_a', 'tok_a'), 'rpc', 7)
      let isClosed = false
      const closing = usage[Symbol.asyncDispose]().then(() => (isClosed = true))
      for (let waitedMs = 0; waitedMs < 6000 && !isClosed; waitedMs += 5) {
        if (waitedMs >= heldMs) state.error = undefined
        await clock.advanceAsync(5)
      }
      assert.ok(isClosed)
      await closing
      assert.equal(total().units, written)
      const isLoss = logged.includes('usage is lost: it could not be written')
      assert.equal(isLoss, written === 0)
    }
  })
})
