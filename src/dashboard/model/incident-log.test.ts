import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { HistoryIncident } from '../../contract/execution-history.ts'
import { createIncidentLog, historyIncident } from './incident-log.ts'

const STOPPED: HistoryIncident = { kind: 'service_stopped', from_ms: 1_000_000, to_ms: 1_010_000 }
const textsOf = (log: ReturnType<typeof createIncidentLog>) => log.list().map(({ text }) => text)

test('an incident of the history is listed once, whatever the clocks were taken to be apart', () => {
  const log = createIncidentLog()
  for (const aheadMs of [0, 499, 501, 5000]) log.addHistory([historyIncident(STOPPED, aheadMs)])
  assert.deepEqual([log.count('gap'), textsOf(log)], [1, ['The service did not run. It lasted 10 s.']])
})

test('an incident that has ended meanwhile gets its end, and is not another one', () => {
  const log = createIncidentLog()
  const silent = { kind: 'source_silent', from_ms: 1_000_000 } as const
  log.addHistory([historyIncident({ ...silent, to_ms: null }, 0)])
  log.addHistory([historyIncident({ ...silent, to_ms: 1_004_000 }, 0)])
  assert.deepEqual([log.count('lag'), textsOf(log)], [1, ['Very late: no data from the node. It lasted 4.0 s.']])
})

test('two of the same text are two, also when they began at nearly the same time', () => {
  const log = createIncidentLog()
  const restart = (from_ms: number) => historyIncident({ kind: 'ring_restart', from_ms, to_ms: from_ms }, 0)
  log.addHistory([restart(1_000_000)])
  log.addHistory([restart(1_000_000), restart(1_000_900)])
  assert.equal(log.count('gap'), 2)
})

test('what the page saw itself is not added by the history', () => {
  const log = createIncidentLog()
  const { text, kind, severity } = historyIncident({ kind: 'ring_restart', from_ms: 0, to_ms: 0 }, 0)
  log.add({ atMs: 1_000_600, kind, severity, text })
  log.add({ atMs: 1_000_000, kind: 'rejection', severity: 'note', text: 'Rejected', block: 7 })
  log.addHistory([
    historyIncident({ kind: 'ring_restart', from_ms: 1_000_000, to_ms: 1_000_000 }, 0),
    historyIncident({ kind: 'rejection', from_ms: 900_000, to_ms: 900_000, block_number: 7 }, 0),
  ])
  assert.deepEqual([log.count('gap'), log.count('rejection')], [1, 1])
  log.addHistory([historyIncident({ kind: 'ring_restart', from_ms: 1_003_000, to_ms: 1_003_000 }, 0)])
  assert.equal(log.count('gap'), 2, 'three seconds later it is another one')
})
