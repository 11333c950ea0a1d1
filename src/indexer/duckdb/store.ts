import type { DuckConnection, DuckDatabase } from '../../platform/db/duckdb.ts'
import type { DuckAppender } from '../../platform/db/duckdb-appender.ts'
import { positionTexts } from '../../platform/db/duckdb-texts.ts'
import { addRange, cutFrom, overlaps, type SlotRange } from '../ingest/slot-ranges.ts'
import { TABLES } from '../schema.ts'
import { RECENT_BLOCKS, type Store, type StoreProgress, type WriteBatch } from '../store/store.ts'
import { appendBefore, deleteRepeated, forgetAccounts, replaceAccounts, restoreAccounts } from './accounts-before.ts'
import { ACCOUNTS_BEFORE, ACCOUNTS_RECENT, BASE_SCHEMA, duckDdl } from './ddl.ts'
import { COUNT_SETTLED, countRecent, DELETE_OUTDATED, recentRowsMaxOf, settleAccounts } from './settled-accounts.ts'

/**
 * Batches after which a checkpoint moves the log into the file, whatever its size: until then its rows are uncompressed in memory. At the tip of the
 * chain this is every two minutes, so a start after a kill replays little; while catching up the size of the log triggers it much earlier.
 */
const CHECKPOINT_BATCHES = 128
/** Attempts to roll back a failed transaction before the error is thrown. */
const ROLLBACK_ATTEMPTS_MAX = 5

type DuckStoreOptions = {
  /** Called when the rows of the log are in the file. */
  readonly onCheckpoint?: () => Promise<void>
  /** Bytes of appended texts after which a checkpoint moves the log into the file earlier. By default only the number of batches decides. */
  readonly logTextBytesMax?: number | undefined
  /** Called when the final states of accounts could not be moved to their table: they stay where they are until the next move. */
  readonly onMoveFailed?: (error: unknown) => void
  /** Final states of accounts that are kept apart from the table of that many rows. */
  readonly recentRowsMaxOf?: ((settledRows: number) => number) | undefined
}

