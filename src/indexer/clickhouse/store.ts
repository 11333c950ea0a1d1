import { createHash } from 'node:crypto'
import { createHttpClient } from '../../platform/http/client/client.ts'
import { type Row, rowsIn } from '../ingest/batch-rows.ts'
import { addRange, cutFrom, overlaps, type SlotRange, withoutRange } from '../ingest/slot-ranges.ts'
import { TABLES, tableOf } from '../schema.ts'
import { RECENT_BLOCKS, type Store, type StoreProgress, type WriteBatch } from '../store/store.ts'
import {
  ACCOUNT_UPDATES,
  finalPartitionsEnd,
  partitionDrop,
  partitionsBelow,
  promotion,
  type StoredTable,
} from './account-updates.ts'
import { catalogueViewDdl } from './catalogue-views.ts'
import { baseDatabase, type ClickHouseDialect, dialectOf, tableDdl, viewDdl } from './ddl.ts'
import { type ClickHouseAccount, createClickHouseLink } from './link.ts'
import { type ClickHouseState, readClickHouseState, saveClickHouseState } from './state.ts'

export type ClickHouseStoreOptions = ClickHouseAccount & {
  /** Database of the views that customers see; the tables are in `<database>_base`. */
  readonly database: string
}

/** Connections of the writer only. */
const CONNECTIONS_MAX = 4
const CONNECT_MS = 5_000
/** Most rows of one INSERT: the unit that the server deduplicates, and that a retry sends again. */
const ROWS_PER_INSERT = 50_000
/** Longest wait for the server to finish a deletion, or an insert whose client has disconnected. */
const WAIT_MS = 120_000
const CHECK_MS = 50
/** Greater than the number of states that another process may still be writing, which is one. */
const TAKEOVER_STEP = 16
/** Names of intents that are not batches: slots that are written again, which keep the states of accounts, and slots of an abandoned fork. */
const REWRITE = ''
const REWIND = 'rewind'
const BY_SLOT = TABLES.filter(({ name }) => name !== 'accounts')

/**
 * The writer of the operator's ClickHouse. There are no transactions, so it relies on order: it stores the intent, inserts the rows, then marks them
 * complete. The rows of an interrupted batch are either completed by the same batch, or deleted before anything else is written. A database has one
 * writer at a time.
 */
