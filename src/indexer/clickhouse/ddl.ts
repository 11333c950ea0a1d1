import {
  CLICKHOUSE_TYPES,
  COVERAGE,
  type Column,
  type ColumnType,
  DECODER_VERSION,
  PUBLISHED_NAMES,
  TABLES,
  type Table,
} from '../schema.ts'
import { ACCOUNT_UPDATES, accountsSelect, type StoredTable } from './account-updates.ts'

/**
 * Features of the server. `current` is a maintained release; `legacy` uses what servers since 2018 support: no codecs, no skipping indexes and no
 * insert deduplication, so duplicate rows of a repeated batch are removed when they are read.
 */
export type ClickHouseDialect = 'current' | 'legacy'

/** The oldest release that is maintained upstream; it has everything that `current` needs. */
const CURRENT_SINCE = [25, 8] as const

export function dialectOf(version: string): ClickHouseDialect {
  const [major = 0, minor = 0] = version.split('.').map(Number)
  const [sinceMajor, sinceMinor] = CURRENT_SINCE
  return major > sinceMajor || (major === sinceMajor && minor >= sinceMinor) ? 'current' : 'legacy'
}

/** Database of the tables; customers see views of them in another database. */
export function baseDatabase(database: string): string {
  return `${database}_base`
}

/** One epoch, about two days. Retention drops partitions; smaller ones make too many parts. */
const SLOTS_PER_PARTITION = 432_000
/** Insert tokens that a table remembers; a batch is repeated at once or within a few batches. */
const TOKENS_KEPT = 1000
/** Slots from each end of a range that are searched for the first and last block time. */
const EDGE_SLOTS = 10_000

const LEGACY_TYPES: Readonly<Record<ColumnType, string>> = {
  ...CLICKHOUSE_TYPES,
  bool: 'UInt8',
  time: 'DateTime',
  word: 'String',
  words: 'Array(String)',
}

function clickHouseType(type: ColumnType, dialect: ClickHouseDialect): string {
  return dialect === 'current' ? CLICKHOUSE_TYPES[type] : LEGACY_TYPES[type]
}

/** Creates the tables that are missing. */
export function tableDdl(database: string, dialect: ClickHouseDialect): readonly string[] {
  const base = baseDatabase(database)
  const window = dialect === 'current' ? ` SETTINGS non_replicated_deduplication_window = ${TOKENS_KEPT}` : ''
  return [
    `CREATE DATABASE IF NOT EXISTS ${base}`,
    ...[...TABLES, ACCOUNT_UPDATES].map((table) => createTable(table, base, dialect) + window),
    // Each row is the complete state, so one insert changes it atomically; the row with the highest version is valid.
    `CREATE TABLE IF NOT EXISTS ${base}._progress (
       id UInt8, version UInt64, last_batch String, finalized_slot UInt64, tip_slot UInt64, written_at DateTime,
       from_slots Array(UInt64), to_slots Array(UInt64),
       generation UInt64, intent String, intent_from UInt64, intent_to UInt64
     ) ENGINE = ReplacingMergeTree(version) ORDER BY id`,
  ]
}

/** The views that customers see, in their own database. They are replaced at each start where the server supports that. */
export function viewDdl(
  database: string,
  views: string,
  dialect: ClickHouseDialect,
  tables: readonly string[] = [...PUBLISHED_NAMES],
): readonly string[] {
  const base = baseDatabase(database)
  const statements = [`CREATE DATABASE IF NOT EXISTS ${views}`]
  for (const table of [...TABLES, COVERAGE]) {
    if (!tables.includes(table.name)) continue
    const select =
      table.name === 'coverage' ? coverageSelect(base, dialect) : tableSelect(table as Table, base, dialect)
    const name = `${views}.${table.name}`
    // On an old server the view of an earlier release would lack the newest states.
    if (table.name === 'accounts' && dialect === 'legacy') statements.push(`DROP TABLE IF EXISTS ${name}`)
    statements.push(createView(name, select, dialect))
  }
  return statements
}

/** A view that a customer may read without rights on what it reads. Old servers cannot replace one. */
export function createView(name: string, select: string, dialect: ClickHouseDialect): string {
  return dialect === 'current'
    ? `CREATE OR REPLACE VIEW ${name} DEFINER = CURRENT_USER SQL SECURITY DEFINER AS ${select}`
    : `CREATE VIEW IF NOT EXISTS ${name} AS ${select}`
}

