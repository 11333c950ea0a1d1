import type { DuckAnswer, DuckConnection, DuckDatabase } from '../host/duckdb.ts'
import { answerFromCatalogue } from './catalogue.ts'
import { COVERAGE_COLUMNS } from './duck-ddl.ts'
import { formatAnswer, formatNamed } from './formats.ts'
import { passGate } from './gate.ts'
import { macroDdl } from './macros.ts'
import { QueryError } from './query-error.ts'
import { readSettings } from './query-settings.ts'
import { type Rewritten, rewriteQuery } from './rewrite.ts'
import { TABLES } from './schema.ts'
import { type AnswerColumn, toldTypes } from './told-types.ts'

/** A customer's statement with what it may cost. */
export type QueryJob = {
  /** As it came. */
  readonly query: string
  /** From the address, by name, escaped as in a tab-separated file. */
  readonly parameters: Readonly<Record<string, string>>
  /** From the address and the headers, for a statement that names none. */
  readonly defaultFormat: string
  /** From the address, by their names in ClickHouse. */
  readonly settings: Readonly<Record<string, string>>
  readonly limits: QueryLimits
}

export type QueryLimits = { readonly secondsMax: number; readonly rowsMax: number; readonly bytesMax: number }

export type QueryDone = {
  readonly body: Uint8Array
  readonly format: string
  readonly contentType: string
  readonly rows: number
  readonly elapsedSeconds: number
  /** Newest slot up to which everything was there when the query ran. */
  readonly coverageSlot: number
}

/** The database name customers see. */
export const DATABASE = 'solana'
/** Catalogue in memory that holds the views and macros customers reach; the data file's own tables have no name there. */
const CUSTOMERS = 'customers'
export const PUBLISHED: ReadonlySet<string> = new Set([...TABLES.map(({ name }) => name), 'coverage'])

/**
 * Before a statement: what it may name, one state of the tables for all that follows, and how far they reach in it. A plan leaves out conditions that
 * hold for all rows there are; run on a later state, it would let rows pass that do not fulfil them.
 */
const START = `SET search_path = '${CUSTOMERS}.${DATABASE},${CUSTOMERS}.fn'; BEGIN TRANSACTION READ ONLY; SELECT slot FROM ${CUSTOMERS}.fn.covered`

/** Closes the engine against everything that is not a table: files, network, extensions, settings. In this order, after the file is open. */
const LOCKS = [
  "SET temp_directory = ''",
  'SET allow_community_extensions = false',
  'SET autoinstall_known_extensions = false',
  'SET autoload_known_extensions = false',
  'SET enable_external_access = false',
  // For the writer, which lowers it for a moment. No statement of a customer can set anything: the gate lets questions pass and nothing else.
  "SET allowed_configs = ['memory_limit']",
  'SET lock_configuration = true',
]

/** Makes the catalogue of the customers and locks the engine. `catalogue` is the data file's, by its name in the engine. */
export async function prepareQueries(database: DuckDatabase, base: string): Promise<void> {
  using connection = await database.connect()
  await connection.run(`ATTACH ':memory:' AS ${CUSTOMERS}`)
  await connection.run(`CREATE SCHEMA ${CUSTOMERS}.${DATABASE}`)
  await connection.run(`CREATE SCHEMA ${CUSTOMERS}.fn`)
  for (const { name, columns } of [...TABLES, { name: 'coverage', columns: COVERAGE_COLUMNS }]) {
    const listed = columns.map((column) => column.name).join(', ')
    await connection.run(`CREATE VIEW ${CUSTOMERS}.${DATABASE}.${name} AS SELECT ${listed} FROM ${base}.${name}`)
  }
  await connection.run(`CREATE VIEW ${CUSTOMERS}.fn.covered AS SELECT max(to_slot) AS slot FROM ${base}._ranges`)
  for (const macro of macroDdl(`${CUSTOMERS}.fn`)) await connection.run(macro)
  for (const lock of LOCKS) await connection.run(lock)
}

