/**
 * Statements that create and drop customers' accounts on the operator's ClickHouse. Each may be repeated: what exists is changed to what it should
 * be. Names have a fixed prefix, and nothing without it is touched. For servers of the `current` dialect; older ones have no accounts in SQL.
 */

/** Limits of the subscriptions of one plan. */
export type ProvisionedPlan = {
  readonly plan: string
  /** Database of the views, which the writer creates. */
  readonly database: string
  /** Views that the plan may read. */
  readonly tables: readonly string[]
  readonly secondsMax: number
  readonly rowsMax: number
  readonly bytesMax: number
  readonly memoryBytesMax: number
  readonly readRowsMax: number
  readonly concurrent: number
  readonly queriesPerHour: number
}

export type ProvisionedUser = {
  readonly username: string
  /** SHA-256 in hex of the password followed by the salt, if any. Generated passwords have the entropy of a token, so a salt is optional. */
  readonly sha256: string
  readonly salt?: string | undefined
  /** Addresses and networks of the gateways: a customer cannot log in from elsewhere and bypass the token. */
  readonly hosts: readonly string[]
  readonly plan: string
  readonly database: string
}

const PLAN = /^[a-z0-9][a-z0-9-]{0,62}$/
const USER = /^u_[a-z0-9]{1,60}$/
const NAME = /^[a-z_][a-z0-9_]{0,63}$/
const HOST = /^[0-9a-fA-F.:]{2,45}(\/[0-9]{1,3})?$/
const SHA256 = /^[0-9a-f]{64}$/
const SALT = /^[A-Za-z0-9]{16,128}$/

function checked(subject: string, text: string, form: RegExp): string {
  if (!form.test(text)) throw new RangeError(`${subject} has an invalid form`)
  return text
}

/** Plan names may contain dashes, which names in SQL may not. */
function planIdentifier(plan: string): string {
  return checked('the plan', plan, PLAN).replaceAll('-', '_')
}

export function roleOf(plan: string): string {
  return `sluice_reader_${planIdentifier(plan)}`
}

function profileOf(plan: string): string {
  return `sluice_profile_${planIdentifier(plan)}`
}

function quotaOf(plan: string): string {
  return `sluice_quota_${planIdentifier(plan)}`
}

/** Run once for each plan, and again when its limits change. */
export function planStatements(plan: ProvisionedPlan): readonly string[] {
  const database = checked('the database', plan.database, NAME)
  const tables = plan.tables.map((table) => checked('the table', table, NAME))
  const [role, profile, quota] = [roleOf(plan.plan), profileOf(plan.plan), quotaOf(plan.plan)]
  const seconds = positiveInteger(plan.secondsMax)
  const rows = positiveInteger(plan.rowsMax)
  const bytes = positiveInteger(plan.bytesMax)
  // A query may change only the settings marked CHANGEABLE_IN_READONLY.
  const settings = [
    'readonly = 1',
    `max_execution_time = ${seconds} MIN 1 MAX ${seconds} CHANGEABLE_IN_READONLY`,
    `max_result_rows = ${rows} MIN 1 MAX ${rows} CHANGEABLE_IN_READONLY`,
    "result_overflow_mode = 'throw'",
    'limit = 0 CHANGEABLE_IN_READONLY',
    `max_result_bytes = ${bytes} MIN 1 MAX ${bytes} CHANGEABLE_IN_READONLY`,
    `max_memory_usage = ${positiveInteger(plan.memoryBytesMax)} CONST`,
    `max_rows_to_read = ${positiveInteger(plan.readRowsMax)} CONST`,
    `max_concurrent_queries_for_user = ${positiveInteger(plan.concurrent)} CONST`,
    'allow_introspection_functions = 0 CONST',
    'log_queries = 1',
    'cancel_http_readonly_queries_on_client_close = 1',
    // A view that reads a table several times sees the same rows each time.
    'enable_shared_storage_snapshot_in_query = 1',
    'output_format_json_quote_64bit_integers = 1 CHANGEABLE_IN_READONLY',
    'enable_http_compression = 0 CHANGEABLE_IN_READONLY',
    'join_use_nulls = 1 CHANGEABLE_IN_READONLY',
    "date_time_output_format = 'simple' CHANGEABLE_IN_READONLY",
    "session_timezone = 'UTC' CHANGEABLE_IN_READONLY",
  ].join(', ')
  const limits = `KEYED BY user_name FOR INTERVAL 1 HOUR MAX queries = ${positiveInteger(plan.queriesPerHour)} TO ${role}`
  return [
    `CREATE ROLE IF NOT EXISTS ${role}`,
    ...tables.map((table) => `GRANT SELECT ON ${database}.${table} TO ${role}`),
    `CREATE SETTINGS PROFILE IF NOT EXISTS ${profile} SETTINGS ${settings}`,
    `ALTER SETTINGS PROFILE ${profile} SETTINGS ${settings}`,
    `CREATE QUOTA IF NOT EXISTS ${quota} ${limits}`,
    `ALTER QUOTA ${quota} ${limits}`,
  ]
}

/** The same for a new account, a new password or another plan. They do not contain the password, because servers log queries. */
export function userStatements(user: ProvisionedUser): readonly string[] {
  const name = checked('the user', user.username, USER)
  const hash = checked('the hash', user.sha256, SHA256)
  const salt = user.salt === undefined ? '' : ` SALT '${checked('the salt', user.salt, SALT)}'`
  const database = checked('the database', user.database, NAME)
  if (user.hosts.length === 0) throw new RangeError('an account needs at least one gateway address')
  const hosts = user.hosts.map((host) => `'${checked('the host', host, HOST)}'`).join(', ')
  const account = `IDENTIFIED WITH sha256_hash BY '${hash}'${salt} HOST IP ${hosts}`
  const rest = `SETTINGS PROFILE '${profileOf(user.plan)}'`
  return [
    `CREATE USER IF NOT EXISTS ${name} ${account} DEFAULT DATABASE ${database} ${rest}`,
    `ALTER USER ${name} ${account} DEFAULT DATABASE ${database} ${rest}`,
    `GRANT ${roleOf(user.plan)} TO ${name} WITH REPLACE OPTION`,
  ]
}

/** Kills running queries before the account is dropped. */
export function revokeStatements(username: string): readonly string[] {
  const name = checked('the user', username, USER)
  return [`KILL QUERY WHERE user = '${name}' ASYNC`, `DROP USER IF EXISTS ${name}`]
}

function positiveInteger(value: number): number {
  const number = Math.ceil(value)
  if (!Number.isSafeInteger(number) || number < 1) throw new RangeError(`${value} is not a limit`)
  return number
}
