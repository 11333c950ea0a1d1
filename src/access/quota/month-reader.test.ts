import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { openAccessFolder } from '../../../test/support/store/access-folder.ts'
import { createManualClock } from '../../core/clock.ts'
import { until } from '../../platform/process/test-wait.ts'
import type { Call } from '../admission.ts'

const CALL: Call = { interface: 'rpc', method: 'getSlot' }
const NOW_MS = Date.parse('2026-11-15T12:30:00Z')
const SWEEP_MS = 10_000

/** A subscription with 100 units a month, which has spent 90 in October and 60 in November. */
async function openSpentFolder(startMs: number) {
  const clock = createManualClock(startMs)
  const folder = await openAccessFolder(clock)
  const { id, secret } = await folder.subscribe('first', 'starter', { unitsPerMonth: 100 })
  const row = (iso: string, units: number) => ({
    ...{ subscriptionId: id, hour: Date.parse(iso), interface: 'rpc' as const },
    ...{ calls: 1, units, refused: 0, bytes: 0 },
  })
  const { store } = folder.on()
  await store.addUsage([row('2026-10-10T10:00:00Z', 90), row('2026-11-15T11:00:00Z', 60)], new Map())
  return { clock, folder, secret }
}

describe('the units of a month', () => {
  test('of a process that starts years behind are right once the clock is', async () => {
    const { clock, folder, secret } = await openSpentFolder(Date.parse('2000-01-01T00:00:00Z'))
    await using _ = folder
    await using running = await folder.start()
    const caller = running.enter(secret)
    assert.ok(caller.ok)
    const used = () => running.access.quota(caller).month.used
    assert.equal(running.access.admit(caller, CALL).ok, false, 'all units since 2000')
    await clock.advanceAsync(20_000)
    clock.setWallMs(NOW_MS)
    await clock.advanceAsync(SWEEP_MS + 2000)
    await until('the units of November', () => used() === 60)
    assert.equal(running.access.admit(caller, CALL).ok, true)
  })

  test('of a process that starts half a year ahead are right once the clock is', async () => {
    const { clock, folder, secret } = await openSpentFolder(Date.parse('2027-06-01T00:00:00Z'))
    await using _ = folder
    await using running = await folder.start()
    const caller = running.enter(secret)
    assert.ok(caller.ok)
    assert.equal(running.access.admit(caller, CALL).ok, true)
    await clock.advanceAsync(20_000)
    clock.setWallMs(NOW_MS)
    await clock.advanceAsync(SWEEP_MS + 2000)
    // The call before was recorded in an hour of 2027, and counts.
    await until('the units of November', () => running.access.quota(caller).month.used === 61)
  })

  test('are read again where the store could not be read', async () => {
    const { clock, folder, secret } = await openSpentFolder(Date.parse('2000-01-01T00:00:00Z'))
    await using _ = folder
    await using running = await folder.start()
    const caller = running.enter(secret)
    assert.ok(caller.ok)
    const { unitsSince } = running.store
    let failed = 0
    running.store.unitsSince = async () => {
      failed += 1
      throw new Error('no connection')
    }
    clock.setWallMs(NOW_MS)
    await clock.advanceAsync(SWEEP_MS + 2000)
    await until('the attempt', () => failed > 0)
    running.store.unitsSince = unitsSince
    await clock.advanceAsync(SWEEP_MS)
    await until('the units of November', () => running.access.quota(caller).month.used === 60)
  })

  test('of a month that ends while they are read do not count for the next one', async () => {
    const { clock, folder, secret } = await openSpentFolder(Date.parse('2000-01-01T00:00:00Z'))
    await using _ = folder
    await using running = await folder.start()
    const caller = running.enter(secret)
    assert.ok(caller.ok)
    const { unitsSince } = running.store
    const read = Promise.withResolvers<void>()
    let isReading = false
    running.store.unitsSince = async (fromMs) => {
      const units = await unitsSince(fromMs)
      isReading = true
      await read.promise
      return units
    }
    clock.setWallMs(Date.parse('2026-11-30T23:59:40Z'))
    await clock.advanceAsync(SWEEP_MS + 2000)
    await until('the units of November', () => isReading)
    await clock.advanceAsync(SWEEP_MS)
    read.resolve()
    await clock.advanceAsync(SWEEP_MS)
    assert.equal(running.access.quota(caller).month.used, 0)
  })

  test('begin at zero with each month', async () => {
    const { clock, folder, secret } = await openSpentFolder(Date.parse('2026-11-30T23:59:30Z'))
    await using _ = folder
    await using running = await folder.start()
    const caller = running.enter(secret)
    assert.ok(caller.ok)
    assert.equal(running.access.quota(caller).month.used, 60)
    await clock.advanceAsync(40_000)
    assert.equal(running.access.admit(caller, CALL).ok, true)
    await clock.advanceAsync(2 * SWEEP_MS)
    assert.equal(running.access.quota(caller).month.used, 1)
  })
})