/**
 * Runs one statement on a connection of its own. `onStart` is told how long it may run. Rejects with QueryError; what the engine says itself never
 * passes.
 */
export async function runQuery(
  connection: DuckConnection,
  job: QueryJob,
  nowMs: () => number,
  onStart: (secondsMax: number) => void = () => {},
): Promise<QueryDone> {
  const startedMs = nowMs()
  try {
    const statement = rewriteQuery(job.query, job.parameters)
    const settings = readSettings([...Object.entries(job.settings), ...statement.settings])
    const { name: format, contentType } = formatNamed(statement.format ?? job.defaultFormat)
    const rowsMax = Math.min(job.limits.rowsMax, settings.rowsMax ?? job.limits.rowsMax)
    onStart(Math.min(job.limits.secondsMax, settings.secondsMax ?? job.limits.secondsMax))
    const coverageSlot = Number((await only(connection, START)) ?? 0)
    const { answer, columns } = await answerTo(connection, job, statement, rowsMax)
    if (answer.rowCount > rowsMax)
      throw new QueryError(
        'TOO_MANY_ROWS_OR_BYTES',
        `Limit for result exceeded: more than ${rowsMax} rows. Add LIMIT, or aggregate.`,
      )
    const elapsedSeconds = (nowMs() - startedMs) / 1000
    const statistics = { elapsedSeconds, rowsRead: answer.rowCount, bytesRead: 0 }
    const { bytesMax } = job.limits
    const { body, rows } = formatAnswer(answer, columns, { format, quote64: settings.quote64, bytesMax, statistics })
    return { body, format, contentType, rows, elapsedSeconds, coverageSlot }
  } catch (cause) {
    throw cause instanceof QueryError ? cause : translate(cause)
  }
}

/** What is asked about the tables themselves, answered without any engine; undefined for every other question. */
export function answerOnTables(
  asked: Pick<QueryJob, 'defaultFormat' | 'settings'>,
  query: string,
  { bytesMax }: Pick<QueryLimits, 'bytesMax'>,
  coverageSlot: number,
): QueryDone | undefined {
  const answer = answerFromCatalogue(query, DATABASE)
  if (answer === undefined) return undefined
  const statement = rewriteQuery(query)
  const { quote64 } = readSettings([...Object.entries(asked.settings), ...statement.settings])
  const { name: format, contentType } = formatNamed(statement.format ?? asked.defaultFormat)
  const columns = answer.columns.map(({ name }) => ({ name }))
  const statistics = { elapsedSeconds: 0, rowsRead: answer.rowCount, bytesRead: 0 }
  const { body, rows } = formatAnswer(answer, columns, { format, quote64, bytesMax, statistics })
  return { body, format, contentType, rows, elapsedSeconds: 0, coverageSlot }
}

/** Words a question begins with; whatever begins otherwise is refused before the engine parses it. */
const READING_WORDS = new Set(['SELECT', 'WITH', 'VALUES', 'FROM', 'SUMMARIZE', 'SHOW', 'DESCRIBE', 'PIVOT', 'UNPIVOT'])

async function answerTo(
  connection: DuckConnection,
  job: QueryJob,
  { sql, parameters, firstWords }: Rewritten,
  rowsMax: number,
): Promise<{ answer: DuckAnswer; columns: readonly AnswerColumn[] }> {
  const known = answerFromCatalogue(job.query, DATABASE)
  if (known !== undefined) return { answer: known, columns: known.columns.map(({ name }) => ({ name })) }
  if (firstWords[0] !== undefined && !READING_WORDS.has(firstWords[0]))
    throw new QueryError('READONLY', 'Cannot execute query in readonly mode: only SELECT is allowed.')
  const serialized = String(await only(connection, 'SELECT json_serialize_sql($sql::VARCHAR)', { sql }))
  passGate(serialized, { tables: PUBLISHED, database: DATABASE })
  // Names of the statement itself: the wrap below would rename the second of two equal ones.
  const names = (await connection.columnsOf(sql)).map((name) => (name === 'count_star()' ? 'count()' : name))
  const answer = await connection.runOnWorkers(
    `SELECT * FROM (${sql}\n) LIMIT ${rowsMax + 1}`,
    Object.keys(parameters).length === 0 ? undefined : parameters,
  )
  const told = toldTypes(serialized, names.length)
  return { answer, columns: names.map((name, at) => ({ name, told: told[at] })) }
}

