import type { DuckConnection, DuckParams } from '../../platform/db/duckdb.ts'
import { type DuckChunk, StreamFailed } from '../../platform/db/duckdb-stream.ts'
import type { TimeSlices } from '../../platform/process/time-slices.ts'
import { createResultWriter, formatNamed } from '../formats/formats.ts'
import { observeTypes, type UntypedColumn } from '../formats/settle-types.ts'
import type { Piece, ResultWriter } from '../formats/writer.ts'
import { catalogueChunk, readCatalogue } from '../query/catalogue.ts'
import { notReading, QueryError } from '../query/error.ts'
import { type QueryJob, readSettings } from '../query/request.ts'
import { parseStatement, type Statement } from '../query/statement.ts'
import { DATABASE, PUBLISHED_NAMES } from '../schema.ts'
import { reportedTypes } from './column-types.ts'
import { beginReading, readValue } from './customer-schema.ts'
import { translateEngineError } from './engine-errors.ts'
import type { HeldResult } from './held-result.ts'
import { nullFreeColumns } from './null-free-columns.ts'
import type { ResultEnd, ResultHead } from './protocol.ts'
import { type Rewritten, rewriteStatement } from './rewrite.ts'
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
  /** Called around the time that the query waits for the reader of its result. */
  onWait?(isWaiting: boolean): void
}

/** Bytes of rows, in the engine's memory, that are held to decide the types of the result. */
const HELD_ROWS_BYTES = 1024 * 1024
/** A row of a chunk takes about this much per column, texts not counted. */
const CELL_BYTES = 16

/**
 * Runs one statement on its own connection and formats its result in pieces, as fast as they are read. The statement is tokenised once and its parse
 * tree read once. Rejects with QueryError, which never contains the engine's own text.
 */
export async function runQuery(connection: DuckConnection, job: QueryJob, deps: QueryRunDeps): Promise<ResultEnd> {
  const { nowMs, result } = deps
  const startedMs = nowMs()
  try {
    const statement = parseStatement(job.query)
    const rewritten = rewriteStatement(statement, job.parameters)
    const settings = readSettings([...Object.entries(job.settings), ...statement.settings])
    const { name: format, contentType } = formatNamed(statement.format ?? job.defaultFormat)
    const rowsMax = Math.min(job.limits.rowsMax, settings.rowsMax ?? job.limits.rowsMax)
    deps.onStart?.(Math.min(job.limits.secondsMax, settings.secondsMax ?? job.limits.secondsMax))
    const coverageSlot = await beginReading(connection)
    deps.onHead({ format, contentType, coverageSlot })
    const catalogue = readCatalogue(statement)
    await using stream =
      catalogue === undefined
        ? await streamRows(connection, statement, rewritten, rowsMax)
        : streamOnce(catalogueChunk(catalogue))
    let rows = 0
    const next = async (): Promise<DuckChunk | undefined> => {
      const chunk = await stream.next()
      rows += chunk?.rowCount ?? 0
      if (rows > rowsMax)
        throw new QueryError(
          'TOO_MANY_ROWS_OR_BYTES',
          `Limit for result exceeded: more than ${rowsMax} rows. Add LIMIT, or aggregate.`,
        )
      return chunk
    }
    const { writer, held } = await holdFirstRows(stream.columns, next, deps, { format, quote64: settings.quote64 })
    await write(writer.head(), deps)
    for (const chunk of held) await write(writer.rows(chunk), deps)
    for (let chunk = await next(); chunk !== undefined; chunk = await next()) await write(writer.rows(chunk), deps)
    const elapsedSeconds = (nowMs() - startedMs) / 1000
    await write(writer.tail({ elapsedSeconds, rowsRead: rows, bytesRead: 0 }), deps)
    result.finish()
    return { rows, bytes: result.totalBytes, elapsedSeconds }
  } catch (cause) {
    throw cause instanceof QueryError ? cause : translateEngineError(cause)
  }
}

