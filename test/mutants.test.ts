import assert from 'node:assert/strict'
import { test } from 'node:test'
import { mutantsOf } from '../scripts/mutation/mutants.ts'

const SOURCE = `import { a } from './a.ts'
/** At most 5 > 4. */
export function admit(count: number, isOpen: boolean): boolean {
  if (count >= 10 && !isOpen) return false
  return /1<2/.test('3 < 4') || Math.min(count, 7) === 7
}
`

test('mutates code, and never types, texts, regular expressions or comments', () => {
  const made = mutantsOf(SOURCE).map(({ line, from, to }) => `${line} ${from} -> ${to}`)
  assert.deepEqual(
    made.toSorted(),
    [
      '4 if (count >= 10 && !isOpen) -> if (false)',
      '4 >= -> >',
      '4 10 -> 11',
      '4 && -> ||',
      '4 ! -> ',
      '4 false -> true',
      '5 || -> &&',
      '5 min -> max',
      '5 7 -> 8',
      '5 === -> !==',
      '5 7 -> 8',
    ].toSorted(),
  )
})

test('a mutation changes only its own position', () => {
  for (const { from, to, source } of mutantsOf(SOURCE)) {
    assert.equal(source.length, SOURCE.length - from.length + to.length)
    assert.notEqual(source, SOURCE)
  }
})
