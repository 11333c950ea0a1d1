import type { DuckConnection, DuckParams } from '../../platform/db/duckdb.ts'
import { type DuckChunk, StreamFailed } from '../../platform/db/duckdb-stream.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import { DATABASES } from '../catalogue/catalogue.ts'
import { replaceConnectionFunctions } from '../catalogue/connection-functions.ts'
import { readDescribedQuery, readExplain } from '../catalogue/explain.ts'
import { policyTables } from '../catalogue/policy-tables.ts'
import { type CatalogueRows, describedRows, readShow, textRows } from '../catalogue/show.ts'
import { type CompiledStatement, compileParsed, parseTokens } from '../dialect/compile-statement.ts'
import { explainPlan } from '../dialect/explain-plan.ts'
import { type ResultColumn, typedColumn } from '../formats/column-type.ts'
import { createResultWriter, formatNamed } from '../formats/formats.ts'
import { typeName } from '../formats/value-type.ts'
import type { Piece } from '../formats/writer.ts'
import { catalogueChunk } from '../query/catalogue-chunk.ts'
import { notReading, QueryError } from '../query/error.ts'
import type { QueryContext, QueryJob } from '../query/request.ts'
import { parseStatement, type Statement } from '../query/statement.ts'
import { DATABASE } from '../schema.ts'
import { readSessionStatement } from '../session/session-statement.ts'
import { readSettings } from '../session/settings.ts'
import type { ResultEnd, ResultHead } from '../store/protocol.ts'
import { beginReading, readValue } from './customer-schema.ts'
import { translateEngineError } from './engine-errors.ts'
import type { HeldResult } from './held-result.ts'
import { applySqlPolicy } from './sql-policy.ts'

export type QueryRunDeps = {
  readonly nowMs: () => number
  /** Time slices of this query on the thread that formats results. */
  readonly slices: TimeSlices
  /** Where the formatted result goes. */
  readonly result: HeldResult
  /** Called with the time limit of the query. */
  onStart?(secondsMax: number): void
  /** Called when the statement has been accepted and runs. */
  onHead(head: ResultHead): void
  /** Called when the statement has passed all checks, before the engine runs it. */
  onRun?(): void
  /** Called around the time that the query waits for the reader of its result, or for its turn on this thread. */
  onWait?(isWaiting: boolean): void
}

/**
 * Runs one statement on its own connection and formats its result in pieces, as fast as they are read. The statement is tokenised once and its parse
 * tree read once. Rejects with QueryError, which never contains the engine's own text.
 */
export async function runQuery(connection: DuckConnection, job: QueryJob, deps: QueryRunDeps): Promise<ResultEnd> {
  const { nowMs, result } = deps
  const startedMs = nowMs()
  const { context = OPERATOR } = job
  try {
    const statement = parseStatement(job.query)
    const settings = readSettings([...Object.entries(job.settings), ...statement.settings])
    result.limitTo(settings.bytesMax ?? Infinity)
    const { name: format, contentType } = formatNamed(statement.format ?? job.defaultFormat)
    const rowsMax = Math.min(job.limits.rowsMax, settings.rowsMax ?? job.limits.rowsMax)
    const endsAtRowsMax = settings.endsAtRowsMax && (settings.rowsMax ?? Infinity) <= job.limits.rowsMax
    deps.onStart?.(Math.min(job.limits.secondsMax, settings.secondsMax ?? job.limits.secondsMax))
    const coverageSlot = await beginReading(connection, context.database)
    const sessionChange = readSessionStatement(statement, DATABASES)
    deps.onHead({ format, contentType, coverageSlot, sessionChange })
    let rowCount = 0
    const end = (): ResultEnd => {
      result.finish()
      return { rows: rowCount, bytes: result.totalBytes, elapsedSeconds: (nowMs() - startedMs) / 1000 }
    }
    if (sessionChange !== undefined) return end()
    const { timezone, joinUsesNulls, quote64, dateTimeFormat, revision } = settings
    const onRun = (): void => deps.onRun?.()
    const source = {
      ...job,
      context,
      timezone,
      joinUsesNulls,
      limit: endsAtRowsMax ? rowsMax : rowsMax + 1,
      onRun,
      turns: deps,
    }
    await using rows = await streamRows(connection, statement, source)
    const engineTypes = rows.columns.map(({ engine }) => engine)
    const times = { format: dateTimeFormat, zone: 'UTC' }
    const writer = createResultWriter(rows.columns.map(typedColumn), engineTypes, { format, quote64, times, revision })
    await write(writer.head(), deps)
    for (let chunk = await rows.next(); chunk !== undefined; chunk = await rows.next()) {
      rowCount += chunk.rowCount
      if (rowCount > rowsMax)
        throw new QueryError(
          'TOO_MANY_ROWS_OR_BYTES',
          `Limit for result exceeded: more than ${rowsMax} rows. Add LIMIT, or aggregate.`,
        )
      await write(writer.rows(chunk), deps)
    }
    const totals = await rows.totals?.()
    const elapsedSeconds = (nowMs() - startedMs) / 1000
    await write(writer.tail({ elapsedSeconds, rowsRead: rowCount, bytesRead: 0 }, totals), deps)
    return end()
  } catch (cause) {
    throw cause instanceof QueryError ? cause : translateEngineError(cause)
  }
}