/** Holds the first rows, or all rows of a small result, until they have decided the types of the columns. */
async function holdFirstRows(
  columns: readonly UntypedColumn[],
  next: () => Promise<DuckChunk | undefined>,
  deps: QueryRunDeps,
  options: { readonly format: string; readonly quote64: boolean },
): Promise<{ readonly writer: ResultWriter; readonly held: readonly DuckChunk[] }> {
  const observer = observeTypes(columns)
  const held: DuckChunk[] = []
  let bytes = 0
  let isComplete = false
  while (!isComplete && bytes < HELD_ROWS_BYTES) {
    const chunk = await next()
    if (chunk === undefined) isComplete = true
    else {
      await write(observer.observe(chunk), deps)
      held.push(chunk)
      bytes += chunk.rowCount * columns.length * CELL_BYTES + chunk.textBytes()
    }
  }
  const engineTypes = columns.map(({ engine }) => engine)
  return { writer: createResultWriter(observer.settle(isComplete), engineTypes, options), held }
}

/** Adds pieces to the result. Lets the event loop run when the time slice is used up, and waits while the reader is behind. */
async function write(pieces: Iterable<Piece | void>, { slices, result, onWait }: QueryRunDeps): Promise<void> {
  for (const piece of pieces) {
    if (piece !== undefined) result.add(piece)
    if (!result.hasRoom) {
      onWait?.(true)
      await result.room().finally(() => onWait?.(false))
    }
    if (slices.isSpent()) await slices.yield()
  }
}

/** First words of statements that read. Any other statement is refused before the engine parses it. */
const READING_WORDS = new Set(['SELECT', 'WITH', 'VALUES', 'FROM', 'SUMMARIZE', 'SHOW', 'DESCRIBE', 'PIVOT', 'UNPIVOT'])

/** The SQL policy allows 5,000 nodes, of some hundreds of bytes each. Parsing a larger tree would block the thread that writes. */
const TREE_BYTES_MAX = 2 * 1024 * 1024
const SERIALIZE = `SELECT CASE WHEN length(tree) <= ${TREE_BYTES_MAX} THEN tree END FROM (SELECT json_serialize_sql($sql::VARCHAR) AS tree)`

/** Rows to format, and what is known about their columns. */
type RowStream = AsyncDisposable & {
  readonly columns: readonly UntypedColumn[]
  next(): Promise<DuckChunk | undefined>
}

/** Applies the SQL policy, then runs the statement. */
async function streamRows(
  connection: DuckConnection,
  { tokens: [first] }: Statement,
  { sql, parameters }: Rewritten,
  rowsMax: number,
): Promise<RowStream> {
  if (first?.kind === 'word' && !READING_WORDS.has(first.upper)) throw notReading()
  const serialized = await readValue(connection, SERIALIZE, { sql })
  if (typeof serialized !== 'string')
    throw new QueryError('TOO_BIG_AST', `The statement is too large: its tree has more than ${TREE_BYTES_MAX} bytes.`)
  const { tree } = applySqlPolicy(serialized, { tables: PUBLISHED_NAMES, database: DATABASE })
  // The names come from the statement itself: the wrapping SELECT below would rename the second of two equal ones.
  const names = (await connection.columnsOf(sql)).map((name) => (name === 'count_star()' ? 'count()' : name))
  const reported = reportedTypes(tree, names.length)
  const nullFree = nullFreeColumns(tree, names.length)
  const limited = `SELECT * FROM (${sql}\n) LIMIT ${rowsMax + 1}`
  const bound = Object.keys(parameters).length === 0 ? undefined : parameters
  const rows = await connection.streamOnWorkers(limited, bound)
  return {
    columns: rows.columns.map(({ type }, at) => ({
      name: names[at] ?? '',
      reported: reported[at],
      engine: type,
      isNullFree: nullFree[at] ?? false,
    })),
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

function streamOnce({ columns, chunk }: ReturnType<typeof catalogueChunk>): RowStream {
  const chunks = [chunk]
  return { columns, next: async () => chunks.shift(), [Symbol.asyncDispose]: async () => {} }
}