export async function openClickHouseStore(
  options: ClickHouseStoreOptions,
  time: { nowMs(): number; wait(ms: number): Promise<void> },
): Promise<Store> {
  await using opening = new AsyncDisposableStack()
  const client = opening.use(
    createHttpClient({ url: options.url, connectionsMax: CONNECTIONS_MAX, connectMs: CONNECT_MS }),
  )
  const link = createClickHouseLink(client, options)
  const dialect = dialectOf((await link.run('SELECT version()')).trim())
  const base = baseDatabase(options.database)
  for (const statement of tableDdl(options.database, dialect)) await link.run(statement)
  for (const statement of viewDdl(options.database, options.database, dialect)) await link.run(statement)
  for (const statement of catalogueViewDdl(options.database, dialect)) await link.run(statement)
  const writeIds = `sluice-ingest-${options.database}-`
  let writes = 0
  await settled()
  let state = await readClickHouseState(link, base)
  // A state that an earlier process is still writing has a lower version than this one.
  await save({ version: state.version + TAKEOVER_STEP })

  /** An id by which `settled` finds the statement. */
  function nextWriteId(): string {
    return `${writeIds}${time.nowMs()}-${++writes}`
  }

  /** Waits for statements that an earlier process or a broken connection left running: they would insert after a deletion, or drop after an insert. */
  async function settled(): Promise<void> {
    const running = `SELECT count() FROM system.processes WHERE startsWith(query_id, '${writeIds}')`
    await waitFor(async () => Number((await link.rows(running))[0]?.[0]) === 0, 'another writer is at work')
  }

  async function waitFor(holds: () => Promise<boolean>, problem: string): Promise<void> {
    for (let waitedMs = 0; waitedMs < WAIT_MS; waitedMs += CHECK_MS) {
      if (await holds()) return
      await time.wait(CHECK_MS)
    }
    throw new Error(`${options.database}: ${problem}, for more than ${WAIT_MS} ms`)
  }

  async function save(change: Partial<ClickHouseState>): Promise<void> {
    const next = { ...state, version: state.version + 1, ...change }
    await saveClickHouseState(link, base, next, time.nowMs())
    state = next
  }

  /** Deletes rows. Callers raise the generation, so that later inserts have new tokens. */
  async function deleteSlots(where: string, tables: readonly StoredTable[]): Promise<void> {
    for (const { name } of tables) {
      // Counting first avoids a mutation for each batch.
      const [found] = await link.rows(`SELECT count() FROM ${base}.${name} WHERE ${where}`)
      if (Number(found?.[0]) === 0) continue
      if (dialect === 'current')
        await link.run(`ALTER TABLE ${base}.${name} DELETE WHERE ${where}`, { mutations_sync: '2' })
      else await deleteAndWait(name, where)
    }
  }

  async function deleteAndWait(name: string, where: string): Promise<void> {
    await link.run(`ALTER TABLE ${base}.${name} DELETE WHERE ${where}`)
    const pending = `SELECT count() FROM system.mutations WHERE database = '${base}' AND table = '${name}' AND NOT is_done`
    await waitFor(async () => Number((await link.rows(pending))[0]?.[0]) === 0, `deleting from ${name} is not done`)
  }

  /** Deletes the rows of an intent that was not completed, unless it is the intent of the batch that is written now. */
  async function clearIntent(unless?: string): Promise<void> {
    const { intent } = state
    if (intent === undefined || intent.name === unless) return
    await settled()
    await deleteSlots(within(intent.range), BY_SLOT)
    if (intent.name === REWIND) {
      // Above the finalized slot `accounts` only has rows of releases that wrote every state there.
      await deleteSlots(within(intent.range), [ACCOUNT_UPDATES, tableOf('accounts')])
    } else if (intent.name !== REWRITE) {
      // States in final blocks stay: the blocks come again, possibly without accounts.
      await deleteSlots(`${within(intent.range)} AND slot > ${state.finalizedSlot}`, [ACCOUNT_UPDATES])
    }
    await save({ intent: undefined, generation: state.generation + 1 })
  }

  async function write(batch: WriteBatch): Promise<void> {
    // A write that failed may have taken effect, so the state is read from the server.
    state = await readClickHouseState(link, base)
    const { name, range, rewindFrom } = batch
    if (state.lastBatch === name && state.intent === undefined) return
    await clearIntent(name)
    // A repeated batch finds them deleted.
    if (rewindFrom !== undefined && (state.ranges.at(-1)?.to ?? -1) >= rewindFrom) await deleteFrom(rewindFrom)
    if (overlaps(state.ranges, range)) {
      await save({ ranges: withoutRange(state.ranges, range), intent: { name: REWRITE, range } })
      await clearIntent()
    }
    await save({ intent: { name, range } })
    for (const table of BY_SLOT) await insert(table, [...rowsIn(batch.rows, table.name)], range)
    const overwritten = batch.overwritten === undefined ? [] : [batch.overwritten]
    await insert(ACCOUNT_UPDATES, [...rowsIn([...batch.rows, ...overwritten], 'accounts')], range)
    await promote(batch.finalizedSlot)
    await save({
      intent: undefined,
      ranges: addRange(state.ranges, range),
      lastBatch: name,
      finalizedSlot: Math.max(state.finalizedSlot, batch.finalizedSlot),
      tipSlot: Math.max(state.tipSlot, batch.tipSlot),
    })
  }

  /** Before the progress is saved, so that a promotion that was interrupted is repeated with its batch. */
  async function promote(finalizedSlot: number): Promise<void> {
    const end = finalPartitionsEnd(finalizedSlot)
    if (end <= finalPartitionsEnd(state.finalizedSlot)) return
    await settled()
    const partitions = await link.rows(partitionsBelow(base, end))
    if (partitions.length === 0) return
    await link.run(promotion(base, end, state.version), {
      query_id: nextWriteId(),
      ...(dialect === 'current' ? { insert_deduplicate: '0' } : {}),
    })
    for (const [partition] of partitions)
      await link.run(partitionDrop(base, Number(partition)), { query_id: nextWriteId() })
  }

  async function insert(table: StoredTable, rows: readonly Row[], { from, to }: SlotRange): Promise<void> {
    const target = `INSERT INTO ${base}.${table.name} FORMAT JSONEachRow`
    for (let at = 0; at < rows.length; at += ROWS_PER_INSERT) {
      const piece = rows.slice(at, at + ROWS_PER_INSERT)
      const parts = piece.map((row) => fields(table, row, dialect))
      const content = createHash('sha256')
      for (const part of parts) content.update(part)
      const token = `${table.name}:${from}-${to}:${state.generation}:${at}:${content.digest('hex')}`
      const lines = parts.map((part) => `${part}"_version":${state.version}}\n`).join('')
      await link.insert(target, lines, {
        query_id: nextWriteId(),
        // Parsed by one thread, the same rows always form the same blocks, to which the token applies.
        ...(dialect === 'current'
          ? { insert_deduplication_token: token, async_insert: '0', input_format_parallel_parsing: '0' }
          : {}),
      })
    }
  }

  async function rewind(fromSlot: number): Promise<void> {
    state = await readClickHouseState(link, base)
    await clearIntent()
    await deleteFrom(fromSlot)
  }

  async function deleteFrom(fromSlot: number): Promise<void> {
    const range = { from: fromSlot, to: Math.max(fromSlot, state.ranges.at(-1)?.to ?? 0) }
    // Marked incomplete first: coverage may be behind the rows, never ahead.
    await save({ ranges: cutFrom(state.ranges, fromSlot), lastBatch: '', intent: { name: REWIND, range } })
    await clearIntent()
  }

  async function progress(): Promise<StoreProgress> {
    state = await readClickHouseState(link, base)
    const { ranges, finalizedSlot, lastBatch } = state
    const last = ranges.at(-1)
    const recent =
      last === undefined
        ? []
        : await link.rows(
            `SELECT DISTINCT slot, blockhash FROM ${base}.blocks WHERE ${within(last)} ORDER BY slot DESC LIMIT ${RECENT_BLOCKS}`,
          )
    return {
      ranges,
      recent: recent.map(([slot, blockhash]) => ({ slot: Number(slot), blockhash: String(blockhash) })).toReversed(),
      finalizedSlot,
      lastBatch,
    }
  }

  /** Writes of live blocks and of a backfill run one after another. */
  let lastWrite: Promise<unknown> = Promise.resolve()
  function serialize<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = lastWrite.then(work, work)
    lastWrite = done.catch(() => {})
    return done
  }

  const opened = opening.move()
  return {
    progress: () => serialize(progress),
    write: (batch) => serialize(() => write(batch)),
    rewind: (fromSlot) => serialize(() => rewind(fromSlot)),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function within({ from, to }: SlotRange): string {
  return `slot >= ${from} AND slot <= ${to}`
}

/** A row of JSONEachRow without its end, where `_version` follows. 64-bit integers are strings, which the server converts to the type of the column. */
function fields({ columns }: StoredTable, row: Row, dialect: ClickHouseDialect): string {
  let text = '{'
  columns.forEach(({ name }, at) => {
    const value = row[at]
    if (typeof value === 'bigint') text += `"${name}":"${value}",`
    else if (typeof value === 'boolean' && dialect === 'legacy') text += `"${name}":${value ? 1 : 0},`
    else text += `"${name}":${JSON.stringify(value)},`
  })
  return text
}
