import { COVERAGE_COLUMNS, DECODER_VERSION } from '../duckdb/ddl.ts'
import { CLICKHOUSE_TYPES } from '../query/catalogue.ts'
import { type Column, type ColumnType, TABLES, type Table } from '../schema.ts'

/**
 * What the server understands. `current` is a server of our time; `plain` says the same with the words that servers since 2018 know: without
 * packing, without lookup indexes and without the log of insert tokens, so that a batch written twice is made one when it is read.
 */
export type ClickHouseDialect = 'current' | 'plain'

/** The oldest line that is still cared for upstream; everything `current` needs is in it. */
const CURRENT_SINCE = [25, 8] as const

export function dialectOf(version: string): ClickHouseDialect {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [sinceMajor, sinceMinor] = CURRENT_SINCE
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor) ? 'current' : 'plain'
}

/** Database that holds the tables themselves; customers see views of them in another one. */
export function baseDatabase(database: string): string {
  return `${database}_base`
}

/** One epoch: about two days. Dropping a partition is retention; finer ones make too many parts. */
const SLOTS_PER_PARTITION = 432_000
/** Insert tokens that a table remembers; a batch is repeated at once or within a few batches. */
const TOKENS_KEPT = 1000
/** Near its ends a range is looked at for the first and last block time; further there would be a hole in the chain itself. */
const EDGE_SLOTS = 10_000

const PLAIN_TYPES: Readonly<Record<ColumnType, string>> = {
  ...CLICKHOUSE_TYPES,
  bool: 'UInt8',
  time: 'DateTime',
  word: 'String',
  words: 'Array(String)',
}

function clickHouseType(type: ColumnType, dialect: ClickHouseDialect): string {
  return dialect === 'current' ? CLICKHOUSE_TYPES[type] : PLAIN_TYPES[type]
}

/** The tables, made where they are missing. */
export function tableDdl(database: string, dialect: ClickHouseDialect): readonly string[] {
  const base = baseDatabase(database)
  const window = dialect === 'current' ? ` SETTINGS non_replicated_deduplication_window = ${TOKENS_KEPT}` : ''
  return [
    `CREATE DATABASE IF NOT EXISTS ${base}`,
    ...TABLES.map((table) => createTable(table, base, dialect) + window),
    // Each row is the whole state, so that one insert changes all of it at once; the one with the highest version holds.
    `CREATE TABLE IF NOT EXISTS ${base}._progress (
       id UInt8, version UInt64, last_batch String, finalized_slot UInt64, tip_slot UInt64, written_at DateTime,
       from_slots Array(UInt64), to_slots Array(UInt64),
       generation UInt64, intent String, intent_from UInt64, intent_to UInt64
     ) ENGINE = ReplacingMergeTree(version) ORDER BY id`,
  ]
}

/** What customers see, in a database of its own. Views hold no rows: where the server can replace one in place they are made anew at each start. */
export function viewDdl(
  database: string,
  views: string,
  dialect: ClickHouseDialect,
  tables: readonly string[] = [...TABLES.map(({ name }) => name), 'coverage'],
): readonly string[] {
  const base = baseDatabase(database)
  const statements = [`CREATE DATABASE IF NOT EXISTS ${views}`]
  for (const table of [...TABLES, { name: 'coverage' as const }]) {
    if (!tables.includes(table.name)) continue
    const select =
      table.name === 'coverage' ? coverageSelect(base, dialect) : tableSelect(table as Table, base, dialect)
    if (dialect === 'current')
      statements.push(
        `CREATE OR REPLACE VIEW ${views}.${table.name} DEFINER = CURRENT_USER SQL SECURITY DEFINER AS ${select}`,
      )
    else statements.push(`CREATE VIEW IF NOT EXISTS ${views}.${table.name} AS ${select}`)
  }
  return statements
}

