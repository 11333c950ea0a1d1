import { createHash } from 'node:crypto'
import { createHttpClient } from '../../platform/http/client/client.ts'
import { type Row, rowsIn } from '../ingest/batch-rows.ts'
import { addRange, cutFrom, overlaps, type SlotRange, withoutRange } from '../ingest/slot-ranges.ts'
import { TABLES, type Table } from '../schema.ts'
import { RECENT_BLOCKS, type Store, type StoreProgress, type WriteBatch } from '../store.ts'
import { baseDatabase, type ClickHouseDialect, dialectOf, tableDdl, viewDdl } from './ddl.ts'
import { type ClickHouseAccount, createClickHouseLink } from './link.ts'
import { type ClickHouseState, readClickHouseState, saveClickHouseState } from './state.ts'

export type ClickHouseStoreOptions = ClickHouseAccount & {
  /** What customers see; the tables are in a second one beside it. */
  readonly database: string
}

/** The writer and nothing else uses these. */
const CONNECTIONS_MAX = 4
const CONNECT_MS = 5_000
/** Rows of one INSERT at most: what the server checks as one piece, and what a retry sends again. */
const ROWS_PER_INSERT = 50_000
/** How long the server may take to end what it was told: a deletion, or an insert whose sender is gone. */
const WAIT_MS = 120_000
const LOOK_MS = 50
/** More than the states that one process can have on their way at once, which is one. */
const TAKEOVER_STEP = 16
/** Names of what is begun beside the batches: slots written anew, and slots that the chain left. The latest state of accounts outlives the first. */
const REWRITE = ''
const REWIND = 'rewind'
const BY_SLOT = TABLES.filter(({ name }) => name !== 'accounts')

