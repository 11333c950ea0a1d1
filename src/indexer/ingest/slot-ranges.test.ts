import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { addRange, cutFrom, overlaps, type SlotRange } from './slot-ranges.ts'

const range = fc.tuple(fc.nat(60), fc.nat(8)).map(([from, length]): SlotRange => ({ from, to: from + length }))

const slotsOf = (ranges: readonly SlotRange[]): Set<number> =>
  new Set(ranges.flatMap(({ from, to }) => Array.from({ length: to - from + 1 }, (_, at) => from + at)))

test('a list of ranges is sorted and merged, and contains exactly the added slots', (t) => {
  checkProperty(
    t,
    fc.property(fc.array(range, { maxLength: 12 }), fc.nat(70), range, (added, cut, probe) => {
      const all = added.reduce<SlotRange[]>(addRange, [])
      const slots = slotsOf(added)
      assert.deepEqual([...slotsOf(all)].toSorted(byNumber), [...slots].toSorted(byNumber))
      all.forEach(({ from }, at) => assert.ok(at === 0 || from > (all[at - 1] as SlotRange).to + 1))
      assert.deepEqual(slotsOf(cutFrom(all, cut)), new Set([...slotsOf(all)].filter((slot) => slot < cut)))
      const missing = [...slotsOf([probe])].filter((slot) => !slots.has(slot))
      assert.equal(overlaps(all, probe), missing.length < slotsOf([probe]).size)
    }),
    500,
    20_000,
  )
})

function byNumber(a: number, b: number): number {
  return a - b
}
