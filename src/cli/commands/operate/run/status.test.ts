import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { StatusReport } from '../../../../processes/compose/process/status.ts'
import { statusLines } from './status.ts'

test('a degraded part is shown with its reason and since when', () => {
  const report = {
    state: 'degraded',
    reasons: [{ part: 'upstreams', reason: 'no node', sinceMs: Date.UTC(2026, 10, 18, 15, 40, 12) }],
    services: [],
  } as unknown as StatusReport
  const lines = statusLines(report, { isAway: false, nowMs: 0, rows: 20 })
  const shown = lines.map((line) => line.map(({ text }) => text).join('')).join('\n')
  assert.match(shown, /^ degraded +upstreams: no node \(since 2026-11-18 15:40:12 UTC\)$/m)
})
