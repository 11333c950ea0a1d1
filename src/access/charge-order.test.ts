import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createAccessFixture } from '../../test/support/access/fixture.ts'
import { createManualClock } from '../core/clock.ts'
import { createMetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { createCallAdmission } from './admission.ts'
import { callMetrics } from './metrics.ts'
import { BUILT_IN_PLANS, createPlanTable } from './plan.ts'
import { Calendar } from './quota/calendar.ts'
import { createLedger } from './quota/ledger.ts'

test('a call is charged before it is counted, and counted back before it is refunded', () => {
  const fixture = createAccessFixture()
  const { secret } = fixture.subscribe({ plan: 'starter' })
  fixture.publish()
  const clock = createManualClock()
  const plans = createPlanTable(BUILT_IN_PLANS)
  const order: string[] = []
  const charged = () => (caller.ok ? admission.quota(caller).month.used : -1)
  const admission = createCallAdmission({
    snapshot: fixture.snapshot,
    plans: () => plans,
    ledger: createLedger({ calendar: new Calendar(clock) }),
    usage: {
      createMeter: (subscriptionId, tokenId) => ({ subscriptionId, tokenId }),
      countAdmitted: () => void order.push(`admitted with ${charged()} charged`),
      countRefused() {},
      countBytes() {},
      countRefunded: () => void order.push(`refunded with ${charged()} charged`),
    },
    clock,
    metrics: callMetrics(createMetricsRegistry()),
  })
  const caller = admission.authenticate({ token: secret }, 'bundle', clock.nowMs())
  assert.ok(caller.ok)
  const call = { interface: 'rpc', method: 'getSlot' } as const
  admission.admit(caller, call)
  admission.refund(caller, call)
  assert.deepEqual(order, ['admitted with 1 charged', 'refunded with 1 charged'])
  assert.equal(charged(), 0)
})
