import type { DuckAppender, DuckConnection, DuckDatabase } from '../host/duckdb.ts'
import type { Row, Rows } from './block-rows.ts'
import { BASE_SCHEMA, duckColumns, duckDdl } from './duck-ddl.ts'
import { TABLES, tableOf } from './schema.ts'
import { addRange, cutFrom, overlaps, type SlotRange } from './slot-ranges.ts'
import { RECENT_BLOCKS, type Store, type StoreProgress, type WriteBatch } from './store.ts'

/** Attempts to leave a failed transaction before the process is given up. */
const ROLLBACK_TRIES = 5

/** The writer of the embedded database: one connection that nothing else uses, one transaction for each batch. */
export async function openDuckStore(database: DuckDatabase, nowMs: () => number): Promise<Store> {
  const connection = await database.connect()
  for (const statement of duckDdl()) await connection.run(statement)
  await connection.run(`INSERT OR IGNORE INTO ${BASE_SCHEMA}._progress VALUES (0, '', 0, 0, '1970-01-01')`)

  async function inTransaction(work: (appenders: DuckAppender[]) => Promise<void>): Promise<void> {
    const appenders: DuckAppender[] = []
    try {
      await connection.run('BEGIN')
      await work(appenders)
      await connection.run('COMMIT')
    } catch (cause) {
      // Rows left in an appender would be written later on their own, outside the transaction.
      for (const appender of appenders) appender.clear()
      await leaveTransaction(connection)
      throw cause
    }
  }

  /** Transactions of one connection cannot overlap: live blocks and a backfill take turns. */
  let turn: Promise<unknown> = Promise.resolve()
  function inTurn(work: () => Promise<void>): Promise<void> {
    const done = turn.then(work, work)
    turn = done.catch(() => {})
    return done
  }

  async function write(batch: WriteBatch): Promise<void> {
    const { range } = batch
    try {
      await inTransaction(async (appenders) => {
        if (overlaps(await readRanges(connection), range)) await deleteSlots(connection, range)
        await replaceAccounts(connection, batch.rows.accounts)
        for (const table of TABLES) {
          const rows = batch.rows[table.name]
          if (rows.length === 0) continue
          const appender = await connection.appendTo(BASE_SCHEMA, table.name, duckColumns(table))
          appenders.push(appender)
          appender.append(rows)
        }
        for (const appender of appenders) appender.close()
        await connection.run(
          `UPDATE ${BASE_SCHEMA}.blocks SET commitment = 'finalized'
             WHERE commitment <> 'finalized' AND slot <= $slot AND slot > (SELECT finalized_slot FROM ${BASE_SCHEMA}._progress)`,
          { slot: batch.finalizedSlot },
        )
        await saveRanges(connection, (ranges) => addRange(ranges, range))
        await connection.run(
          `UPDATE ${BASE_SCHEMA}._progress SET last_batch = $name, finalized_slot = greatest(finalized_slot, $finalized),
             tip_slot = greatest(tip_slot, $tip), written_at = make_timestamp($now::BIGINT * 1000)::TIMESTAMP_S`,
          { name: batch.name, finalized: batch.finalizedSlot, tip: batch.tipSlot, now: BigInt(nowMs()) },
        )
      })
    } catch (cause) {
      // A COMMIT that fails may have taken effect all the same.
      if ((await progress()).lastBatch !== batch.name) throw cause
    }
  }

  async function rewind(fromSlot: number): Promise<void> {
    await inTransaction(async () => {
      for (const { name } of TABLES) {
        await connection.run(`DELETE FROM ${BASE_SCHEMA}.${name} WHERE slot >= $from`, { from: fromSlot })
      }
      await saveRanges(connection, (ranges) => cutFrom(ranges, fromSlot))
      await connection.run(`UPDATE ${BASE_SCHEMA}._progress SET last_batch = ''`)
    })
  }

  async function progress(): Promise<StoreProgress> {
    const ranges = await readRanges(connection)
    const [state] = await rowsOf(connection, `SELECT last_batch, finalized_slot FROM ${BASE_SCHEMA}._progress`)
    const recent = await rowsOf(
      connection,
      `SELECT slot, blockhash FROM ${BASE_SCHEMA}.blocks WHERE slot BETWEEN $from AND $to ORDER BY slot DESC LIMIT ${RECENT_BLOCKS}`,
      { from: ranges.at(-1)?.from ?? 0, to: ranges.at(-1)?.to ?? 0 },
    )
    return {
      ranges,
      recent: recent.map(([slot, blockhash]) => ({ slot: Number(slot), blockhash: String(blockhash) })).toReversed(),
      finalizedSlot: Number(state?.[1] ?? 0),
      lastBatch: typeof state?.[0] === 'string' ? state[0] : '',
    }
  }

  return {
    progress,
    write: (batch) => inTurn(() => write(batch)),
    rewind: (fromSlot) => inTurn(() => rewind(fromSlot)),
    async [Symbol.asyncDispose]() {
      connection[Symbol.dispose]()
    },
  }
}

/** Rows come and go with the ranges, in one transaction: outside of them there are none to delete. */
async function deleteSlots(connection: DuckConnection, { from, to }: SlotRange): Promise<void> {
  for (const { name } of TABLES) {
    if (name !== 'accounts')
      await connection.run(`DELETE FROM ${BASE_SCHEMA}.${name} WHERE slot BETWEEN $from AND $to`, { from, to })
  }
}

/** The table holds one row for each account: what comes replaces what stands there. */
async function replaceAccounts(connection: DuckConnection, rows: Rows['accounts']): Promise<void> {
  const at = tableOf('accounts').columns.findIndex(({ name }) => name === 'pubkey')
  const keys = rows.map((row: Row) => String(row[at]))
  // Keys are base58 from the decoder, so they need no quoting; pieces keep the statements small.
  for (let from = 0; from < keys.length; from += 1000) {
    const list = keys.slice(from, from + 1000).map((key) => `'${key}'`)
    await connection.run(`DELETE FROM ${BASE_SCHEMA}.accounts WHERE pubkey IN (${list.join(',')})`)
  }
}

async function saveRanges(
  connection: DuckConnection,
  change: (ranges: readonly SlotRange[]) => readonly SlotRange[],
): Promise<void> {
  const ranges = change(await readRanges(connection))
  await connection.run(`DELETE FROM ${BASE_SCHEMA}._ranges`)
  for (const { from, to } of ranges) {
    await connection.run(`INSERT INTO ${BASE_SCHEMA}._ranges VALUES ($from, $to)`, { from, to })
  }
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

/** ROLLBACK itself can fail for lack of memory; it is over when the engine knows of no transaction any more. */
async function leaveTransaction(connection: DuckConnection): Promise<void> {
  for (let attempt = 1; ; attempt++) {
    try {
      await connection.run('ROLLBACK')
      return
    } catch (cause) {
      if (/no transaction is active/i.test(String(cause))) return
      if (attempt === ROLLBACK_TRIES) throw cause
    }
  }
}