/**
 * The writer of the operator's ClickHouse. There are no transactions, so the order does it: what is about to be written is noted, then the rows
 * go in, then they are called complete. What an interrupted batch left is either completed by the same batch, or deleted before anything else.
 * One writer at a time.
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
  const insertIds = `sluice-ingest-${options.database}-`
  let inserts = 0
  await settled()
  let state = await readClickHouseState(link, base)
  // A row that an earlier process still had on its way would have a lower version than any of ours.
  await save({ version: state.version + TAKEOVER_STEP })

  /** What an earlier process or a broken connection left running at the server would write after what we delete. */
  async function settled(): Promise<void> {
    const running = `SELECT count() FROM system.processes WHERE startsWith(query_id, '${insertIds}')`
    await waitFor(async () => Number((await link.rows(running))[0]?.[0]) === 0, 'another writer is at work')
  }

  async function waitFor(holds: () => Promise<boolean>, otherwise: string): Promise<void> {
    for (let waitedMs = 0; waitedMs < WAIT_MS; waitedMs += LOOK_MS) {
      if (await holds()) return
      await time.wait(LOOK_MS)
    }
    throw new Error(`${options.database}: ${otherwise}, for more than ${WAIT_MS} ms`)
  }

  async function save(change: Partial<ClickHouseState>): Promise<void> {
    const next = { ...state, version: state.version + 1, ...change }
    await saveClickHouseState(link, base, next, time.nowMs())
    state = next
  }

  /** Takes rows away, whoever wrote them. Inserts after it have tokens that the server has not seen. */
  async function deleteSlots(where: string, tables: readonly Table[]): Promise<void> {
    for (const { name } of tables) {
      // The old server keeps no count of what a mutation would find; asking first spares it one for each batch.
      const [found] = await link.rows(`SELECT count() FROM ${base}.${name} WHERE ${where}`)
      if (Number(found?.[0]) === 0) continue
      if (dialect === 'current')
        await link.run(`ALTER TABLE ${base}.${name} DELETE WHERE ${where}`, { mutations_sync: '2' })
      else await deleteAndWait(name, where)
    }
  }

  async function deleteAndWait(name: string, where: string): Promise<void> {
    await link.run(`ALTER TABLE ${base}.${name} DELETE WHERE ${where}`)
    const left = `SELECT count() FROM system.mutations WHERE database = '${base}' AND table = '${name}' AND NOT is_done`
    await waitFor(async () => Number((await link.rows(left))[0]?.[0]) === 0, `deleting from ${name} is not done`)
  }

  /** What was begun and never finished is taken back; the same batch may go on where it was. */
  async function clearIntent(unless?: string): Promise<void> {
    const { intent } = state
    if (intent === undefined || intent.name === unless) return
    await settled()
    await deleteSlots(within(intent.range), intent.name === REWRITE ? BY_SLOT : TABLES)
    await save({ intent: undefined, generation: state.generation + 1 })
  }

  async function write(batch: WriteBatch): Promise<void> {
    // What failed may have taken effect: the server knows better than this memory.
    state = await readClickHouseState(link, base)
    const { name, range } = batch
    if (state.lastBatch === name && state.intent === undefined) return
    await clearIntent(name)
    if (overlaps(state.ranges, range)) {
      await save({ ranges: withoutRange(state.ranges, range), intent: { name: REWRITE, range } })
      await clearIntent()
    }
    await save({ intent: { name, range } })
    for (const table of TABLES) await insert(table, [...rowsIn(batch.rows, table.name)], range)
    await save({
      intent: undefined,
      ranges: addRange(state.ranges, range),
      lastBatch: name,
      finalizedSlot: Math.max(state.finalizedSlot, batch.finalizedSlot),
      tipSlot: Math.max(state.tipSlot, batch.tipSlot),
    })
  }

  async function insert(table: Table, rows: readonly Row[], { from, to }: SlotRange): Promise<void> {
    const target = `INSERT INTO ${base}.${table.name} FORMAT JSONEachRow`
    for (let at = 0; at < rows.length; at += ROWS_PER_INSERT) {
      const piece = rows.slice(at, at + ROWS_PER_INSERT)
      const parts = piece.map((row) => fields(table, row, dialect))
      const content = createHash('sha256')
      for (const part of parts) content.update(part)
      const token = `${table.name}:${from}-${to}:${state.generation}:${at}:${content.digest('hex')}`
      const lines = parts.map((part) => `${part}"_version":${state.version}}\n`).join('')
      await link.insert(target, lines, {
        query_id: `${insertIds}${time.nowMs()}-${++inserts}`,
        // Read by one thread, the same piece is always cut into the same blocks, which the token is applied to.
        ...(dialect === 'current'
          ? { insert_deduplication_token: token, async_insert: '0', input_format_parallel_parsing: '0' }
          : {}),
      })
    }
  }

  async function rewind(fromSlot: number): Promise<void> {
    state = await readClickHouseState(link, base)
    await clearIntent()
    const range = { from: fromSlot, to: Math.max(fromSlot, state.ranges.at(-1)?.to ?? 0) }
    // Called incomplete first: coverage may be behind the rows, never ahead.
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

  /** Live blocks and a backfill take turns. */
  let turn: Promise<unknown> = Promise.resolve()
  function inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    const done = turn.then(work, work)
    turn = done.catch(() => {})
    return done
  }

  const opened = opening.move()
  return {
    progress: () => inTurn(progress),
    write: (batch) => inTurn(() => write(batch)),
    rewind: (fromSlot) => inTurn(() => rewind(fromSlot)),
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

function within({ from, to }: SlotRange): string {
  return `slot >= ${from} AND slot <= ${to}`
}

/** The beginning of a row of JSONEachRow; `_version` follows. Large integers go as text, which the server reads as what the column is. */
function fields({ columns }: Table, row: Row, dialect: ClickHouseDialect): string {
  let text = '{'
  columns.forEach(({ name }, at) => {
    const value = row[at]
    if (typeof value === 'bigint') text += `"${name}":"${value}",`
    else if (typeof value === 'boolean' && dialect === 'plain') text += `"${name}":${value ? 1 : 0},`
    else text += `"${name}":${JSON.stringify(value)},`
  })
  return text
}
