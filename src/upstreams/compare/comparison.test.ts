import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, seedOf } from '../../../test/support/process/property.ts'
import { StreamComparison } from './comparison.ts'
import { LeadHistogram } from './lead-histogram.ts'

const OPTIONS = { settleMs: 100, transactionsMax: 1000 }

/** Both streams have delivered at 0, so transactions count from 100 on. */
function open(options = OPTIONS): StreamComparison {
  const comparison = new StreamComparison(options)
  comparison.add('first', 'start', 0)
  comparison.add('second', 'start', 0)
  return comparison
}

test('counts who was first, who was alone and by how much, each transaction once', () => {
  const comparison = open()
  comparison.add('first', 'a', 200)
  comparison.add('second', 'a', 210)
  comparison.add('second', 'b', 220)
  comparison.add('first', 'b', 222)
  comparison.add('first', 'c', 230)
  comparison.add('first', 'c', 231)
  comparison.add('second', 'd', 240)
  comparison.add('second', 'a', 250)
  comparison.add('first', 'late', 395)
  const { leadMs, ...counts } = comparison.result(400)
  assert.deepEqual(counts, {
    transactions: 4,
    both: 2,
    firstEarlier: 1,
    secondEarlier: 1,
    onlyFirst: 1,
    onlySecond: 1,
    pending: 1,
    repeated: { first: 1, second: 0 },
    firstShare: 0.5,
    secondShare: 0.5,
  })
  assert.deepEqual([leadMs?.mean, leadMs?.min, leadMs?.max], [4, -2, 10])
})

test('does not count what came before both streams had run for a while, nor what first comes after the end', () => {
  const comparison = new StreamComparison(OPTIONS)
  comparison.add('first', 'before', 0)
  comparison.add('second', 'x', 1000)
  assert.equal(comparison.countsFromMs, 1100)
  comparison.add('first', 'early', 1050)
  comparison.add('first', 'counted', 1100)
  comparison.stopCounting()
  comparison.add('first', 'after', 1200)
  comparison.add('second', 'counted', 1210)
  const { transactions, both, onlyFirst, onlySecond } = comparison.result(5000)
  assert.deepEqual([transactions, both, onlyFirst, onlySecond], [1, 1, 0, 0])
})

test('remembers at most so many transactions, and those it forgets count as missing in the other stream', () => {
  const comparison = open({ settleMs: 100, transactionsMax: 10 })
  for (let i = 0; i < 100; i++) comparison.add('first', String(i), 200)
  comparison.add('second', '99', 201)
  comparison.add('second', '0', 202)
  const { onlyFirst, both, onlySecond } = comparison.result(1000)
  assert.deepEqual([onlyFirst, both, onlySecond], [99, 1, 1])
})

test('quantiles of leads are within 2.5 % of the exact ones, negative ones too', (t) => {
  const random = createRandom(seedOf(t))
  const histogram = new LeadHistogram()
  assert.equal(histogram.summary(), undefined)
  const leads = Array.from({ length: 5000 }, () => (random(3) === 0 ? -1 : 1) * 10 ** (random(6000) / 1000 - 2))
  for (const lead of leads) histogram.add(lead)
  const sorted = leads.toSorted((a, b) => a - b)
  const summary = histogram.summary() ?? assert.fail()
  for (const [name, share] of [
    ['p50', 0.5],
    ['p90', 0.9],
    ['p99', 0.99],
  ] as const) {
    const exact = sorted[Math.ceil(share * sorted.length) - 1] as number
    assert.ok(Math.abs(summary[name] / exact - 1) < 0.025, `${name}: ${summary[name]} for ${exact}`)
  }
  assert.deepEqual([summary.min, summary.max], [sorted[0], sorted.at(-1)])
  const extreme = new LeadHistogram()
  for (const lead of [1e12, -1e12, 0]) extreme.add(lead)
  assert.deepEqual(extreme.summary()?.p50, 0)
})
