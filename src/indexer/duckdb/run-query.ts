import type { DuckConnection, DuckParams } from '../../platform/db/duckdb.ts'
import { type DuckChunk, StreamFailed } from '../../platform/db/duckdb-stream.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import { DATABASES } from '../catalogue/catalogue.ts'
import { replaceConnectionFunctions } from '../catalogue/connection-functions.ts'
import { readDescribedQuery, readExplain } from '../catalogue/explain.ts'
import { policyTables } from '../catalogue/policy-tables.ts'
import { type CatalogueRows, describedRows, readShow, textRows } from '../catalogue/show.ts'
import { type CompiledStatement, compileStatement } from '../dialect/compile-statement.ts'
import { explainPlan } from '../dialect/explain-plan.ts'
import { createDateTimeText } from '../query/date-time-text.ts'
import { notReading, QueryError } from '../query/error.ts'
import { observeColumn, type ResultColumn } from '../query/format-values.ts'
import { createFormatter, formatNamed } from '../query/formats.ts'
import type { QueryContext, QueryJob } from '../query/request.ts'
import { parseStatement, type Statement } from '../query/statement.ts'
import { DATABASE } from '../schema.ts'
import { readSessionStatement } from '../session/session-statement.ts'
import { readSettings } from '../session/settings.ts'
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
  const { context = OPERATOR } = job
  let result: HeldResult | undefined
  try {
    const statement = parseStatement(job.query)
    const settings = readSettings([...Object.entries(job.settings), ...statement.settings])
    result = new HeldResult({ owner, bytesMax: Math.min(job.limits.bytesMax, settings.bytesMax ?? Infinity) }, budget)
    const { name: format, contentType } = formatNamed(statement.format ?? job.defaultFormat)
    const rowsMax = Math.min(job.limits.rowsMax, settings.rowsMax ?? job.limits.rowsMax)
    const endsAtRowsMax = settings.endsAtRowsMax && (settings.rowsMax ?? Infinity) <= job.limits.rowsMax
    deps.onStart?.(Math.min(job.limits.secondsMax, settings.secondsMax ?? job.limits.secondsMax))
    const coverageSlot = await beginReading(connection, context.database)
    const sessionChange = readSessionStatement(statement, DATABASES)
    if (sessionChange !== undefined) {
      const elapsedSeconds = (nowMs() - startedMs) / 1000
      return { result, format, contentType, rows: 0, elapsedSeconds, coverageSlot, sessionChange }
    }
    const { timezone, joinUsesNulls } = settings
    const source = { ...job, context, timezone, joinUsesNulls, limit: endsAtRowsMax ? rowsMax : rowsMax + 1 }
    await using rows = await streamRows(connection, statement, source)
    const formatter = createFormatter(rows.columns, rows.types, { format, quote64: settings.quote64 })
    const written = createDateTimeText(settings.dateTimeFormat, rows.types)
    for (let chunk = await rows.next(); chunk !== undefined; chunk = await rows.next()) {
      if (formatter.rows + chunk.rowCount > rowsMax)
        throw new QueryError(
          'TOO_MANY_ROWS_OR_BYTES',
          `Limit for result exceeded: more than ${rowsMax} rows. Add LIMIT, or aggregate.`,
        )
      for (let at = 0; at < chunk.rowCount; at++) {
        if (slices.isSpent()) await slices.yield()
        result.add(formatter.row(written(chunk.row(at))))
      }
    }
    const elapsedSeconds = (nowMs() - startedMs) / 1000
    const totals = await rows.totals?.()
    result.add(formatter.tail({ elapsedSeconds, rowsRead: formatter.rows, bytesRead: 0, totals }))
    result.finish(formatter.head())
    return { result, format, contentType, rows: formatter.rows, elapsedSeconds, coverageSlot }
  } catch (cause) {
    result?.discard()
    throw cause instanceof QueryError ? cause : translateEngineError(cause)
  }
}

const OPERATOR: QueryContext = { user: 'operator', database: DATABASE, hostName: 'localhost', uptimeSeconds: 0 }

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
  /** The row of WITH TOTALS, once all rows are read. */
  totals?(): Promise<readonly unknown[] | undefined>
}

