import type { SessionFields } from '../session/sessions.ts'
import { QueryError } from './error.ts'
import { foldName, shownName } from './sql-tokens.ts'

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
  /** Database of names without one, if it is given. */
  readonly database: string | undefined
  readonly session: SessionFields | undefined
  /** Whether the response consists of ClickHouse's own compressed blocks (`compress=1`). */
  readonly isNativeCompressed: boolean
  /** Whether the body of the request consists of them (`decompress=1`). */
  readonly isBodyNativeCompressed: boolean
  /** How ClickHouse buffers the response. Of these the embedded engine knows `wait_end_of_query`. */
  readonly buffering: Readonly<Record<string, string>>
}

export type QueryLimits = { readonly secondsMax: number; readonly rowsMax: number; readonly bytesMax: number }

/** A statement with its request fields and limits, as the database process gets it. */
export type QueryJob = Pick<QueryRequest, 'query' | 'parameters' | 'defaultFormat' | 'settings'> & {
  readonly limits: QueryLimits
  /** Whether the result is complete before its first byte is sent, as with `wait_end_of_query`. */
  readonly isHeld?: boolean
  /** Absent in statements of the operator. */
  readonly context?: QueryContext | undefined
}

/** What the functions about the connection return: currentUser(), currentDatabase(), timezone(), hostName() and uptime(). */
export type QueryContext = {
  readonly user: string
  /** Database of names without one. */
  readonly database: string
  readonly hostName: string
  readonly uptimeSeconds: number
}

/** Fields of the ClickHouse interface that are per server user there, or that would bypass the gateway. */
const REFUSED: Readonly<Record<string, string>> = {
  role: 'Roles are set by the plan.',
  quota_key: 'The quota belongs to the token.',
  user: 'Credentials are not accepted in the URL, because URLs end up in logs: use the Authorization header.',
  password: 'Credentials are not accepted in the URL, because URLs end up in logs: use the Authorization header.',
}
const BUFFERING = new Set(['wait_end_of_query', 'buffer_size'])
const FIELDS_MAX = 256
const SESSION_FIELDS = new Set(['session_id', 'session_timeout', 'session_check'])
const SESSION_ID_LENGTH_MAX = 128
/** As ClickHouse's default_session_timeout and max_session_timeout. */
const SESSION_SECONDS = 60
const SESSION_SECONDS_MAX = 3600

/** Throws QueryError for a field that is not supported. */
export function readQueryRequest(
  search: string,
  headers: { readonly format: string | undefined; readonly database: string | undefined },
  databases: ReadonlySet<string>,
): QueryRequest {
  let query = ''
  let queryId: string | undefined
  let format: string | undefined
  const parameters: Record<string, string> = {}
  const settings: Record<string, string> = {}
  const buffering: Record<string, string> = {}
  const session: Record<string, string> = {}
  let isNativeCompressed = false
  let isBodyNativeCompressed = false
  let database = headers.database
  // Before they are parsed: a long URL has a hundred thousand of them.
  if (search.split('&', FIELDS_MAX + 1).length > FIELDS_MAX)
    throw new QueryError('BAD_ARGUMENTS', `Too many fields in the URL. Maximum: ${FIELDS_MAX}.`)
  for (const [name, value] of new URLSearchParams(search)) {
    const refusal = Object.hasOwn(REFUSED, name) ? REFUSED[name] : undefined
    if (refusal !== undefined) throw new QueryError('BAD_ARGUMENTS', refusal)
    if (name === 'query') query = value
    else if (name === 'query_id') queryId = value
    else if (name === 'default_format') format = value
    else if (name === 'database') database = value
    else if (name === 'compress') isNativeCompressed = parseSwitch(name, value)
    else if (name === 'decompress') isBodyNativeCompressed = parseSwitch(name, value)
    else if (SESSION_FIELDS.has(name)) session[name] = value
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
    database: knownDatabase(database, databases),
    session: readSessionFields(session),
    isNativeCompressed,
    isBodyNativeCompressed,
    buffering,
  }
}

/** `default`, which clients send when nothing is configured, is the database of the tables. */
function knownDatabase(given: string | undefined, databases: ReadonlySet<string>): string | undefined {
  if (given === undefined || given === '' || given === 'default') return undefined
  const name = foldName(given)
  if (databases.has(name)) return name
  throw new QueryError('UNKNOWN_DATABASE', `Database ${given.replaceAll(/\W/g, '?').slice(0, 64)} does not exist.`)
}

function readSessionFields(given: Readonly<Record<string, string>>): SessionFields | undefined {
  const { session_id: id = '', session_timeout: timeout, session_check: check } = given
  if (id === '') return undefined
  if (id.length > SESSION_ID_LENGTH_MAX)
    throw new QueryError('BAD_ARGUMENTS', `session_id has more than ${SESSION_ID_LENGTH_MAX} characters.`)
  const timeoutSeconds = timeout === undefined ? SESSION_SECONDS : Number(timeout)
  if (!/^\d{1,9}$/.test(timeout ?? '0'))
    throw new QueryError('INVALID_SESSION_TIMEOUT', `Invalid session timeout: '${shownName(timeout ?? '')}'.`)
  if (timeoutSeconds > SESSION_SECONDS_MAX)
    throw new QueryError(
      'INVALID_SESSION_TIMEOUT',
      `Session timeout '${timeoutSeconds}' is larger than max_session_timeout: ${SESSION_SECONDS_MAX}.`,
    )
  return { id, timeoutSeconds, mustExist: check !== undefined && parseSwitch('session_check', check) }
}

function parseSwitch(name: string, value: string): boolean {
  if (value === '1' || value === 'true') return true
  if (value === '0' || value === 'false') return false
  throw new QueryError('BAD_ARGUMENTS', `${name} is 0 or 1.`)
}
