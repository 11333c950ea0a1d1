import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createHealthReports } from './health-reports.ts'

function open() {
  const state = new Map<string, string>()
  const reports = createHealthReports({
    degraded: (part, reason) => void state.set(part, reason),
    recovered: (part) => void state.delete(part),
  })
  return { state, reports }
}

test('a part recovers when the last thread reports it', () => {
  const { state, reports } = open()
  reports.degraded('gateway-1', 'upstreams', 'a is down')
  reports.degraded('gateway-2', 'upstreams', 'b is down')
  assert.equal(state.get('upstreams'), 'b is down')
  reports.recovered('gateway-2', 'upstreams')
  assert.equal(state.get('upstreams'), 'a is down')
  reports.recovered('gateway-1', 'upstreams')
  assert.equal(state.size, 0)
})

test('a recovery reported by one thread does not clear the fault of another', () => {
  const { state, reports } = open()
  const main = reports.of('main')
  reports.degraded('gateway-1', 'upstreams', 'a is down')
  main.recovered('upstreams')
  assert.equal(state.get('upstreams'), 'a is down')
  main.degraded('upstreams', 'b is down')
  reports.recovered('gateway-1', 'upstreams')
  assert.equal(state.get('upstreams'), 'b is down')
  main.recovered('upstreams')
  assert.equal(state.size, 0)
})

test('what a thread reported ends with it', () => {
  const { state, reports } = open()
  reports.degraded('sender', 'sender', 'no ledger')
  reports.degraded('sender', 'upstreams', 'down')
  reports.degraded('gateway-1', 'upstreams', 'down')
  reports.ended('sender')
  assert.deepEqual([...state], [['upstreams', 'down']])
})

test('a recovery that no thread has reported leaves the reports of the process alone', () => {
  const { state, reports } = open()
  state.set('disk', 'full')
  reports.recovered('gateway-1', 'disk')
  assert.equal(state.get('disk'), 'full')
})
