import type { DuckConnection, DuckParams } from '../../platform/db/duckdb.ts'
import { type DuckChunk, StreamFailed } from '../../platform/db/duckdb-stream.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import { type CompiledStatement, compileStatement } from '../dialect/compile-statement.ts'
import { type CatalogueRows, readCatalogue } from '../query/catalogue.ts'
import { notReading, QueryError } from '../query/error.ts'
import type { ResultColumn } from '../query/format-values.ts'
import { createFormatter, formatNamed } from '../query/formats.ts'
import { type QueryJob, readSettings } from '../query/request.ts'
import { parseStatement, type Statement } from '../query/statement.ts'
import { DATABASE, PUBLISHED_NAMES } from '../schema.ts'
import { beginReading, readValue } from './customer-schema.ts'
import { translateEngineError } from './engine-errors.ts'
import { HeldResult, type ResultBudget } from './held-result.ts'
import type { QuerySummary } from './protocol.ts'
import { applySqlPolicy } from './sql-policy.ts'

export type QueryDone = QuerySummary & { readonly result: HeldResult }

export type QueryRunDeps = {
  readonly nowMs: () => number
  /** Time slices of this query on the thread that formats results. */
  readonly slices: TimeSlices
  readonly budget: ResultBudget
  /** The subscription that the bytes of the result count for. */
  readonly owner: string
  /** Called with the time limit of the query. */
  onStart?(secondsMax: number): void
}

/**
 * Runs one statement on its own connection and holds the formatted result. The statement is tokenised once and its parse tree read once. Rejects
 * with QueryError, which never contains the engine's own text.
 */
export async function runQuery(connection: DuckConnection, job: QueryJob, deps: QueryRunDeps): Promise<QueryDone> {
  const { nowMs, owner, slices, budget } = deps
  const startedMs = nowMs()
  const { bytesMax } = job.limits
  const result = new HeldResult({ owner, bytesMax }, budget)
  try {
    const statement = parseStatement(job.query)
    const catalogue = readCatalogue(statement)
    const compiled = catalogue === undefined ? compileReading(statement, job) : undefined
    const settings = readSettings([...Object.entries(job.settings), ...statement.settings])
    const { name: format, contentType } = formatNamed(statement.format ?? job.defaultFormat)
    const rowsMax = Math.min(job.limits.rowsMax, settings.rowsMax ?? job.limits.rowsMax)
    deps.onStart?.(Math.min(job.limits.secondsMax, settings.secondsMax ?? job.limits.secondsMax))
    const coverageSlot = await beginReading(connection)
    await using rows =
      compiled !== undefined
        ? await streamRows(connection, compiled, rowsMax)
        : streamCatalogue(catalogue ?? { columns: [], rows: [] })
    const formatter = createFormatter(rows.columns, rows.types, { format, quote64: settings.quote64 })
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
    const totals = compiled?.totals === undefined ? undefined : await readTotals(connection, compiled)
    result.add(formatter.tail({ elapsedSeconds, rowsRead: formatter.rows, bytesRead: 0, totals }))
    result.finish(formatter.head())
    return { result, format, contentType, rows: formatter.rows, elapsedSeconds, coverageSlot }
  } catch (cause) {
    result.discard()
    throw cause instanceof QueryError ? cause : translateEngineError(cause)
  }
}

/** First words of statements that read. Any other statement is refused before the engine parses it. */
const READING_WORDS = new Set(['SELECT', 'WITH', 'VALUES', 'FROM', 'SUMMARIZE', 'SHOW', 'DESCRIBE', 'PIVOT', 'UNPIVOT'])

/** The SQL policy allows 10,000 nodes, of some hundreds of bytes each. Parsing a larger tree would block the thread that writes. */
const TREE_BYTES_MAX = 4 * 1024 * 1024
const SERIALIZE = `SELECT CASE WHEN length(tree) <= ${TREE_BYTES_MAX} THEN tree END FROM (SELECT json_serialize_sql($sql::VARCHAR) AS tree)`

/** Rows to format, with the names and ClickHouse types of their columns and the engine's own types. */
type RowStream = AsyncDisposable & {
  readonly columns: readonly ResultColumn[]
  readonly types: readonly string[]
  next(): Promise<DuckChunk | undefined>
}

/** The statement in the engine's dialect. Throws QueryError for one that does not read. */
function compileReading(statement: Statement, job: QueryJob): CompiledStatement {
  const [first] = statement.tokens
  if (first?.kind === 'word' && !READING_WORDS.has(first.upper)) throw notReading()
  return compileStatement(statement, { given: job.parameters })
}

/** Applies the SQL policy to the parse tree of the engine, then runs the statement. */
async function streamRows(
  connection: DuckConnection,
  { sql, parameters, columns }: CompiledStatement,
  rowsMax: number,
): Promise<RowStream> {
  await checkPolicy(connection, sql)
  const limited = `SELECT * FROM (${sql}\n) LIMIT ${rowsMax + 1}`
  const bound = Object.keys(parameters).length === 0 ? undefined : parameters
  const rows = await connection.streamOnWorkers(limited, bound)
  return {
    columns: columns.map(({ name, type }) => ({ name, reported: type })),
    types: rows.columns.map(({ type }) => type),
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

/** The row of WITH TOTALS: a statement of its own in the same transaction. */
async function readTotals(
  connection: DuckConnection,
  { totals = '', parameters }: CompiledStatement,
): Promise<readonly unknown[] | undefined> {
  await checkPolicy(connection, totals)
  await using rows = await connection.streamOnWorkers(totals, parameters)
  return (await rows.next())?.row(0)
}

/** Throws QueryError unless the statement, as the engine itself parses it, names only listed functions and published tables. */
async function checkPolicy(connection: DuckConnection, sql: string): Promise<void> {
  const serialized = await readValue(connection, SERIALIZE, { sql })
  if (typeof serialized !== 'string')
    throw new QueryError('TOO_BIG_AST', `The statement is too large: its tree has more than ${TREE_BYTES_MAX} bytes.`)
  applySqlPolicy(serialized, { tables: PUBLISHED_NAMES, database: DATABASE })
}

/** Computes every value again without keeping any: rejects with the error that ended the stream, unless it was an interrupt. */
async function runForItsError(connection: DuckConnection, sql: string, params: DuckParams | undefined): Promise<void> {
  await connection.run('ROLLBACK')
  await beginReading(connection)
  await connection.run(`SELECT count(COLUMNS(*)) FROM (${sql})`, params)
}

function streamCatalogue({ columns, rows }: CatalogueRows): RowStream {
  const chunks: DuckChunk[] = [{ rowCount: rows.length, row: (at) => rows[at] ?? [] }]
  return {
    columns,
    types: columns.map(({ type }) => type),
    next: async () => chunks.shift(),
    [Symbol.asyncDispose]: async () => {},
  }
}