async function only(connection: DuckConnection, sql: string, params?: Record<string, string>): Promise<unknown> {
  const [piece] = (await connection.run(sql, params)).pieces()
  return piece?.[0]?.[0]
}

/** The engine's errors by their first words. Its text goes on with names from the whole catalogue, so none of it is repeated but what the customer wrote. */
const ENGINE_ERRORS: readonly (readonly [RegExp, (found: RegExpExecArray) => QueryError])[] = [
  [/^INTERRUPT/, () => new QueryError('QUERY_WAS_CANCELLED', 'Query was cancelled.')],
  [
    /^Out of Memory/,
    () => new QueryError('MEMORY_LIMIT_EXCEEDED', 'Memory limit exceeded. Read less at a time, or aggregate first.'),
  ],
  [
    /Referenced column "([\w$]{1,64})" not found/,
    ([, name]) => new QueryError('UNKNOWN_IDENTIFIER', `Unknown expression identifier ${name}.`),
  ],
  [
    /Referenced table "([\w$]{1,64})" not found/,
    ([, name]) => new QueryError('UNKNOWN_IDENTIFIER', `Unknown table or alias ${name}.`),
  ],
  [
    /Table with name ([\w$]{1,64}) does not exist/,
    ([, name]) => new QueryError('UNKNOWN_TABLE', `Table ${name} does not exist.`),
  ],
  [
    /(?:Scalar |Aggregate |Table )?Function with name ([\w$]{1,64}) does not exist/i,
    ([, name]) => new QueryError('UNKNOWN_FUNCTION', `Unknown function ${name}.`),
  ],
  [
    /No function matches the given name and argument types '([\w$]{1,64})/,
    ([, name]) => new QueryError('BAD_ARGUMENTS', `Function ${name} does not take these arguments.`),
  ],
  [
    /^Values were not provided for the following prepared statement parameters: ([\w, $]{1,200})/m,
    ([, names]) =>
      new QueryError('UNKNOWN_QUERY_PARAMETER', `Substitution ${names} is not set: give it as param_${names}.`),
  ],
  [
    /^Conversion Error/,
    () => new QueryError('TYPE_MISMATCH', 'A value cannot be converted to the type it is used as.'),
  ],
  [
    /^Out of Range/,
    () => new QueryError('VALUE_IS_OUT_OF_RANGE_OF_DATA_TYPE', 'A value is out of the range of its type.'),
  ],
  [
    /regular expression|regexp/i,
    () => new QueryError('CANNOT_COMPILE_REGEXP', 'The regular expression cannot be read.'),
  ],
  [
    /must appear in the GROUP BY/,
    () => new QueryError('BAD_ARGUMENTS', 'A column is neither under an aggregate function nor in GROUP BY.'),
  ],
  [/^Parser Error/, () => new QueryError('SYNTAX_ERROR', 'Syntax error.')],
  [
    /^Binder Error/,
    () => new QueryError('BAD_ARGUMENTS', 'The statement does not fit the tables: check names, types and GROUP BY.'),
  ],
]

function translate(cause: unknown): QueryError {
  const text = cause instanceof Error ? cause.message : String(cause)
  for (const [pattern, make] of ENGINE_ERRORS) {
    const found = pattern.exec(text)
    if (found !== null) return make(found)
  }
  return new QueryError('UNKNOWN_EXCEPTION', 'The query could not be run.')
}