type Source = Pick<QueryJob, 'parameters' | 'settings'> & {
  readonly context: QueryContext
  readonly timezone: string
  readonly joinUsesNulls: boolean
  /** Most rows that are read. */
  readonly limit: number
}

/** The rows of a statement: of the catalogue, of EXPLAIN and DESCRIBE, or of the engine. */
async function streamRows(connection: DuckConnection, { tokens }: Statement, source: Source): Promise<RowStream> {
  const { database } = source.context
  const catalogue = readShow(tokens, { database, settings: source.settings, hasCatalogue: true })
  if (catalogue !== undefined) return streamCatalogue(catalogue)
  const explained = readExplain(tokens)
  const described = readDescribedQuery(tokens)
  const checked = await checkStatement(connection, explained?.tokens ?? described ?? tokens, source)
  if (explained !== undefined) {
    const lines =
      explained.kind === 'plan' ? explainPlan(explained.tokens) : [explained.tokens.map(({ text }) => text).join(' ')]
    return streamCatalogue(
      textRows(
        ['explain'],
        lines.map((line) => [line]),
      ),
    )
  }
  if (described !== undefined) {
    await using rows = await streamEngine(connection, checked, 0)
    const types = rows.types.map((type, at) => observeColumn(rows.columns[at] ?? { name: '' }, type).column())
    return streamCatalogue(describedRows(types.map(({ name, type }) => ({ name, type, help: '' }))))
  }
  return await streamEngine(connection, checked, source.limit)
}

/** A statement in the engine's dialect that has passed the SQL policy. */
type Checked = CompiledStatement & { readonly database: string }

async function checkStatement(
  connection: DuckConnection,
  tokens: Statement['tokens'],
  { parameters: given, context, timezone, joinUsesNulls }: Source,
): Promise<Checked> {
  const [first] = tokens
  if (first?.kind === 'word' && !READING_WORDS.has(first.upper)) throw notReading()
  const { database } = context
  const known = replaceConnectionFunctions(tokens, { ...context, timezone })
  const compiled = compileStatement({ tokens: known }, { given, database, joinUsesNulls })
  await checkPolicy(connection, compiled.sql, database)
  return { ...compiled, database }
}

/** Throws QueryError unless the statement, as the engine itself parses it, names only listed functions and tables. */
async function checkPolicy(connection: DuckConnection, sql: string, database: string): Promise<void> {
  const serialized = await readValue(connection, SERIALIZE, { sql })
  if (typeof serialized !== 'string')
    throw new QueryError('TOO_BIG_AST', `The statement is too large: its tree has more than ${TREE_BYTES_MAX} bytes.`)
  applySqlPolicy(serialized, policyTables(database))
}

/** The row of WITH TOTALS: a statement of its own in the same transaction. */
async function readTotals(connection: DuckConnection, checked: Checked): Promise<readonly unknown[] | undefined> {
  const { totals, parameters, database } = checked
  if (totals === undefined) return undefined
  await checkPolicy(connection, totals, database)
  await using rows = await connection.streamOnWorkers(totals, boundOf(parameters))
  return (await rows.next())?.row(0)
}

function boundOf(parameters: CompiledStatement['parameters']): DuckParams | undefined {
  return Object.keys(parameters).length === 0 ? undefined : parameters
}

async function streamEngine(connection: DuckConnection, checked: Checked, limit: number): Promise<RowStream> {
  const { sql, columns, database } = checked
  const bound = boundOf(checked.parameters)
  const limited = `SELECT * FROM (${sql}\n) LIMIT ${limit}`
  const rows = await connection.streamOnWorkers(limited, bound)
  return {
    columns: columns.map(({ name, type }) => ({ name, reported: type })),
    types: rows.columns.map(({ type }) => type),
    async next() {
      try {
        return await rows.next()
      } catch (error) {
        if (error instanceof StreamFailed) await runForItsError(connection, database, limited, bound)
        throw error
      }
    },
    totals: () => readTotals(connection, checked),
    [Symbol.asyncDispose]: () => rows[Symbol.asyncDispose](),
  }
}

/** Computes every value again without keeping any: rejects with the error that ended the stream, unless it was an interrupt. */
async function runForItsError(
  connection: DuckConnection,
  database: string,
  sql: string,
  params: DuckParams | undefined,
): Promise<void> {
  await connection.run('ROLLBACK')
  await beginReading(connection, database)
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
