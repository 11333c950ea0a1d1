import { PUBLISHED, type QueryLimits } from '../duckdb/run-query.ts'
import { QueryError } from '../query/error.ts'
import { FORMAT_NAMES } from '../query/formats.ts'
import type { QueryRequest } from '../query/request.ts'
import { readSettings } from '../query/settings.ts'
import { applyClickHousePolicy } from './policy/policy.ts'

/** What the gateway says of a query, whatever the customer said. */
export type ForcedFields = {
  /** Names the query at the server: no customer can name or meet the query of another. */
  readonly queryId: string
  readonly database: string
  readonly limits: Pick<QueryLimits, 'secondsMax' | 'rowsMax'>
}

/** What the server may hold back of an answer in its memory. */
const BUFFER_BYTES_MAX = 16 * 1024 * 1024

/** What the server writes that the embedded engine does not. Formats that read a schema or a template from the server's files are not here. */
const FORMATS: ReadonlySet<string> = new Set([
  ...FORMAT_NAMES,
  ...`TSV TSVWithNames TSVWithNamesAndTypes TSVRaw TabSeparatedRaw CSVWithNamesAndTypes NDJSON JSONLines JSONStrings JSONCompactStrings
  JSONStringsEachRow JSONCompactStringsEachRow JSONColumns JSONCompactColumns JSONColumnsWithMetadata JSONObjectEachRow
  JSONEachRowWithProgress Parquet Arrow ArrowStream Native RowBinary RowBinaryWithNames RowBinaryWithNamesAndTypes Pretty PrettyCompact
  PrettySpace Vertical Values XML Markdown`.split(/\s+/),
])

/** What is asked, with the statement as the server is to see it. Throws QueryError for what it is not to see. */
export function validateStatement(asked: QueryRequest, query: string, database: string): QueryRequest {
  const { sql, format, settings } = applyClickHousePolicy(query, { tables: PUBLISHED, database })
  const named = format ?? asked.defaultFormat
  if (!FORMATS.has(named))
    throw new QueryError('UNKNOWN_FORMAT', `Format ${named.replaceAll(/\W/g, '?').slice(0, 60)} is not offered here.`)
  return {
    ...asked,
    query: sql,
    defaultFormat: named,
    settings: { ...asked.settings, ...Object.fromEntries(settings) },
  }
}

/**
 * The address of a query at the server: made anew from what was read, so that nothing passes that is not on a list. Settings are held to the plan;
 * those without a name on the list were refused. Throws QueryError.
 */
export function clickHouseTarget(asked: QueryRequest, { queryId, database, limits }: ForcedFields): string {
  const settings = readSettings(Object.entries(asked.settings))
  const fields = new URLSearchParams({
    query_id: queryId,
    database,
    default_format: asked.defaultFormat,
    max_execution_time: String(Math.max(1, Math.ceil(Math.min(settings.secondsMax ?? Infinity, limits.secondsMax)))),
    max_result_rows: String(Math.max(1, Math.min(Math.floor(settings.rowsMax ?? Infinity), limits.rowsMax))),
    result_overflow_mode: 'throw',
    output_format_json_quote_64bit_integers: settings.quote64 ? '1' : '0',
  })
  if (settings.isCompressed) fields.set('enable_http_compression', '1')
  for (const [name, value] of Object.entries(asked.holding)) fields.set(name, holdingValue(name, value))
  for (const [name, value] of Object.entries(asked.parameters)) fields.set(`param_${name}`, value)
  return `/?${fields.toString()}`
}

function holdingValue(name: string, value: string): string {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0) throw new QueryError('BAD_ARGUMENTS', `${name} takes a number.`)
  return String(name === 'buffer_size' ? Math.min(number, BUFFER_BYTES_MAX) : number === 0 ? 0 : 1)
}

/** What passes from the server's answer to the customer. The rest is between the server and the gateway. */
const PASSED_HEADERS = [
  'content-type',
  'content-encoding',
  'x-clickhouse-format',
  'x-clickhouse-timezone',
  'x-clickhouse-summary',
  'x-clickhouse-exception-code',
  'x-clickhouse-exception-tag',
]

export function passedHeaders(
  headers: Readonly<Record<string, string | string[] | undefined>>,
): Record<string, string> {
  const passed: Record<string, string> = {}
  for (const name of PASSED_HEADERS) {
    const value = headers[name]
    if (typeof value === 'string') passed[name] = value
  }
  return passed
}

/** Counters of a Summary header; they are final when the server held the answer back to its end. */
export function readSummary(header: string | undefined): { readonly resultRows: number } {
  try {
    const { result_rows: rows } = JSON.parse(header ?? '{}') as { result_rows?: unknown }
    const resultRows = Number(rows ?? 0)
    return { resultRows: Number.isSafeInteger(resultRows) && resultRows > 0 ? resultRows : 0 }
  } catch {
    return { resultRows: 0 }
  }
}