/** The writer of the embedded database: a dedicated connection, and one transaction for each batch. */
export async function openDuckStore(
  database: DuckDatabase,
  nowMs: () => number,
  options: DuckStoreOptions = {},
): Promise<Store> {
  const { onCheckpoint = async () => {}, onMoveFailed, logTextBytesMax = Number.POSITIVE_INFINITY } = options
  const connection = await database.connect()
  for (const statement of duckDdl()) await connection.run(statement)
  await connection.run(`INSERT OR IGNORE INTO ${BASE_SCHEMA}._progress VALUES (0, '', 0, 0, '1970-01-01')`)
  await connection.run(DELETE_OUTDATED)

  const commit = await connection.prepareHere('COMMIT')
  let batchesInLog = 0
  let textBytesInLog = 0
  let settledRows = await countOf(connection, COUNT_SETTLED)
  /** States in the table of recent ones: the final ones when they were counted, and all that were written since. */
  let recentRows = await countOf(connection, countRecent(Number.MAX_SAFE_INTEGER))
  /** Complete ranges as stored in the file; read again after a failure. */
  let ranges: readonly SlotRange[] | undefined

  /**
   * By table, for all batches: the library frees an appender, with the memory for a chunk of rows, only when the garbage collector finds it. None has rows
   * between two transactions.
   */
  const appenders = new Map<string, DuckAppender>()
  async function appenderOf(table: string): Promise<DuckAppender> {
    const opened = appenders.get(table) ?? (await connection.appendTo(BASE_SCHEMA, table))
    appenders.set(table, opened)
    return opened
  }

  /** `first` are the statements after BEGIN, `last` those before COMMIT. Each group is one call, because a call waits for a thread that queries share. */
  async function inTransaction(
    { first = [], last }: { readonly first?: readonly string[]; readonly last: readonly string[] },
    append: () => Promise<void> = async () => {},
  ): Promise<void> {
    try {
      await connection.run(['BEGIN', ...first].join(';'))
      await append()
      for (const appender of appenders.values()) appender.flush()
      await connection.run(last.join(';'))
      // COMMIT is half the work of a batch; it runs on this thread because queries use the thread pool.
      await commit()
    } catch (cause) {
      ranges = undefined
      // Rows left in an appender would be written later, outside the transaction.
      for (const appender of appenders.values()) appender.clear()
      appenders.clear()
      await rollBack(connection)
      throw cause
    }
  }

  /** Transactions of one connection cannot overlap, so writes of live blocks and of a backfill run one after another. */
  let lastWrite: Promise<unknown> = Promise.resolve()
  function serialize(work: () => Promise<void>): Promise<void> {
    const done = lastWrite.then(work, work)
    lastWrite = done.catch(() => {})
    return done
  }

  async function write(batch: WriteBatch): Promise<void> {
    const { range, rewindFrom, rows, overwritten, name, finalizedSlot, tipSlot } = batch
    try {
      ranges ??= await readRanges(connection)
      const kept = rewindFrom === undefined ? ranges : cutFrom(ranges, rewindFrom)
      const after = addRange(kept, range)
      const first = [
        ...(rewindFrom === undefined ? [] : deleteFrom(rewindFrom)),
        ...(overlaps(kept, range) ? [...deleteSlots(range), ...deleteRepeated(batch)] : []),
      ]
      const last = [
        `UPDATE ${BASE_SCHEMA}.blocks SET commitment = 'finalized' WHERE commitment <> 'finalized'
           AND slot <= ${finalizedSlot} AND slot > (SELECT finalized_slot FROM ${BASE_SCHEMA}._progress)`,
        ...replaceAccounts(batch),
        forgetAccounts(finalizedSlot),
        ...saveRanges(after),
        `UPDATE ${BASE_SCHEMA}._progress SET last_batch = ${quoted(name)}, finalized_slot = greatest(finalized_slot, ${finalizedSlot}),
           tip_slot = greatest(tip_slot, ${tipSlot}), written_at = make_timestamp(${nowMs()} * 1000)::TIMESTAMP_S`,
      ]
      await inTransaction({ first, last }, async () => {
        const tableAppenders: DuckAppender[] = []
        for (const { name } of TABLES)
          tableAppenders.push(await appenderOf(name === 'accounts' ? ACCOUNTS_RECENT : name))
        for (const { texts, tables } of rows) {
          using placed = positionTexts(texts.packed())
          TABLES.forEach((table, at) => {
            const { columns, count } = tables[table.name]
            if (count > 0) tableAppenders[at]?.append(columns, count, placed)
          })
        }
        if (overwritten === undefined) return
        appendBefore(await appenderOf(ACCOUNTS_BEFORE), overwritten, range)
      })
      ranges = after
      textBytesInLog += textBytesOf(batch)
      recentRows += rows.reduce((sum, { tables }) => sum + tables.accounts.count, 0)
      await settleIfDue(finalizedSlot)
      if (++batchesInLog >= CHECKPOINT_BATCHES || textBytesInLog >= logTextBytesMax) await checkpoint()
    } catch (cause) {
      // A COMMIT that fails may have taken effect all the same.
      if ((await progress()).lastBatch !== name) throw cause
    }
  }

  async function settleIfDue(finalizedSlot: number): Promise<void> {
    const rowsMax = (options.recentRowsMaxOf ?? recentRowsMaxOf)(settledRows)
    if (recentRows < rowsMax) return
    // Most accounts are written again and again.
    recentRows = await countOf(connection, countRecent(finalizedSlot))
    if (recentRows < rowsMax) return
    // A move that fails is not repeated with every batch.
    recentRows = 0
    await inTransaction({ last: settleAccounts(finalizedSlot) }).catch((error: unknown) => onMoveFailed?.(error))
    settledRows = await countOf(connection, COUNT_SETTLED)
  }

  /** A failure is ignored: a later checkpoint does the same work. */
  async function checkpoint(): Promise<void> {
    batchesInLog = 0
    textBytesInLog = 0
    await connection.run('CHECKPOINT').then(onCheckpoint, () => {})
  }

  async function rewind(fromSlot: number): Promise<void> {
    ranges ??= await readRanges(connection)
    const after = cutFrom(ranges, fromSlot)
    await inTransaction({
      last: [...deleteFrom(fromSlot), ...saveRanges(after), `UPDATE ${BASE_SCHEMA}._progress SET last_batch = ''`],
    })
    ranges = after
  }

  async function progress(): Promise<StoreProgress> {
    const complete = await readRanges(connection)
    const [state] = await rowsOf(connection, `SELECT last_batch, finalized_slot FROM ${BASE_SCHEMA}._progress`)
    const recent = await rowsOf(
      connection,
      `SELECT slot, blockhash FROM ${BASE_SCHEMA}.blocks WHERE slot BETWEEN $from AND $to ORDER BY slot DESC LIMIT ${RECENT_BLOCKS}`,
      { from: complete.at(-1)?.from ?? 0, to: complete.at(-1)?.to ?? 0 },
    )
    return {
      ranges: complete,
      recent: recent.map(([slot, blockhash]) => ({ slot: Number(slot), blockhash: String(blockhash) })).toReversed(),
      finalizedSlot: Number(state?.[1] ?? 0),
      lastBatch: typeof state?.[0] === 'string' ? state[0] : '',
    }
  }

  return {
    progress,
    write: (batch) => serialize(() => write(batch)),
    rewind: (fromSlot) => serialize(() => rewind(fromSlot)),
    async [Symbol.asyncDispose]() {
      connection[Symbol.dispose]()
    },
  }
}

