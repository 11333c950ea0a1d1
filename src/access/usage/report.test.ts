import assert from 'node:assert/strict'
import { test } from 'node:test'
import { usagePeriodOf } from './report.ts'

const at = (text: string) => Date.parse(`${text}Z`)
const NOW_MS = at('2026-11-18T13:37:20')

test('a period that begins within an hour or a day has all of it, as usage is kept', () => {
  const period = (request: Record<string, string>) => {
    const { fromMs, toMs } = usagePeriodOf(request, NOW_MS)
    return [fromMs, toMs].map((ms) => new Date(ms).toISOString().slice(5, 19))
  }
  for (const by of ['hour', 'total', 'interface'])
    assert.deepEqual(period({ since: '30m', by }), ['11-18T13:00:00', '11-18T13:37:20'], by)
  assert.deepEqual(period({ since: '1d', by: 'day' }), ['11-17T00:00:00', '11-18T13:37:20'])
  assert.deepEqual(period({ since: '1d', by: 'method' }), ['11-17T00:00:00', '11-19T00:00:00'])
  assert.deepEqual(period({ by: 'total' }), ['10-19T13:00:00', '11-18T13:37:20'])
  assert.deepEqual(period({ since: '2026-11-17', until: '2026-11-17', by: 'hour' }), [
    '11-17T00:00:00',
    '11-18T00:00:00',
  ])
  assert.deepEqual(period({ since: '30m' }), ['11-18T13:07:20', '11-18T13:37:20'])
  assert.throws(() => usagePeriodOf({ since: '1h', until: '2h', by: 'total' }, NOW_MS), { code: 'invalid-value' })
})