function createTable(
  { name, columns, key, slotsPerPartition = SLOTS_PER_PARTITION }: StoredTable,
  base: string,
  dialect: ClickHouseDialect,
): string {
  const parts = columns.map((column) => columnDdl(column, dialect))
  parts.push('_version UInt64')
  if (dialect === 'current') {
    for (const column of columns.filter(({ isLookedUp }) => isLookedUp))
      parts.push(`INDEX by_${column.name} ${column.name} TYPE bloom_filter(0.01) GRANULARITY 4`)
  }
  // The latest state of an account replaces older ones of any epoch, so accounts are not partitioned.
  const partition = key.includes('slot') ? ` PARTITION BY intDiv(slot, ${slotsPerPartition})` : ''
  return `CREATE TABLE IF NOT EXISTS ${base}.${name} (${parts.join(', ')})
    ENGINE = ReplacingMergeTree(_version)${partition} ORDER BY (${key.join(', ')})`
}

function columnDdl({ name, type, codec }: Column, dialect: ClickHouseDialect): string {
  const base = `${name} ${clickHouseType(type, dialect)}`
  if (dialect === 'legacy') return base
  if (codec === 'rising') return `${base} CODEC(DoubleDelta, ZSTD(1))`
  if (codec === 'amount') return `${base} CODEC(T64, ZSTD(1))`
  return type === 'text' || type === 'texts' ? `${base} CODEC(ZSTD(1))` : base
}

/** An expression in the type that is published for its column. */
function lowCardinality(sql: string, dialect: ClickHouseDialect): string {
  return dialect === 'current' ? `toLowCardinality(${sql})` : sql
}

/** FINAL merges rows with the same key. The commitment of a block is computed from the progress, so that no row is rewritten. */
function tableSelect({ name, columns, key }: Table, base: string, dialect: ClickHouseDialect): string {
  if (name === 'accounts') return accountsSelect(base)
  const list = columns.map((column) =>
    name === 'blocks' && column.name === 'commitment'
      ? `${lowCardinality(`if(slot <= (SELECT max(finalized_slot) FROM ${base}._progress), 'finalized', commitment)`, dialect)} AS commitment`
      : column.name,
  )
  const isPartitioned = dialect === 'current' && key.includes('slot')
  const settings = isPartitioned ? ' SETTINGS do_not_merge_across_partitions_select_final = 1' : ''
  return `SELECT ${list.join(', ')} FROM ${base}.${name} FINAL${settings}`
}

/** From the row with the highest version. (Old servers fail on ORDER BY with LIMIT inside a view.) */
function latest(base: string, value: string): string {
  return `SELECT argMax(${value}, version) FROM ${base}._progress`
}

/** The progress is written after the rows that it covers, so it may be behind them and is never ahead. */
function coverageSelect(base: string, dialect: ClickHouseDialect): string {
  const time = (pick: 'min' | 'max', from: string, to: string): string =>
    `(SELECT ${pick}(block_time) FROM ${base}.blocks WHERE slot >= (${latest(base, from)}) AND slot <= (${latest(base, to)})${
      pick === 'min' ? ' AND toUInt32(block_time) > 0' : ''
    })`
  const from = 'from_slots[length(from_slots)]'
  const to = 'to_slots[length(to_slots)]'
  const values: Readonly<Record<string, string>> = {
    table_name: lowCardinality(`arrayJoin([${TABLES.map(({ name }) => `'${name}'`).join(', ')}])`, dialect),
    from_slot: from,
    to_slot: to,
    from_time: time('min', from, `${from} + ${EDGE_SLOTS}`),
    to_time: time('max', `${to} - least(${to}, ${EDGE_SLOTS})`, to),
    tip_slot: `greatest(tip_slot_reported, ${to})`,
    lag_slots: `greatest(tip_slot_reported, ${to}) - ${to}`,
    lag_seconds: `greatest(toInt64(0), toInt64(toUInt32(now())) - toInt64(toUInt32(${time('max', `${to} - least(${to}, ${EDGE_SLOTS})`, to)})))`,
    open_gaps: 'length(from_slots) - 1',
    retention_slots: '0',
    decoder_version: String(DECODER_VERSION),
    finalized_slot: `least(finalized_slot_reported, ${to})`,
    missing_slots: `arrayMap((first, before) -> concat(toString(before + 1), '-', toString(first - 1)), arrayPopFront(from_slots), arrayPopBack(to_slots))`,
  }
  const list = COVERAGE.columns.map(({ name, type }) => {
    const value = values[name] as string
    return type === 'u64' || type === 'u32' || type === 'i64'
      ? `to${clickHouseType(type, dialect)}(${value}) AS ${name}`
      : `${value} AS ${name}`
  })
  return `SELECT ${list.join(', ')} FROM (SELECT argMax(from_slots, version) AS from_slots, argMax(to_slots, version) AS to_slots,
    argMax(tip_slot, version) AS tip_slot_reported, argMax(finalized_slot, version) AS finalized_slot_reported FROM ${base}._progress) WHERE length(from_slots) > 0`
}
