import assert from 'node:assert/strict'
import { test } from 'node:test'
import { BatchRows, type Cell } from './batch-rows.ts'

const SLOT = 2 ** 40 + 5

test('rows are read as they were added, also after the arrays have grown', () => {
  const { texts, tables } = new BatchRows()
  const wallet = texts.intern('ä wallet')
  assert.equal(texts.intern('ä wallet'), wallet)
  assert.notEqual(texts.add('ä wallet'), wallet)
  for (let row = 0; row < 1000; row++)
    tables.rewards.add(SLOT + row, row, wallet, texts.add(`kind ${row}`), -BigInt(row), 2n ** 64n - 1n, -1)
  const rows = [...tables.rewards.rows()]
  assert.equal(rows.length, 1000)
  rows.forEach((row, at) => {
    assert.deepEqual(row, [BigInt(SLOT + at), at, 'ä wallet', `kind ${at}`, -BigInt(at), 2n ** 64n - 1n, -1])
  })
})

test('a value out of the range of its column is refused, not truncated', () => {
  const { texts, tables } = new BatchRows()
  const text = texts.intern('')
  const good: readonly Cell[] = [1, 1, text, text, 0n, 0n, 0]
  for (const [at, bad] of [
    [0, -1],
    [0, 2 ** 60],
    [1, 2 ** 32],
    [4, 2n ** 63n],
    [5, 2n ** 64n],
    [5, -1n],
    [6, 40_000],
    [6, Number.NaN],
  ] as const)
    assert.throws(() => tables.rewards.add(...good.with(at, bad)), RangeError, `${at}: ${bad}`)
})
