import { QueryError } from './error.ts'

/** A query request as its URL and headers give it. */
export type QueryRequest = {
  /** The `query` field of the URL; the body follows it. */
  readonly query: string
  readonly queryId: string | undefined
  readonly defaultFormat: string
  /** Query parameters by name, escaped as in a tab-separated file. */
  readonly parameters: Readonly<Record<string, string>>
  /** ClickHouse settings by name, not yet validated. */
  readonly settings: Readonly<Record<string, string>>
  /** How ClickHouse buffers the response. Of these the embedded engine knows `wait_end_of_query`. */
  readonly buffering: Readonly<Record<string, string>>
}

export type QueryLimits = { readonly secondsMax: number; readonly rowsMax: number; readonly bytesMax: number }

/** A statement with its request fields and limits, as the database process gets it. */
export type QueryJob = Pick<QueryRequest, 'query' | 'parameters' | 'defaultFormat' | 'settings'> & {
  readonly limits: QueryLimits
  /** Whether the result is complete before its first byte is sent, as with `wait_end_of_query`. */
  readonly isHeld?: boolean
}

/** Fields of the ClickHouse interface that are per server user there, or that would bypass the gateway. */
const REFUSED: Readonly<Record<string, string>> = {
  session_id: 'Sessions are not supported.',
  session_timeout: 'Sessions are not supported.',
  session_check: 'Sessions are not supported.',
  role: 'Roles are set by the plan.',
  quota_key: 'The quota belongs to the token.',
  compress: 'Native compression is not supported: use enable_http_compression=1.',
  decompress: 'Native compression is not supported: use Content-Encoding.',
  user: 'Credentials are not accepted in the URL, because URLs end up in logs: use the Authorization header.',
  password: 'Credentials are not accepted in the URL, because URLs end up in logs: use the Authorization header.',
}
const BUFFERING = new Set(['wait_end_of_query', 'buffer_size'])
const FIELDS_MAX = 256

/** Throws QueryError for a field that is not supported. */
export function readQueryRequest(
  search: string,
  headers: { readonly format: string | undefined; readonly database: string | undefined },
  database: string,
): QueryRequest {
  let query = ''
  let queryId: string | undefined
  let format: string | undefined
  const parameters: Record<string, string> = {}
  const settings: Record<string, string> = {}
  const buffering: Record<string, string> = {}
  checkDatabase(headers.database, database)
  const fields = [...new URLSearchParams(search)]
  if (fields.length > FIELDS_MAX)
    throw new QueryError('BAD_ARGUMENTS', `Too many fields in the URL. Maximum: ${FIELDS_MAX}.`)
  for (const [name, value] of fields) {
    const refusal = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined
    if (refusal !== undefined) throw new QueryError('BAD_ARGUMENTS', refusal)
    if (name === 'query') query = value
    else if (name === 'query_id') queryId = value
    else if (name === 'default_format') format = value
    else if (name === 'database') checkDatabase(value, database)
    else if (name.startsWith('param_')) parameters[name.slice('param_'.length)] = value
    else if (BUFFERING.has(name)) buffering[name] = value
    else settings[name] = value
  }
  return {
    query,
    queryId: queryId?.slice(0, 128),
    defaultFormat: format ?? headers.format ?? 'TabSeparated',
    parameters,
    settings,
    buffering,
  }
}

function checkDatabase(given: string | undefined, database: string): void {
  if (given !== undefined && given !== '' && given !== database && given !== 'default')
    throw new QueryError('UNKNOWN_DATABASE', `Database ${given.replaceAll(/\W/g, '?').slice(0, 64)} does not exist.`)
}

/** ClickHouse settings that a customer may give with a query, in the URL or after SETTINGS. */
export type QuerySettings = {
  /** Requested limits; those of the plan still hold. */
  readonly secondsMax: number | undefined
  readonly rowsMax: number | undefined
  readonly quote64: boolean
  /** Whether the response may be compressed with an encoding of the client's Accept-Encoding. */
  readonly isCompressed: boolean
}

/** Accepted without effect: the head of a response is sent once, so there is no progress to send. */
const WITHOUT_EFFECT = new Set(['send_progress_in_http_headers', 'http_headers_progress_interval_ms', 'max_threads'])

/** Throws QueryError for a setting that is not supported: ignoring it would run another query than the client meant. */
export function readSettings(given: Iterable<readonly [name: string, value: string]>): QuerySettings {
  let secondsMax: number | undefined
  let rowsMax: number | undefined
  let quote64 = true
  let isCompressed = false
  for (const [name, value] of given) {
    if (name === 'max_execution_time') secondsMax = number(name, value) || undefined
    else if (name === 'max_result_rows') rowsMax = number(name, value) || undefined
    else if (name === 'output_format_json_quote_64bit_integers') quote64 = number(name, value) !== 0
    else if (name === 'enable_http_compression') isCompressed = number(name, value) !== 0
    else if (name === 'readonly') {
      // Some clients set readonly, which holds anyway.
      if (number(name, value) === 0)
        throw new QueryError('READONLY', 'Setting readonly cannot be 0: only reading is supported.')
    } else if (name === 'result_overflow_mode') {
      if (value !== 'throw')
        throw new QueryError(
          'BAD_ARGUMENTS',
          'result_overflow_mode can only be throw: a result is never truncated here.',
        )
    } else if (!WITHOUT_EFFECT.has(name))
      throw new QueryError('UNKNOWN_SETTING', `Setting ${name.replaceAll(/\W/g, '?').slice(0, 60)} is not supported.`)
  }
  return { secondsMax, rowsMax, quote64, isCompressed }
}

function number(name: string, value: string): number {
  const parsed = Number(value)
  if (!Number.isFinite(parsed) || parsed < 0 || value.trim() === '')
    throw new QueryError('BAD_ARGUMENTS', `Setting ${name} takes a number.`)
  return parsed
}
