import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FROM_MS } from '../../../test/support/admin/billing.ts'
import { openSqliteStore } from '../../../test/support/store/engines.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { createSendLease } from './send-lease.ts'
import { beginBilling } from './service.ts'

const YEAR_MS = 365 * 24 * 3_600_000

test('of two processes that find a lease without a sign of its owner one takes it', async () => {
  await using opened = await openSqliteStore()
  const { billing } = opened.store
  const clock = createManualClock(FROM_MS)
  await beginBilling(billing, 'lago', { clock, random: createSeededRandom(1), fromMs: FROM_MS })
  const aheadMs = FROM_MS + YEAR_MS
  await billing.lease('lago', { owner: 'ended', nowMs: aheadMs, untilMs: aheadMs + 60_000 })

  const first = createSendLease({ sink: 'lago', owner: 'first' }, { billing, clock })
  let isRace = false
  const state: typeof billing.state = async (sink) => {
    const found = await billing.state(sink)
    if (isRace) assert.ok(await first.take())
    return found
  }
  const second = createSendLease({ sink: 'lago', owner: 'second' }, { billing: { ...billing, state }, clock })
  assert.deepEqual([await first.take(), await second.take()], [undefined, undefined])
  clock.advance(60_000)
  isRace = true
  assert.equal(await second.take(), undefined)
  assert.equal((await billing.state('lago'))?.owner, 'first')
})
