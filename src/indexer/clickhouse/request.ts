import type { Random } from '../../core/random.ts'
import { FORMAT_NAMES } from '../formats/formats.ts'
import { QueryError } from '../query/error.ts'
import type { QueryLimits, QueryRequest } from '../query/request.ts'
import type { Statement } from '../query/statement.ts'
import { PUBLISHED_NAMES } from '../schema.ts'
import { readSettings } from '../session/settings.ts'
import { CATALOGUE_VIEWS } from './catalogue-views.ts'
import { createForm } from './form.ts'
import { applyClickHousePolicy } from './policy/policy.ts'
import { replaceCatalogueNames } from './replace-catalogue-names.ts'

/** Fields that the gateway sets, whatever the customer requested. */
export type ForcedFields = {
  /** Identifies the query at the server. Made by the gateway, so that no customer can reuse the id of another's query. */
  readonly queryId: string
  readonly database: string
  readonly limits: QueryLimits
  /** Whether the server completes the result before it sends its first byte, also where the customer did not request it. */
  readonly isHeld: boolean
}

/** Most bytes of a response that the server may buffer in memory. */
const BUFFER_BYTES_MAX = 16 * 1024 * 1024

/** Formats that the server may write. Formats that read a schema or a template from the server's files are not among them. */
const FORMATS: ReadonlySet<string> = new Set([
  ...FORMAT_NAMES,
  ...`TSV TSVWithNames TSVWithNamesAndTypes TSVRaw TabSeparatedRaw CSVWithNamesAndTypes NDJSON JSONLines JSONStrings JSONCompactStrings
  JSONStringsEachRow JSONCompactStringsEachRow JSONColumns JSONCompactColumns JSONColumnsWithMetadata JSONObjectEachRow
  JSONEachRowWithProgress Parquet Arrow ArrowStream Native RowBinary RowBinaryWithNames RowBinaryWithNamesAndTypes Pretty PrettyCompact
  PrettySpace Vertical Values XML Markdown`.split(/\s+/),
])

/** What a statement may name after the names of catalogue tables are replaced. */
const TABLES: ReadonlySet<string> = new Set([...PUBLISHED_NAMES, ...CATALOGUE_VIEWS])

/** Applies the SQL policy. Returns the request with the statement that the server gets; throws QueryError for a statement that it must not get. */
export function validateRequest(request: QueryRequest, statement: Statement, database: string): QueryRequest {
  const tokens = replaceCatalogueNames(statement.tokens, database)
  const { sql } = applyClickHousePolicy({ tokens }, { tables: TABLES, database })
  const named = statement.format ?? request.defaultFormat
  if (!FORMATS.has(named))
    throw new QueryError('UNKNOWN_FORMAT', `Format ${named.replaceAll(/\W/g, '?').slice(0, 60)} is not supported.`)
  return {
    ...request,
    query: sql,
    defaultFormat: named,
    settings: { ...request.settings, ...Object.fromEntries(statement.settings) },
  }
}

/** A query as the server gets it. */
export type ClickHouseCall = {
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer
}

/** With more bytes of parameters than these the URL might not pass a proxy in front of the server, or be longer than the server takes. */
const URL_PARAMETERS_BYTES_MAX = 4 * 1024

/**
 * The call of a query at the server. It is built from the parsed fields, so only listed fields pass, and settings are limited to those of the plan.
 * Long parameters are sent in the body, as official clients do. Throws QueryError.
 */
export function clickHouseCall(request: QueryRequest, forced: ForcedFields, random: Random): ClickHouseCall {
  const fields = targetFields(request, forced)
  const parameters = Object.entries(request.parameters)
  const inUrl = new URLSearchParams(parameters.map(([name, value]) => [`param_${name}`, value])).toString()
  if (inUrl.length <= URL_PARAMETERS_BYTES_MAX)
    return { target: targetOf(fields, inUrl), headers: {}, body: Buffer.from(request.query) }
  const { contentType, body } = createForm(withTimeFormat(request, fields), parameters.filter(isNamed), random)
  return { target: targetOf(fields), headers: { 'content-type': contentType }, body }
}

function targetOf(fields: URLSearchParams, parameters = ''): string {
  return `/?${fields.toString()}${parameters === '' ? '' : `&${parameters}`}`
}

/** Any other name could be read as a header of the form; no statement can name it. */
function isNamed([name]: readonly [name: string, value: string]): boolean {
  return /^\w+$/.test(name)
}

/** Beside a form the server takes a field of the URL that ends in `_format` for the format of an external table, at least before version 26. */
function withTimeFormat({ query, defaultFormat }: QueryRequest, fields: URLSearchParams): string {
  const format = fields.get('date_time_output_format')
  fields.delete('date_time_output_format')
  return format === null ? query : `${query} FORMAT ${defaultFormat} SETTINGS date_time_output_format = '${format}'`
}

function targetFields(request: QueryRequest, { queryId, database, limits, isHeld }: ForcedFields): URLSearchParams {
  const settings = readSettings(Object.entries(request.settings))
  // A client may cut its result at its own number of rows. Not by `break`, which would cut it at the bytes of the plan as well, without an error.
  const isCutAtRows = settings.endsAtRowsMax && (settings.rowsMax ?? Infinity) <= limits.rowsMax
  const fields = new URLSearchParams({
    query_id: queryId,
    database,
    default_format: request.defaultFormat,
    max_execution_time: String(Math.max(1, Math.ceil(Math.min(settings.secondsMax ?? Infinity, limits.secondsMax)))),
    max_result_rows: lowerLimit(settings.rowsMax, limits.rowsMax),
    max_result_bytes: lowerLimit(settings.bytesMax, limits.bytesMax),
    result_overflow_mode: 'throw',
    output_format_json_quote_64bit_integers: settings.quote64 ? '1' : '0',
  })
  if (isCutAtRows) fields.set('limit', String(settings.rowsMax))
  if (settings.dateTimeFormat !== 'simple') fields.set('date_time_output_format', settings.dateTimeFormat)
  if (settings.timezone !== 'UTC') fields.set('session_timezone', settings.timezone)
  if (!settings.joinUsesNulls) fields.set('join_use_nulls', '0')
  if (settings.revision > 0) fields.set('client_protocol_version', String(settings.revision))
  if (request.isNativeCompressed) fields.set('compress', '1')
  if (settings.isCompressed) fields.set('enable_http_compression', '1')
  for (const [name, value] of Object.entries(request.buffering)) fields.set(name, bufferingValue(name, value))
  if (isHeld) fields.set('wait_end_of_query', '1')
  return fields
}

function lowerLimit(requested: number | undefined, max: number): string {
  return String(Math.max(1, Math.min(Math.floor(requested ?? Infinity), max)))
}

function bufferingValue(name: string, value: string): string {
  const number = Number(value)
  if (!Number.isInteger(number) || number < 0) throw new QueryError('BAD_ARGUMENTS', `${name} takes a number.`)
  return String(name === 'buffer_size' ? Math.min(number, BUFFER_BYTES_MAX) : number === 0 ? 0 : 1)
}

/** Headers of the server's response that the customer gets. */
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

/** Counters of the x-clickhouse-summary header; they are final only when the server buffered the complete response. */
export function readSummary(header: string | undefined): { readonly resultRows: number } {
  try {
    const { result_rows: rows } = JSON.parse(header ?? '{}') as { result_rows?: unknown }
    const resultRows = Number(rows ?? 0)
    return { resultRows: Number.isSafeInteger(resultRows) && resultRows > 0 ? resultRows : 0 }
  } catch {
    return { resultRows: 0 }
  }
}
