import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createTimeSeries } from './time-series.ts'

const NOW_MS = 7_200_000

describe('a series of the page', () => {
  test('history and stream of the same second count once', () => {
    const series = createTimeSeries('mean')
    for (let at = 0; at < 120; at++) series.add(100, NOW_MS - 120_000 + at * 1000)
    // The history ends a minute before.
    const history = Array.from({ length: 3540 }, (_, at) => ({ atMs: NOW_MS - 3_600_000 + at * 1000, value: 50 }))
    series.addHistory(history)
    series.addHistory(history)
    const summary = series.summary('1h', NOW_MS)
    assert.equal(summary?.average, (3540 * 50 + 60 * 100) / 3600)
    assert.deepEqual([summary?.now, summary?.peak], [100, 100])
    const { times } = series.read('1h', NOW_MS)
    assert.equal(times.length, 720)
    assert.deepEqual(
      times,
      times.toSorted((a, b) => a - b),
    )
  })

  test('an interruption is a gap in the line, and a slow chain is not', () => {
    const series = createTimeSeries('mean')
    series.addHistory([120, 119, 118, 60, 59].map((ago) => ({ atMs: NOW_MS - ago * 1000, value: 1 })))
    assert.equal(series.read('5m', NOW_MS).values.filter((value) => value === null).length, 1)
    const slow = createTimeSeries('mean')
    slow.addHistory([108, 96, 84, 72, 60, 48].map((ago) => ({ atMs: NOW_MS - ago * 1000, value: 1 })))
    assert.ok(!slow.read('5m', NOW_MS).values.includes(null))
  })

  test('a chart of little data begins with it, and one of much data with its range', () => {
    const series = createTimeSeries('mean')
    assert.equal(series.read('1h', NOW_MS).fromS, NOW_MS / 1000 - 3600)
    series.add(1, NOW_MS - 10_000)
    assert.equal(series.read('1h', NOW_MS).fromS, NOW_MS / 1000 - 60)
    series.addHistory([{ atMs: NOW_MS - 120_000, value: 1 }])
    assert.equal(series.read('1h', NOW_MS).fromS, NOW_MS / 1000 - 120)
    series.addHistory([{ atMs: NOW_MS - 3_590_000, value: 1 }])
    assert.equal(series.read('5m', NOW_MS).fromS, NOW_MS / 1000 - 120)
    series.addHistory([{ atMs: NOW_MS - 299_000, value: 1 }])
    assert.equal(series.read('5m', NOW_MS).fromS, NOW_MS / 1000 - 299)
  })

  test('amounts become a rate, also where blocks are further apart than a step, without the step that has not ended', () => {
    const fast = createTimeSeries('rate')
    for (let at = 0; at < 100; at++) fast.add(400, NOW_MS - 40_000 + at * 400)
    assert.deepEqual(new Set(fast.read('5m', NOW_MS).values), new Set([1000]))
    fast.add(1, NOW_MS)
    assert.deepEqual(fast.summary('5m', NOW_MS), { now: 1000, average: 1000, peak: 1000 })
    const slow = createTimeSeries('rate')
    for (let at = 0; at < 10; at++) slow.add(12_000, NOW_MS - 120_000 + at * 12_000)
    assert.deepEqual(new Set(slow.read('5m', NOW_MS).values), new Set([1000]))
  })
})