const OPERATOR: QueryContext = { user: 'operator', database: DATABASE, hostName: 'localhost', uptimeSeconds: 0 }

/** Adds pieces to the result. Lets the event loop run when the time slice is used up, and waits while the reader is behind. */
async function write(pieces: Iterable<Piece>, deps: QueryRunDeps): Promise<void> {
  const { slices, result } = deps
  for (const piece of pieces) {
    if (piece !== undefined) result.add(piece)
    if (!result.hasRoom) await waitFor(result.room(), deps)
    if (slices.isSpent()) await waitFor(slices.yield(), deps)
  }
}

type Turns = Pick<QueryRunDeps, 'slices' | 'onWait'>

/** Called between two steps: lets the event loop run when the time slice is used up. */
async function endSlice(turns: Turns): Promise<void> {
  if (turns.slices.isSpent()) await waitFor(turns.slices.yield(), turns)
}

function waitFor(turn: Promise<void>, { onWait }: Turns): Promise<void> {
  onWait?.(true)
  return turn.finally(() => onWait?.(false))
}

/** First words of statements that read. Any other statement is refused before the engine parses it. */
const READING_WORDS = new Set(['SELECT', 'WITH', 'VALUES', 'FROM', 'SUMMARIZE', 'SHOW', 'DESCRIBE', 'PIVOT', 'UNPIVOT'])

/** The SQL policy allows 10,000 nodes, of some hundreds of bytes each. Parsing a larger tree would block the thread that writes. */
const TREE_BYTES_MAX = 4 * 1024 * 1024
const SERIALIZE = `SELECT CASE WHEN length(tree) <= ${TREE_BYTES_MAX} THEN tree END FROM (SELECT json_serialize_sql($sql::VARCHAR) AS tree)`

/** Rows to format. */
type RowStream = AsyncDisposable & {
  readonly columns: readonly ResultColumn[]
  next(): Promise<DuckChunk | undefined>
  /** The row of WITH TOTALS, once all rows are read. */
  totals?(): Promise<DuckChunk | undefined>
}

type Source = Pick<QueryJob, 'parameters' | 'settings'> & {
  readonly context: QueryContext
  readonly timezone: string
  readonly joinUsesNulls: boolean
  /** Most rows that are read. */
  readonly limit: number
  readonly onRun: () => void
  readonly turns: Turns
}

/** The rows of a statement: of the catalogue, of EXPLAIN and DESCRIBE, or of the engine. */
async function streamRows(connection: DuckConnection, { tokens }: Statement, source: Source): Promise<RowStream> {
  const { database } = source.context
  const catalogue = readShow(tokens, { database, settings: source.settings })
  if (catalogue !== undefined) {
    source.onRun()
    return streamCatalogue(catalogue)
  }
  const explained = readExplain(tokens)
  const described = readDescribedQuery(tokens)
  const checked = await checkStatement(connection, explained?.tokens ?? described ?? tokens, source)
  source.onRun()
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
    const columns = rows.columns.map(typedColumn)
    return streamCatalogue(describedRows(columns.map(({ name, type }) => ({ name, type: typeName(type), help: '' }))))
  }
  return await streamEngine(connection, checked, source.limit)
}

/** A statement in the engine's dialect that has passed the SQL policy. */
type Checked = CompiledStatement & { readonly database: string }

async function checkStatement(
  connection: DuckConnection,
  tokens: Statement['tokens'],
  { parameters: given, context, timezone, joinUsesNulls, turns }: Source,
): Promise<Checked> {
  const [first] = tokens
  if (first?.kind === 'word' && !READING_WORDS.has(first.upper)) throw notReading()
  const { database } = context
  const known = replaceConnectionFunctions(tokens, { ...context, timezone })
  await endSlice(turns)
  const query = parseTokens(known)
  await endSlice(turns)
  const compiled = compileParsed(query, { given, database, joinUsesNulls, timezone })
  await endSlice(turns)
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
async function readTotals(connection: DuckConnection, checked: Checked): Promise<DuckChunk | undefined> {
  const { totals, parameters, database } = checked
  if (totals === undefined) return undefined
  await checkPolicy(connection, totals, database)
  await using rows = await connection.streamOnWorkers(totals, boundOf(parameters))
  return await rows.next()
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
    columns: rows.columns.map(({ type: engine }, at) => ({ name: '', ...columns[at], engine })),
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

function streamCatalogue(found: CatalogueRows): RowStream {
  const { columns, chunk } = catalogueChunk(found)
  const chunks = [chunk]
  return { columns, next: async () => chunks.shift(), [Symbol.asyncDispose]: async () => {} }
}