function textBytesOf({ rows, overwritten }: WriteBatch): number {
  const pieces = overwritten === undefined ? rows : [...rows, overwritten]
  return pieces.reduce((sum, { texts }) => sum + texts.packed().bytes.length, 0)
}

function deleteFrom(slot: number): string[] {
  return [
    ...restoreAccounts(slot),
    ...TABLES.map(({ name }) => `DELETE FROM ${BASE_SCHEMA}.${name} WHERE slot >= ${slot}`),
  ]
}

/** Rows and ranges change in one transaction, so there are no rows outside the ranges. */
function deleteSlots({ from, to }: SlotRange): string[] {
  return TABLES.filter(({ name }) => name !== 'accounts').map(
    ({ name }) => `DELETE FROM ${BASE_SCHEMA}.${name} WHERE slot BETWEEN ${from} AND ${to}`,
  )
}

function saveRanges(ranges: readonly SlotRange[]): string[] {
  const values = ranges.map(({ from, to }) => `(${from}, ${to})`)
  const insert = values.length === 0 ? [] : [`INSERT INTO ${BASE_SCHEMA}._ranges VALUES ${values.join(', ')}`]
  return [`DELETE FROM ${BASE_SCHEMA}._ranges`, ...insert]
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", "''")}'`
}

async function countOf(connection: DuckConnection, sql: string): Promise<number> {
  return Number((await rowsOf(connection, sql))[0]?.[0] ?? 0)
}

async function readRanges(connection: DuckConnection): Promise<SlotRange[]> {
  const rows = await rowsOf(connection, `SELECT from_slot, to_slot FROM ${BASE_SCHEMA}._ranges ORDER BY from_slot`)
  return rows.map(([from, to]) => ({ from: Number(from), to: Number(to) }))
}

async function rowsOf(
  connection: DuckConnection,
  sql: string,
  params?: Parameters<DuckConnection['run']>[1],
): Promise<unknown[][]> {
  const rows: unknown[][] = []
  for (const columns of (await connection.run(sql, params)).pieces()) {
    const [first = []] = columns
    first.forEach((_value, at) => rows.push(columns.map((column) => column[at])))
  }
  return rows
}

/** ROLLBACK itself can fail for lack of memory; it is repeated until the engine reports that no transaction is active. */
async function rollBack(connection: DuckConnection): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await connection.run('ROLLBACK')
      return
    } catch (cause) {
      if (/no transaction is active/i.test(String(cause))) return
      if (attempt === ROLLBACK_ATTEMPTS_MAX) throw cause
    }
  }
}