function createTable({ name, columns, key }: Table, base: string, dialect: ClickHouseDialect): string {
  const parts = columns.map((column) => columnDdl(column, dialect))
  parts.push('_version UInt64')
  if (dialect === 'current') {
    for (const column of columns.filter(({ isLookedUp }) => isLookedUp))
      parts.push(`INDEX by_${column.name} ${column.name} TYPE bloom_filter(0.01) GRANULARITY 4`)
  }
  // The latest state of an account replaces older ones in whatever epoch they were written.
  const partition = key.includes('slot') ? ` PARTITION BY intDiv(slot, ${SLOTS_PER_PARTITION})` : ''
  return `CREATE TABLE IF NOT EXISTS ${base}.${name} (${parts.join(', ')})
    ENGINE = ReplacingMergeTree(_version)${partition} ORDER BY (${key.join(', ')})`
}

function columnDdl({ name, type, packing }: Column, dialect: ClickHouseDialect): string {
  const plain = `${name} ${clickHouseType(type, dialect)}`
  if (dialect === 'plain') return plain
  if (packing === 'rising') return `${plain} CODEC(DoubleDelta, ZSTD(1))`
  if (packing === 'amount') return `${plain} CODEC(T64, ZSTD(1))`
  return type === 'text' || type === 'texts' ? `${plain} CODEC(ZSTD(1))` : plain
}

/** Rows with the same key are one. A block is final when the progress says so: nothing is rewritten for it. */
function tableSelect({ name, columns, key }: Table, base: string, dialect: ClickHouseDialect): string {
  const list = columns.map((column) =>
    name === 'blocks' && column.name === 'commitment'
      ? `if(slot <= (SELECT max(finalized_slot) FROM ${base}._progress), 'finalized', commitment) AS commitment`
      : column.name,
  )
  const apart = dialect === 'current' && key.includes('slot')
  const settings = apart ? ' SETTINGS do_not_merge_across_partitions_select_final = 1' : ''
  return `SELECT ${list.join(', ')} FROM ${base}.${name} FINAL${settings}`
}

/** Of the row that holds. (ORDER BY with LIMIT would say the same, and old servers trip over it inside of a view.) */
function latest(base: string, what: string): string {
  return `SELECT argMax(${what}, version) FROM ${base}._progress`
}

/** What is complete: written after the rows it speaks of, so it can be behind them and never ahead. */
function coverageSelect(base: string, dialect: ClickHouseDialect): string {
  const time = (pick: 'min' | 'max', from: string, to: string): string =>
    `(SELECT ${pick}(block_time) FROM ${base}.blocks WHERE slot >= (${latest(base, from)}) AND slot <= (${latest(base, to)})${
      pick === 'min' ? ' AND toUInt32(block_time) > 0' : ''
    })`
  const from = 'from_slots[length(from_slots)]'
  const to = 'to_slots[length(to_slots)]'
  const given: Readonly<Record<string, string>> = {
    table_name: `arrayJoin([${TABLES.map(({ name }) => `'${name}'`).join(', ')}])`,
    from_slot: from,
    to_slot: to,
    from_time: time('min', from, `${from} + ${EDGE_SLOTS}`),
    to_time: time('max', `${to} - least(${to}, ${EDGE_SLOTS})`, to),
    tip_slot: `greatest(tip_slot_told, ${to})`,
    lag_slots: `greatest(tip_slot_told, ${to}) - ${to}`,
    lag_seconds: `greatest(toInt64(0), toInt64(toUInt32(now())) - toInt64(toUInt32(${time('max', `${to} - least(${to}, ${EDGE_SLOTS})`, to)})))`,
    open_gaps: 'length(from_slots) - 1',
    retention_slots: '0',
    decoder_version: String(DECODER_VERSION),
  }
  const list = COVERAGE_COLUMNS.map(({ name, type }) => {
    const value = given[name] as string
    return type === 'u64' || type === 'u32' || type === 'i64'
      ? `to${clickHouseType(type, dialect)}(${value}) AS ${name}`
      : `${value} AS ${name}`
  })
  return `SELECT ${list.join(', ')} FROM (SELECT argMax(from_slots, version) AS from_slots, argMax(to_slots, version) AS to_slots,
    argMax(tip_slot, version) AS tip_slot_told FROM ${base}._progress) WHERE length(from_slots) > 0`
}
