import assert from 'node:assert/strict'
import { createCallAdmission } from '../../../src/access/admission.ts'
import type { Caller, Refused } from '../../../src/access/callers.ts'
import { accessMetrics } from '../../../src/access/metrics.ts'
import { BUILT_IN_PLANS, createPlanTable } from '../../../src/access/plan.ts'
import { Calendar } from '../../../src/access/quota/calendar.ts'
import { createLedger } from '../../../src/access/quota/ledger.ts'
import type { AddedUsage } from '../../../src/access/store/model.ts'
import { hashToken } from '../../../src/access/token.ts'
import { startUsage } from '../../../src/access/usage/service.ts'
import { createManualClock } from '../../../src/core/clock.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { createAccessFixture } from './fixture.ts'

/** Admission over a fixture of the store, with what it hashes and counts. */
export function openAdmission(options: { callersMax?: number } = {}) {
  const clock = createManualClock()
  const calendar = new Calendar(clock)
  const fixture = createAccessFixture()
  const registry = createMetricsRegistry()
  const hashed: string[] = []
  const rows: AddedUsage[] = []
  const usage = startUsage({
    store: { addUsage: async (added) => void rows.push(...added) },
    calendar,
    clock,
    log: silentLogger,
  })
  const ledger = createLedger({ calendar })
  const plans = createPlanTable(BUILT_IN_PLANS)
  const admission = createCallAdmission({
    snapshot: fixture.snapshot,
    plans: () => plans,
    ledger,
    usage,
    clock,
    metrics: accessMetrics(registry),
    hash(text) {
      hashed.push(text)
      return hashToken(text)
    },
    ...options,
  })
  const enter = (token: string, product: 'bundle' | 'indexer' | 'execution' | 'shreds-raw' = 'bundle') =>
    admission.authenticate({ token }, product, clock.nowMs())
  return { clock, fixture, registry, hashed, rows, usage, ledger, admission, enter }
}

export function reasonOf(outcome: Caller | Refused): string {
  return outcome.ok ? 'ok' : outcome.reason
}

export function mustEnter(outcome: Caller | Refused): Caller {
  assert.ok(outcome.ok)
  return outcome
}
