import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccessFixture } from '../../test/support/access/fixture.ts'
import { createManualClock } from '../core/clock.ts'
import { silentLogger } from '../platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { createCallAdmission } from './admission.ts'
import { callMetrics } from './metrics.ts'
import { BUILT_IN_PLANS, createPlanTable } from './plan.ts'
import { Calendar } from './quota/calendar.ts'
import { createLedger } from './quota/ledger.ts'
import type { AddedUsage } from './store/model.ts'
import { startUsage } from './usage/service.ts'

test('bytes sent to a caller and to a subscription are counted without a call, a charge or a use of the token', async () => {
  const fixture = createAccessFixture()
  const { secret, subscription } = fixture.subscribe()
  fixture.publish()
  const clock = createManualClock()
  const calendar = new Calendar(clock)
  const plans = createPlanTable(BUILT_IN_PLANS)
  const rows: AddedUsage[] = []
  const uses: string[] = []
  const store = {
    async addUsage(added: readonly AddedUsage[], lastUsed: ReadonlyMap<string, number>) {
      rows.push(...added)
      uses.push(...lastUsed.keys())
    },
  }
  await using usage = startUsage({ store, calendar, clock, log: silentLogger })
  const admission = createCallAdmission({
    snapshot: fixture.snapshot,
    plans: () => plans,
    ledger: createLedger({ calendar }),
    usage,
    clock,
    metrics: callMetrics(createMetricsRegistry()),
  })
  const caller = admission.authenticate({ token: secret }, 'bundle', clock.nowMs())
  assert.ok(caller.ok)
  admission.countBytes(caller, 'ws', 700)
  admission.countBytes(caller, 'ws', 7)
  admission.countBytesOf(subscription.id, 'shreds', 1200)
  admission.countBytesOf(subscription.id, 'shreds', 3)
  admission.countBytesOf('sub_removed', 'shreds', 5)
  await usage.flush()
  assert.deepEqual(
    rows.map((row) => [row.subscriptionId, row.interface, row.calls, row.units, row.refused, row.bytes]),
    [
      [subscription.id, 'ws', 0, 0, 0, 707],
      [subscription.id, 'shreds', 0, 0, 0, 1203],
      ['sub_removed', 'shreds', 0, 0, 0, 5],
    ],
  )
  assert.deepEqual(uses, [])
  assert.equal(admission.quota(caller).month.used, 0)
})
