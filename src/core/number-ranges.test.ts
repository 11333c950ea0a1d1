import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../test/support/process/property.ts'
import { highestRanges, NumberRanges } from './number-ranges.ts'

function rangesOf(numbers: Iterable<number>): { from: number; to: number }[] {
  const ranges: { from: number; to: number }[] = []
  for (const number of [...new Set(numbers)].toSorted((a, b) => a - b)) {
    const last = ranges.at(-1)
    if (last?.to === number - 1) last.to = number
    else ranges.push({ from: number, to: number })
  }
  return ranges
}

test('numbers that are added and removed in any order are the ranges of a set, alone and together', (t) => {
  const changes = fc.array(fc.record({ set: fc.nat(1), number: fc.nat(30), isAdded: fc.boolean() }), { maxLength: 120 })
  checkProperty(
    t,
    fc.property(changes, fc.integer({ min: 1, max: 4 }), (given, countMax) => {
      const sets = [new NumberRanges(), new NumberRanges()] as const
      const plain = [new Set<number>(), new Set<number>()] as const
      for (const { set, number, isAdded } of given) {
        const [ranges, numbers] = set === 0 ? [sets[0], plain[0]] : [sets[1], plain[1]]
        if (isAdded) {
          ranges.add(number)
          numbers.add(number)
        } else {
          ranges.remove(number)
          numbers.delete(number)
        }
      }
      for (const at of [0, 1] as const) {
        const all = Array.from({ length: sets[at].count }, (_, index) => sets[at].at(index))
        assert.deepEqual(all, rangesOf(plain[at]))
      }
      assert.deepEqual(highestRanges(sets, countMax), rangesOf([...plain[0], ...plain[1]]).slice(-countMax))
    }),
    500,
    20_000,
  )
})
