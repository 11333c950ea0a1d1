import type { DuckConnection, DuckDatabase, DuckParams, DuckResponse } from '../../platform/db/duckdb.ts'
import { type DuckChunk, StreamFailed } from '../../platform/db/duckdb-stream.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import { respondFromCatalogue } from '../query/catalogue.ts'
import { type ResponseColumn, reportedTypes } from '../query/declared-types.ts'
import { QueryError } from '../query/error.ts'
import { createFormatter, formatNamed, type ResultFormatter } from '../query/formats.ts'
import { readSettings } from '../query/settings.ts'
import { TABLES } from '../schema.ts'
import { COVERAGE_COLUMNS } from './ddl.ts'
import { translateEngineError } from './engine-errors.ts'
import { HeldResult } from './held-result.ts'
import { macroDdl } from './macros.ts'
import { createResultBudget, type ResultBudget } from './result-budget.ts'
import { type Rewritten, rewriteQuery } from './rewrite.ts'
import { applySqlPolicy } from './sql-policy.ts'

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

/** What is said of a result beside its bytes. */
export type QuerySummary = {
  readonly format: string
  readonly contentType: string
  readonly rows: number
  readonly elapsedSeconds: number
  /** Newest slot up to which everything was there when the query ran. */
  readonly coverageSlot: number
}

export type QueryDone = QuerySummary & { readonly result: HeldResult }

