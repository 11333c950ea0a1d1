import assert from 'node:assert/strict'
import { test } from 'node:test'
import { UpstreamCoverage } from './coverage.ts'

/** A stream that has sent slots up to this one, each with the data sets [0, 32) and [32, 96). */
function sentUntil(slot: number): UpstreamCoverage {
  const coverage = new UpstreamCoverage(64)
  coverage.opened(0, 1, 99)
  for (let each = 100; each <= slot; each++) {
    coverage.delivered(0, each, 0, 32)
    coverage.delivered(0, each, 32, 96)
  }
  return coverage
}

test('what data sets of a node cover without a hole is delivered, once the stream is well behind the slot', () => {
  const coverage = sentUntil(112)
  assert.equal(coverage.covers(106, 0, 96), true)
  assert.equal(coverage.covers(106, 32, 96), true)
  assert.equal(coverage.covers(106, 0, 128), false, 'a hole at the end')
  assert.equal(coverage.covers(106, 0, undefined), false, 'the end is not known')
  coverage.completed(0, 106)
  assert.equal(coverage.covers(106, 0, undefined), true, 'the node has sent all')
  assert.equal(coverage.covers(109, 0, 96), false, 'more of the slot may follow')
  assert.equal(coverage.covers(104, 0, 96), false, 'the stream may have begun within the slot')
  assert.equal(coverage.covers(105, 0, 96), true)
})

test('a stream that ended, has lost something or was replaced covers nothing before', () => {
  for (const breaks of [
    (coverage: UpstreamCoverage) => coverage.ended(0),
    (coverage: UpstreamCoverage) => coverage.broken(0),
    (coverage: UpstreamCoverage) => coverage.broken(),
    (coverage: UpstreamCoverage) => coverage.opened(0, 2, 112),
  ]) {
    const coverage = sentUntil(112)
    breaks(coverage)
    for (let slot = 113; slot < 116; slot++) coverage.delivered(0, slot, 0, 32)
    assert.equal(coverage.covers(106, 0, 96), false)
    assert.equal(coverage.covers(111, 0, 96), false)
  }
  const other = sentUntil(112)
  other.broken(5)
  assert.equal(other.covers(106, 0, 96), true, 'of another source')
})

test('a stream is believed again some slots after a loss, and another stream of its source is another one', () => {
  const coverage = sentUntil(112)
  assert.deepEqual([coverage.isOpen(0, 1), coverage.isOpen(0, 2), coverage.isOpen(1, 1)], [true, false, false])
  coverage.broken(0)
  for (let slot = 113; slot <= 125; slot++) coverage.delivered(0, slot, 0, 32)
  assert.deepEqual(
    [112, 116, 117].map((slot) => coverage.covers(slot, 0, 32)),
    [false, false, true],
  )
  coverage.delivered(0, 112, 0, 96)
  assert.equal(coverage.covers(112, 0, 96), false, 'a message of a slot before')
})

test('what a node says of data sets is limited, and wrong bounds end nothing', () => {
  const coverage = sentUntil(112)
  for (const [from, to] of [
    [96, 96],
    [128, 96],
  ] as const)
    coverage.delivered(0, 106, from, to)
  assert.equal(coverage.covers(106, 0, 160), false, 'no range without an end')
  coverage.delivered(0, 106, 32, 64)
  assert.equal(coverage.covers(106, 0, 96), true, 'the longer one counts')
  for (let set = 3; set <= 1025; set++) coverage.delivered(0, 106, set * 32, (set + 1) * 32)
  assert.deepEqual([coverage.covers(106, 0, 1025 * 32), coverage.covers(106, 0, 1026 * 32)], [true, false])

  const short = new UpstreamCoverage(8)
  short.opened(0, 1, 99)
  for (let slot = 100; slot <= 113; slot++) short.delivered(0, slot, 0, 32)
  assert.equal(short.covers(105, 0, 32), true)
  short.delivered(0, 114, 0, 32)
  assert.equal(short.covers(105, 0, 32), false, 'it has left the window')
})
