import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { parsePastUntil, parseSince, parseUntil } from './dates.ts'

const NOW = Date.parse('2026-11-18T10:00:00Z')
const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

describe('the end of a subscription', () => {
  test('is the end of a day, also of the one that a time span reaches', () => {
    assert.equal(iso(parseUntil('2027-01-31', NOW)), '2027-02-01T00:00:00.000Z')
    assert.equal(iso(parseUntil('1d', NOW)), '2026-11-20T00:00:00.000Z')
    const midnight = Date.parse('2026-11-18T00:00:00Z')
    assert.equal(iso(parseUntil('1d', midnight)), '2026-11-19T00:00:00.000Z')
    assert.equal(parseUntil('never', NOW), null)
    for (const text of ['', '2027-02-31', '0d', '-1d', 'soon'])
      assert.throws(() => parseUntil(text, NOW), { code: 'invalid-value' }, text)
  })

  test('is at most in the year 9999: a later one cannot be printed', () => {
    assert.equal(iso(parseUntil('9999-12-30', NOW)), '9999-12-31T00:00:00.000Z')
    for (const text of ['9999-12-31', '100000000d', '3000000d'])
      assert.throws(() => parseUntil(text, NOW), { code: 'invalid-value', message: /after the year 9999/ }, text)
  })
})

test('a period that begins or ends before 1970 does so in 1970', () => {
  assert.equal(parseSince('100000000d', NOW), 0)
  assert.equal(parsePastUntil('100000000d', NOW), 0)
  assert.equal(iso(parseSince('7d', NOW)), '2026-11-11T10:00:00.000Z')
})