export type QueryRunDeps = {
  readonly nowMs: () => number
  /** Those of this query, on the thread that formats. */
  readonly slices: TimeSlices
  readonly budget: ResultBudget
  /** Whom the bytes of the result count for. */
  readonly owner: string
  /** Called with the time that the query may take. */
  onStart?(secondsMax: number): void
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

/** Begins the transaction of a statement, which can only read. Resolves with the newest slot up to which everything is there. */
export async function beginReading(connection: DuckConnection): Promise<number> {
  return Number((await only(connection, START)) ?? 0)
}

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
 * Runs one statement on a connection of its own and holds its formatted result. Rejects with QueryError; what the engine says itself never passes.
 */
export async function runQuery(connection: DuckConnection, job: QueryJob, deps: QueryRunDeps): Promise<QueryDone> {
  const { nowMs, owner, slices, budget } = deps
  const startedMs = nowMs()
  const { bytesMax } = job.limits
  const result = new HeldResult({ owner, bytesMax }, budget)
  try {
    const statement = rewriteQuery(job.query, job.parameters)
    const settings = readSettings([...Object.entries(job.settings), ...statement.settings])
    const { name: format, contentType } = formatNamed(statement.format ?? job.defaultFormat)
    const rowsMax = Math.min(job.limits.rowsMax, settings.rowsMax ?? job.limits.rowsMax)
    deps.onStart?.(Math.min(job.limits.secondsMax, settings.secondsMax ?? job.limits.secondsMax))
    const coverageSlot = await beginReading(connection)
    await using rows = await rowsOf(connection, job, statement, rowsMax)
    const types = rows.columns.map(({ type }) => type)
    const formatter = createFormatter(rows.named, types, { format, quote64: settings.quote64 })
    for (let chunk = await rows.next(); chunk !== undefined; chunk = await rows.next()) {
      if (formatter.rows + chunk.rowCount > rowsMax)
        throw new QueryError(
          'TOO_MANY_ROWS_OR_BYTES',
          `Limit for result exceeded: more than ${rowsMax} rows. Add LIMIT, or aggregate.`,
        )
      for (let at = 0; at < chunk.rowCount; at++) {
        if (slices.isSpent()) await slices.yield()
        result.add(formatter.row(chunk.row(at)))
      }
    }
    const elapsedSeconds = (nowMs() - startedMs) / 1000
    finish(result, formatter, elapsedSeconds)
    return { result, format, contentType, rows: formatter.rows, elapsedSeconds, coverageSlot }
  } catch (cause) {
    result.discard()
    throw cause instanceof QueryError ? cause : translateEngineError(cause)
  }
}

function finish(result: HeldResult, formatter: ResultFormatter, elapsedSeconds: number): void {
  result.add(formatter.tail({ elapsedSeconds, rowsRead: formatter.rows, bytesRead: 0 }))
  result.finish(formatter.head())
}

/** What is asked about the tables themselves, answered without any engine; undefined for every other question. */
export function respondFromTables(
  asked: Pick<QueryJob, 'defaultFormat' | 'settings'>,
  query: string,
  { bytesMax }: Pick<QueryLimits, 'bytesMax'>,
  coverageSlot: number,
): QueryDone | undefined {
  const response = respondFromCatalogue(query, DATABASE)
  if (response === undefined) return undefined
  const statement = rewriteQuery(query)
  const { quote64 } = readSettings([...Object.entries(asked.settings), ...statement.settings])
  const { name: format, contentType } = formatNamed(statement.format ?? asked.defaultFormat)
  const types = response.columns.map(({ type }) => type)
  const formatter = createFormatter(response.columns, types, { format, quote64 })
  // Our own list is small: it needs no share of anything.
  const budget = createResultBudget({ heldBytesMax: bytesMax, heldBytesPerSubscription: bytesMax })
  const result = new HeldResult({ owner: '', bytesMax }, budget)
  for (const chunk of chunksOf(response)) {
    for (let at = 0; at < chunk.rowCount; at++) result.add(formatter.row(chunk.row(at)))
  }
  finish(result, formatter, 0)
  return { result, format, contentType, rows: formatter.rows, elapsedSeconds: 0, coverageSlot }
}

/** Words a question begins with; whatever begins otherwise is refused before the engine parses it. */
const READING_WORDS = new Set(['SELECT', 'WITH', 'VALUES', 'FROM', 'SUMMARIZE', 'SHOW', 'DESCRIBE', 'PIVOT', 'UNPIVOT'])

/** The gate allows 5,000 nodes, of some hundreds of bytes each. Parsing what is larger would hold the thread that writes. */
const TREE_BYTES_MAX = 2 * 1024 * 1024
const SERIALIZE = `SELECT CASE WHEN length(tree) <= ${TREE_BYTES_MAX} THEN tree END FROM (SELECT json_serialize_sql($sql::VARCHAR) AS tree)`

/** Rows to be formatted, with the names and types that their columns are to have. */
type Rows = AsyncDisposable & {
  readonly columns: readonly { readonly type: string }[]
  readonly named: readonly ResponseColumn[]
  next(): Promise<DuckChunk | undefined>
}

async function rowsOf(
  connection: DuckConnection,
  job: QueryJob,
  { sql, parameters, firstWords }: Rewritten,
  rowsMax: number,
): Promise<Rows> {
  const known = respondFromCatalogue(job.query, DATABASE)
  if (known !== undefined) {
    const chunks = chunksOf(known)
    const next = async (): Promise<DuckChunk | undefined> => chunks.next().value ?? undefined
    return { columns: known.columns, named: known.columns, next, [Symbol.asyncDispose]: async () => {} }
  }
  if (firstWords[0] !== undefined && !READING_WORDS.has(firstWords[0]))
    throw new QueryError('READONLY', 'Cannot execute query in readonly mode: only SELECT is allowed.')
  const serialized = await only(connection, SERIALIZE, { sql })
  if (typeof serialized !== 'string')
    throw new QueryError('TOO_BIG_AST', `The statement is too large: its tree has more than ${TREE_BYTES_MAX} bytes.`)
  applySqlPolicy(serialized, { tables: PUBLISHED, database: DATABASE })
  // Names of the statement itself: the wrap below would rename the second of two equal ones.
  const names = (await connection.columnsOf(sql)).map((name) => (name === 'count_star()' ? 'count()' : name))
  const reported = reportedTypes(serialized, names.length)
  const limited = `SELECT * FROM (${sql}\n) LIMIT ${rowsMax + 1}`
  const bound = Object.keys(parameters).length === 0 ? undefined : parameters
  const rows = await connection.streamOnWorkers(limited, bound)
  return {
    columns: rows.columns,
    named: names.map((name, at) => ({ name, reported: reported[at] })),
    async next() {
      try {
        return await rows.next()
      } catch (error) {
        if (error instanceof StreamFailed) await runForItsError(connection, limited, bound)
        throw error
      }
    },
    [Symbol.asyncDispose]: () => rows[Symbol.asyncDispose](),
  }
}

/** Computes every value again without keeping any: rejects with the error that ended the stream, unless it was an interrupt. */
async function runForItsError(connection: DuckConnection, sql: string, params: DuckParams | undefined): Promise<void> {
  await connection.run('ROLLBACK')
  await beginReading(connection)
  await connection.run(`SELECT count(COLUMNS(*)) FROM (${sql})`, params)
}

function* chunksOf(response: DuckResponse): Generator<DuckChunk, undefined> {
  for (const piece of response.pieces())
    yield { rowCount: piece[0]?.length ?? 0, row: (at) => piece.map((column) => column[at]) }
}

async function only(connection: DuckConnection, sql: string, params?: Record<string, string>): Promise<unknown> {
  const [piece] = (await connection.run(sql, params)).pieces()
  return piece?.[0]?.[0]
}
