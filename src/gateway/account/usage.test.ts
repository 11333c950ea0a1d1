import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import type { UsageLine } from '../../access/usage/report.ts'
import { usageReport } from '../../contract/schemas/customer.ts'
import { NO_REPORTS } from './reports.ts'
import { parseUsageQuery, respondWithUsage, USAGE_DAYS_MAX } from './usage.ts'

const NOW_MS = Date.UTC(2026, 10, 16, 12, 34, 56)
const DAY_MS = 86_400_000

function periodOf(query: string): { by: string; from: string; to: string } | string {
  const parsed = parseUsageQuery(query, undefined, NOW_MS)
  if (!parsed.ok) return parsed.invalid.message
  const { by, fromMs, toMs } = parsed.query
  return { by, from: new Date(fromMs).toISOString(), to: new Date(toMs).toISOString() }
}

test('reads period and grouping; the period is that of the rows that are summed', () => {
  const to = '2026-11-16T12:34:56.000Z'
  assert.deepEqual(periodOf(''), { by: 'day', from: '2026-10-17T00:00:00.000Z', to })
  assert.deepEqual(periodOf('since=2h&by=hour'), { by: 'hour', from: '2026-11-16T10:00:00.000Z', to })
  assert.deepEqual(periodOf('since=1d&by=method&api-key=slc_x'), {
    by: 'method',
    from: '2026-11-15T00:00:00.000Z',
    to: '2026-11-17T00:00:00.000Z',
  })
  assert.deepEqual(periodOf('month=2026-10&by=total'), {
    by: 'total',
    from: '2026-10-01T00:00:00.000Z',
    to: '2026-11-01T00:00:00.000Z',
  })
})

test('refuses what it does not know, by name, and never repeats what could be a token', () => {
  const token = `slc_${'x'.repeat(38)}`
  assert.match(
    JSON.stringify(periodOf('sinse=7d')),
    /^"\\"sinse\\" is not a parameter: use since, until, month, by, format"$/,
  )
  assert.match(JSON.stringify(periodOf('by=week')), /^"by is one of hour, day, total, method"$/)
  assert.match(JSON.stringify(periodOf('format=xml')), /^"format is one of json, csv"$/)
  assert.match(JSON.stringify(periodOf('since=1d&since=2d')), /^"since is given twice"$/)
  assert.match(JSON.stringify(periodOf('month=2026-10&since=1d')), /month is a complete period/)
  assert.match(JSON.stringify(periodOf('since=2026-11-10&until=2026-11-01')), /ends before it begins/)
  for (const query of [`${token}=1`, `since=${token}`, `by=${token}`, `format=${token}`, `month=${token}`])
    assert.doesNotMatch(JSON.stringify(periodOf(query)), /slc_/)
})

test('a value has a length and a period a first year, each named in the refusal', () => {
  assert.equal(periodOf(`since=${'x'.repeat(33)}`), 'since is at most 32 characters')
  assert.notEqual(typeof periodOf(`since=${'1d'.padStart(32, '0')}`), 'string')
  assert.equal(periodOf('month=1969-12&by=total'), 'the period begins before 1970')
  assert.notEqual(typeof periodOf('month=1970-01&by=total'), 'string')
})

test('a report covers so many days; a longer one names the limit', () => {
  for (const by of ['hour', 'day', 'method', 'total'] as const) {
    const daysMax = USAGE_DAYS_MAX[by]
    assert.equal(parseUsageQuery(`since=${daysMax}d&by=${by}`, undefined, NOW_MS).ok, true)
    const refused = parseUsageQuery(`since=${daysMax + 1}d&by=${by}`, undefined, NOW_MS)
    assert.ok(!refused.ok && refused.invalid.limit === 'usagePeriodDays' && refused.invalid.size === daysMax, by)
    assert.match(refused.invalid.message, new RegExp(`at most ${daysMax} days`))
  }
})

