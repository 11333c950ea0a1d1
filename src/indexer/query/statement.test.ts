import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseStatement } from './statement.ts'

const read = (query: string) => {
  const { tokens, format, settings } = parseStatement(query)
  return [tokens.map(({ text }) => text).join(' '), format, Object.fromEntries(settings)]
}

test('SETTINGS may be before FORMAT, after it, and both; of a setting that is given twice the last value holds', () => {
  const settings = { a: '1', b: 'x' }
  for (const end of [
    "SETTINGS a = 1, b = 'x' FORMAT JSON",
    "FORMAT JSON SETTINGS a = 1, b = 'x'",
    "settings a = 1 format JSON settings b = 'x';",
    "SETTINGS a = 0, b = 'x' FORMAT JSON SETTINGS a = 1",
  ])
    assert.deepEqual(read(`SELECT 1 ${end}`), ['SELECT 1', 'JSON', settings], end)
  assert.deepEqual(read('SELECT 1 SETTINGS a = 1'), ['SELECT 1', undefined, { a: '1' }])
  assert.deepEqual(read('SELECT 1 FORMAT JSON'), ['SELECT 1', 'JSON', {}])
})

test('SETTINGS of a subquery are not those of the statement', () => {
  const inner = 'SELECT * FROM ( SELECT 1 SETTINGS a = 1 ) LIMIT 1'
  assert.deepEqual(read(inner), [inner, undefined, {}])
  assert.deepEqual(read(`${inner} SETTINGS b = 2 FORMAT CSV`), [inner, 'CSV', { b: '2' }])
})
