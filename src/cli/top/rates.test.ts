import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeReport } from '../../processes/compose/top/test-report.ts'
import { productsOf } from './products.ts'
import { viewOf } from './rates.ts'

test('counts become rates over the time between two reports', () => {
  const before = makeReport()
  const now = makeReport({
    atMs: 12_000,
    calls: { rpc: 300, ws: 10, grpc: 4 },
    units: 1500,
    sender: { accepted: 24, refused: 1, landed: 13, expired: 2, pending: 8, tipLamports: 1 },
    indexer: { headSlot: 1300, tipSlot: 1334, blocks: 15, queries: 2, running: 1 },
    subscriptions: [
      { id: 'sub_b', name: 'beta', customer: 'beta', plan: 'build', calls: 6, units: 6, refused: 0, streams: 0 },
      { id: 'sub_a', name: 'acme', customer: 'acme', plan: 'build', calls: 290, units: 1400, refused: 4, streams: 3 },
    ],
    refusals: [
      { part: 'plan', reason: 'unitsPerSecond', count: 4 },
      { part: 'token', reason: 'unknown', count: 10 },
    ],
  })
  const view = viewOf(before, now)
  assert.deepEqual(view.calls, { rpc: 100, ws: 0, grpc: 2, indexer: 0, shreds: 0 })
  assert.equal(view.unitsPerSecond, 250)
  assert.equal(view.sender?.acceptedPerSecond, 10)
  assert.equal(view.sender?.landedPerSecond, 5)
  assert.deepEqual([view.indexer?.lagSlots, view.indexer?.lagMs], [34, 13_600])
  const { status } = now
  const short = viewOf(before, { ...now, status: { ...status, slotLength: { ms: 200, isLearned: true } } })
  assert.equal(short.indexer?.lagMs, 6800, 'in the length of a slot of the chain')
  assert.deepEqual(
    view.subscriptions.map(({ name, callsPerSecond, refusedPerSecond }) => [name, callsPerSecond, refusedPerSecond]),
    [
      ['acme', 100, 1],
      ['beta', 3, 0],
    ],
    'the busiest first; one that was not there before began at nothing',
  )
  assert.deepEqual(
    view.refusals.map(({ reason, perSecond, count }) => [reason, perSecond, count]),
    [
      ['unknown', 5, 10],
      ['unitsPerSecond', 1, 4],
    ],
  )
})

test('a restart between two reports gives no rate', () => {
  const before = makeReport()
  const other = { ...before.status, pid: 43 }
  const view = viewOf(before, makeReport({ atMs: 500, status: other, calls: { rpc: 1_000_000 } }))
  assert.equal(view.calls.rpc, 0)
  const smaller = viewOf(before, makeReport({ atMs: 11_000, calls: { rpc: 5 } }))
  assert.equal(smaller.calls.rpc, 0, 'never below zero')
})

test('a product that does not run has no figures', () => {
  const report = makeReport({ shreds: null, sender: null, indexer: null, execution: null })
  const { shreds, sender, indexer, execution } = viewOf(report, { ...report, atMs: 11_000 })
  assert.deepEqual([shreds, sender, indexer, execution], [null, null, null, null])
})

test('delays of shreds are those of the time between two reports', () => {
  const withDelays = (counts: number[], atMs: number) => {
    const report = makeReport({ atMs })
    assert.ok(report.shreds !== null)
    return { ...report, shreds: { ...report.shreds, delays: { bounds: [0.0001, 0.001], counts } } }
  }
  const { shreds } = viewOf(withDelays([1000, 0, 0], 1000), withDelays([1000, 100, 0], 2000))
  assert.deepEqual([shreds?.delayP50Seconds, shreds?.delayP99Seconds], [0.00055, 0.000991])
  assert.match(
    productsOf(viewOf(withDelays([0, 0, 0], 1000), withDelays([0, 100, 0], 2000)))
      .map(({ message }) => message)
      .join(),
    /p99 0\.99 ms/,
  )
  assert.equal(viewOf(withDelays([9, 0, 0], 1000), withDelays([9, 0, 0], 2000)).shreds?.delayP99Seconds, undefined)
})
