import { sumCounts } from '../../access/store/counts.ts'
import type { UsageCounts } from '../../access/store/model.ts'
import { csvLine } from '../../access/usage/export.ts'
import {
  alignPeriod,
  USAGE_GROUPINGS,
  type UsageGrouping,
  type UsageLine,
  usagePeriodOf,
} from '../../access/usage/report.ts'
import { toWireJson } from '../../contract/wire-json.ts'
import { isServiceError } from '../../core/error.ts'
import { DAY_MS } from '../../core/human-units.ts'
import { mapInSlices } from '../../platform/process/time-slices.ts'
import type { EndpointRequest, EndpointResponse } from './endpoint.ts'
import { type AccountReports, type UsageQuery, unavailable } from './reports.ts'

/** Days of one report. The sums of a longer period are few lines, but as many rows are read for them. */
export const USAGE_DAYS_MAX: Readonly<Record<UsageGrouping, number>> = { hour: 31, day: 31, method: 31, total: 92 }
/** Shorter than a token, so that no error repeats one that was sent as a value. */
const VALUE_LENGTH_MAX = 32
const FORMATS = ['json', 'csv'] as const
type Format = (typeof FORMATS)[number]
const PARAMETERS: readonly string[] = ['since', 'until', 'month', 'by', 'format']
/** The token, where the customer sends it in the query. */
const CREDENTIALS: readonly string[] = ['api-key', 'api_key']
const NO_COUNTS: UsageCounts = { calls: 0, units: 0, refused: 0 }

type Invalid = {
  readonly message: string
  readonly fix?: string | undefined
  readonly limit?: string
  readonly size?: number
}
export type ParsedUsageQuery =
  | { readonly ok: true; readonly query: UsageQuery; readonly format: Format }
  | { readonly ok: false; readonly invalid: Invalid }

/** `GET /v1/usage`: the usage of the caller's own subscription. */
export async function respondWithUsage(
  reports: AccountReports,
  subscriptionId: string,
  request: EndpointRequest,
  nowMs: number,
): Promise<EndpointResponse> {
  const parsed = parseUsageQuery(request.query, request.accept, nowMs)
  if (!parsed.ok) {
    const { message, ...more } = parsed.invalid
    return { status: 400, body: { error: 'invalid-params', message, ...more, request_id: request.requestId } }
  }
  const read = await reports.usage({ subscriptionId, ...parsed.query })
  if (!read.ok) return unavailable(read.reason, request.requestId)
  const { query, format } = parsed
  const asOf = new Date(read.asOfMs).toISOString()
  if (format === 'json') return { status: 200, body: await usageBody(query, read.lines, asOf) }
  const name = `usage-${isoDay(query.fromMs)}-by-${query.by}.csv`
  const headers = {
    'content-type': 'text/csv; charset=utf-8; header=present',
    'content-disposition': `attachment; filename="${name}"`,
    'x-as-of': asOf,
  }
  return { status: 200, headers, body: await usageCsv(query.by, read.lines) }
}

/** Reads the query, whose names are checked: a misspelt one would otherwise give a report of another period. */
export function parseUsageQuery(text: string, accept: string | undefined, nowMs: number): ParsedUsageQuery {
  const given = new Map<string, string>()
  for (const [name, value] of new URLSearchParams(text)) {
    if (CREDENTIALS.includes(name)) continue
    if (!PARAMETERS.includes(name)) return invalid(`${shown(name)} is not a parameter: use ${PARAMETERS.join(', ')}`)
    if (given.has(name)) return invalid(`${name} is given twice`)
    if (value.length > VALUE_LENGTH_MAX) return invalid(`${name} is at most ${VALUE_LENGTH_MAX} characters`)
    given.set(name, value)
  }
  const by = oneOf(USAGE_GROUPINGS, given.get('by') ?? 'day')
  if (by === undefined) return invalid(`by is one of ${USAGE_GROUPINGS.join(', ')}`)
  const format = oneOf(FORMATS, given.get('format') ?? (prefersCsv(accept) ? 'csv' : 'json'))
  if (format === undefined) return invalid(`format is one of ${FORMATS.join(', ')}`)
  try {
    const [month, since, until] = [given.get('month'), given.get('since'), given.get('until')]
    const period = usagePeriodOf({ month, since, until }, nowMs, '')
    const daysMax = USAGE_DAYS_MAX[by]
    if (period.toMs - period.fromMs > daysMax * DAY_MS) {
      const message = `limit reached: a report by ${by} covers at most ${daysMax} days; request several, or by=total with up to ${USAGE_DAYS_MAX.total} days`
      return { ok: false, invalid: { message, limit: 'usagePeriodDays', size: daysMax } }
    }
    if (!(period.fromMs >= 0)) return invalid('the period begins before 1970')
    return { ok: true, format, query: { by, ...alignPeriod(by, period) } }
  } catch (error) {
    if (!isServiceError(error)) throw error
    return invalid(error.message, error.fix)
  }
}

function invalid(message: string, fix?: string): ParsedUsageQuery {
  return { ok: false, invalid: { message, ...(fix === undefined ? {} : { fix }) } }
}

function oneOf<Name extends string>(names: readonly Name[], text: string): Name | undefined {
  return names.find((name) => name === text)
}

/** A name that cannot be a token, or the like of it. */
function shown(name: string): string {
  return /^[\w.-]{1,32}$/.test(name) ? `"${name}"` : 'a name in the query'
}

/** Whether the client names CSV and does not name JSON before it. */
function prefersCsv(accept = ''): boolean {
  const csv = accept.indexOf('text/csv')
  const json = accept.indexOf('application/json')
  return csv !== -1 && (json === -1 || csv < json)
}

/** In slices: a month by hour has some thousand lines. */
async function usageBody({ by, fromMs, toMs }: UsageQuery, lines: readonly UsageLine[], asOf: string): Promise<object> {
  let totals = NO_COUNTS
  const wireLines = await mapInSlices(lines, (line) => {
    totals = sumCounts(totals, line)
    return wireLine(by, line)
  })
  return {
    from: new Date(fromMs).toISOString(),
    to: new Date(toMs).toISOString(),
    by,
    as_of: asOf,
    lines: wireLines,
    totals: toWireJson(totals),
  }
}

/** What is counted comes as it is, so that a further count appears by itself. */
function wireLine(by: UsageGrouping, line: UsageLine): Record<string, string | number> {
  const { subscriptionId: _own, hour, interface: name, method, ...counts } = line
  return {
    ...(by === 'day' ? { day: isoDay(hour) } : by === 'hour' ? { hour: new Date(hour).toISOString() } : {}),
    interface: name,
    ...(by === 'method' ? { method: method ?? 'other' } : {}),
    ...(toWireJson(counts) as Record<string, number>),
  }
}

async function usageCsv(by: UsageGrouping, lines: readonly UsageLine[]): Promise<string> {
  const empty: UsageLine = { subscriptionId: '', hour: 0, interface: 'rpc', ...NO_COUNTS }
  const columns = Object.keys(wireLine(by, lines[0] ?? empty))
  const rows = await mapInSlices(lines, (line) => csvLine(columns, wireLine(by, line)))
  return `${[columns.join(','), ...rows].join('\n')}\n`
}

function isoDay(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10)
}
