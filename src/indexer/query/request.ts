import { QueryError } from './error.ts'

/** What a request asks for, read from its address and headers. */
export type QueryRequest = {
  /** Of the address; the body is joined to it. */
  readonly query: string
  readonly queryId: string | undefined
  readonly defaultFormat: string
  /** As written in the address: escaped as in a tab-separated file. */
  readonly parameters: Readonly<Record<string, string>>
  readonly settings: Readonly<Record<string, string>>
  /** Of the interface itself: how the answer is held before it leaves. The embedded engine's is always whole before its first byte. */
  readonly holding: Readonly<Record<string, string>>
}

/** Parts of the interface that mean something else for each customer, or that would reach around the gateway. */
const REFUSED: Readonly<Record<string, string>> = {
  session_id: 'Sessions are not offered here.',
  session_timeout: 'Sessions are not offered here.',
  session_check: 'Sessions are not offered here.',
  role: 'Roles are set by the plan.',
  quota_key: 'The quota belongs to the token.',
  compress: 'Native compression is not offered here: use enable_http_compression=1.',
  decompress: 'Native compression is not offered here: use Content-Encoding.',
  user: 'Credentials are not taken from the address, because addresses end up in logs: use the Authorization header.',
  password:
    'Credentials are not taken from the address, because addresses end up in logs: use the Authorization header.',
}
const HOLDING = new Set(['wait_end_of_query', 'buffer_size'])
const FIELDS_MAX = 256

/** Throws QueryError where the address asks for what is not offered. */
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
  const holding: Record<string, string> = {}
  checkDatabase(headers.database, database)
  const fields = [...new URLSearchParams(search)]
  if (fields.length > FIELDS_MAX)
    throw new QueryError('BAD_ARGUMENTS', `Too many fields in the address. Maximum: ${FIELDS_MAX}.`)
  for (const [name, value] of fields) {
    const why = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined
    if (why !== undefined) throw new QueryError('BAD_ARGUMENTS', why)
    if (name === 'query') query = value
    else if (name === 'query_id') queryId = value
    else if (name === 'default_format') format = value
    else if (name === 'database') checkDatabase(value, database)
    else if (name.startsWith('param_')) parameters[name.slice('param_'.length)] = value
    else if (HOLDING.has(name)) holding[name] = value
    else settings[name] = value
  }
  return {
    query,
    queryId: queryId?.slice(0, 128),
    defaultFormat: format ?? headers.format ?? 'TabSeparated',
    parameters,
    settings,
    holding,
  }
}

function checkDatabase(given: string | undefined, database: string): void {
  if (given !== undefined && given !== '' && given !== database && given !== 'default')
    throw new QueryError('UNKNOWN_DATABASE', `Database ${given.replaceAll(/\W/g, '?').slice(0, 64)} does not exist.`)
}