test('whatever the query, it is refused with a message or its period is within the bound', (t) => {
  const span = fc.tuple(fc.nat(), fc.constantFrom('s', 'm', 'h', 'd', 'w', '')).map((parts) => parts.join(''))
  const value = fc.oneof(
    fc.string({ unit: 'binary', maxLength: 40 }),
    span,
    fc.date({ noInvalidDate: true }).map((date) => date.toISOString().slice(0, 10)),
    fc.constantFrom('0000-01', '9999-12', '2026-11', '99999999999999d', '9e99d', '-1d', '', 'hour', 'csv', 'total'),
  )
  const name = fc.oneof(fc.constantFrom('since', 'until', 'month', 'by', 'format'), fc.string({ maxLength: 40 }))
  const query = fc
    .array(fc.tuple(name, value), { maxLength: 5 })
    .map((pairs) => new URLSearchParams(pairs.map(([key, text]) => [key, text])).toString())
  checkProperty(
    t,
    fc.property(fc.oneof(query, fc.string({ maxLength: 200 })), (text) => {
      const parsed = parseUsageQuery(text, undefined, NOW_MS)
      if (!parsed.ok) return assert.ok(parsed.invalid.message.length > 0 && parsed.invalid.message.length < 400)
      const { by, fromMs, toMs } = parsed.query
      assert.ok(fromMs >= 0 && fromMs < toMs && toMs - fromMs <= (USAGE_DAYS_MAX[by] + 2) * DAY_MS)
      // Both can be printed.
      assert.ok(new Date(fromMs).toISOString() !== new Date(toMs).toISOString())
    }),
    2000,
    100_000,
  )
})

const LINES: UsageLine[] = [
  {
    subscriptionId: 'sub_1',
    hour: Date.UTC(2026, 10, 15),
    interface: 'rpc',
    method: 'getSlot',
    calls: 3,
    units: 5,
    refused: 1,
  },
  {
    subscriptionId: 'sub_1',
    hour: Date.UTC(2026, 10, 16),
    interface: 'ws',
    method: '=cmd(),"x"',
    calls: 2,
    units: 2,
    refused: 0,
  },
]
const respond = async (query: string, accept?: string, lines: readonly UsageLine[] = LINES) => {
  const reports = { ...NO_REPORTS, usage: async () => ({ ok: true, lines, asOfMs: NOW_MS }) as const }
  return respondWithUsage(reports, 'sub_1', { body: Buffer.alloc(0), requestId: 'r', query, accept }, NOW_MS)
}

test('JSON has the lines and their sum, matches its schema, and has no id of the subscription', async () => {
  for (const by of ['day', 'hour', 'total', 'method']) {
    const { status, body } = await respond(`by=${by}`)
    assert.equal(status, 200)
    const report = usageReport.parse(body)
    assert.deepEqual(report.totals, { calls: 5, units: 7, refused: 1 })
    assert.equal(report.as_of, new Date(NOW_MS).toISOString())
    assert.doesNotMatch(JSON.stringify(body), /sub_1/)
  }
  const { lines } = usageReport.parse((await respond('by=day')).body)
  assert.deepEqual(lines[0], { day: '2026-11-15', interface: 'rpc', calls: 3, units: 5, refused: 1 })
})

test('CSV has a header, is quoted, and no cell begins a formula', async () => {
  const { headers, body } = await respond('by=method&format=csv')
  assert.match(headers?.['content-type'] ?? '', /^text\/csv/)
  assert.equal(body, `interface,method,calls,units,refused\nrpc,getSlot,3,5,1\nws,"'=cmd(),""x""",2,2,0\n`)
  const isCsv = async (accept: string) => typeof (await respond('', accept)).body === 'string'
  assert.equal(await isCsv('text/csv'), true)
  assert.equal(await isCsv('text/csv, application/json'), true)
  assert.equal(await isCsv('application/json, text/csv'), false)
  assert.equal(await isCsv('*/*'), false)
})

test('without a report it is 503 with the time of the next attempt', async () => {
  for (const reason of ['busy', 'late', 'failed'] as const) {
    const reports = { ...NO_REPORTS, usage: async () => ({ ok: false, reason }) as const }
    const request = { body: Buffer.alloc(0), requestId: 'r', query: '', accept: undefined }
    const { status, headers, body } = await respondWithUsage(reports, 'sub_1', request, NOW_MS)
    assert.deepEqual([status, headers?.['retry-after']], [503, '2'])
    assert.match(JSON.stringify(body), reason === 'busy' ? /"limit":"accountReports"/ : /"error":"overloaded"/)
  }
})

test('a report of very many lines is made in slices, between which the event loop serves others', async () => {
  const many = Array.from({ length: 20_000 }, () => LINES[0] as UsageLine)
  for (const format of ['json', 'csv']) {
    let turns = 0
    const count = () => {
      turns += 1
      next = setImmediate(count)
    }
    let next = setImmediate(count)
    const { body } = await respond(`by=hour&format=${format}`, undefined, many)
    clearImmediate(next)
    assert.ok(turns > 1, `${format}: ${turns} turns`)
    if (typeof body === 'string') assert.equal(body.split('\n').length, many.length + 2)
    else assert.deepEqual(usageReport.parse(body).totals, { calls: 60_000, units: 100_000, refused: 20_000 })
  }
})
