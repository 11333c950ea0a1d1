import { type Column, type ColumnType, DECODER_VERSION, TABLES, tableOf } from '../schema.ts'

/** Schema of the data file that holds the tables; customers see views of them. */
export const BASE_SCHEMA = 'base'
/** States of accounts before blocks that are not final. */
export const ACCOUNTS_BEFORE = '_accounts_before'
/** States of accounts that are not in the accounts table yet. */
export const ACCOUNTS_RECENT = '_accounts_recent'
/** One row for each account. */
const ACCOUNTS_NOW = '_accounts_now'

const TYPES: Readonly<Record<ColumnType, string>> = {
  u64: 'UBIGINT',
  u32: 'UINTEGER',
  u16: 'USMALLINT',
  u8: 'UTINYINT',
  i64: 'BIGINT',
  i16: 'SMALLINT',
  bool: 'BOOLEAN',
  time: 'TIMESTAMP_S',
  text: 'VARCHAR',
  word: 'VARCHAR',
  texts: 'VARCHAR[]',
  words: 'VARCHAR[]',
}

/** Creates what a data file lacks. There are no indexes but the keys of the small tables, because data comes in slot order. */
export function duckDdl(): readonly string[] {
  return [
    `CREATE SCHEMA IF NOT EXISTS ${BASE_SCHEMA}`,
    ...TABLES.map((table) => createTable(table)),
    createTable({
      name: ACCOUNTS_BEFORE,
      columns: [...tableOf('accounts').columns, { name: 'replaced_slot', type: 'u64', help: '' }],
    }),
    createTable({ name: ACCOUNTS_RECENT, columns: tableOf('accounts').columns }),
    accountsView(),
    `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}._ranges (from_slot UBIGINT NOT NULL, to_slot UBIGINT NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}._faults (slot UBIGINT PRIMARY KEY, reason VARCHAR NOT NULL, since TIMESTAMP_S NOT NULL)`,
    // One row. `last_batch` shows after a failed COMMIT whether it took effect.
    `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}._progress (
       id UTINYINT PRIMARY KEY, last_batch VARCHAR NOT NULL, finalized_slot UBIGINT NOT NULL,
       tip_slot UBIGINT NOT NULL, written_at TIMESTAMP_S NOT NULL)`,
    coverageView(),
  ]
}

function createTable({ name, columns }: { readonly name: string; readonly columns: readonly Column[] }): string {
  return `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}.${name} (${columns.map(column).join(', ')})`
}

/** Uncompressed: most queries of accounts compare every key with the recent ones, and reading them took more time than comparing. */
const ACCOUNT_KEY = tableOf('accounts').columns.find(({ name }) => name === 'pubkey')

function column(each: Column): string {
  return `${each.name} ${TYPES[each.type]}${each === ACCOUNT_KEY ? ' USING COMPRESSION uncompressed' : ''} NOT NULL`
}

/** The table or view from which customers read a table. */
export function sourceOf(table: string): string {
  return table === 'accounts' ? ACCOUNTS_NOW : table
}

/** NOT IN, because the engine runs NOT EXISTS with a hash table of the large side. */
function accountsView(): string {
  const columns = tableOf('accounts').columns.map(({ name }) => name)
  const [settled, recent] = [`${BASE_SCHEMA}.accounts`, `${BASE_SCHEMA}.${ACCOUNTS_RECENT}`]
  return `CREATE OR REPLACE VIEW ${BASE_SCHEMA}.${ACCOUNTS_NOW} AS
    SELECT ${columns.join(', ')} FROM ${recent}
    UNION ALL SELECT ${columns.join(', ')} FROM ${settled} WHERE pubkey NOT IN (SELECT pubkey FROM ${recent})`
}

/** Blocks at each end of the range whose times are read: an epoch, so that the view does not read all blocks. */
const EDGE_SLOTS = 432_000

/** Reads the ranges that the transaction of each batch writes together with its rows. */
function coverageView(): string {
  const names = TABLES.map(({ name }) => `('${name}')`).join(', ')
  return `CREATE OR REPLACE VIEW ${BASE_SCHEMA}.coverage AS
    WITH newest AS (SELECT from_slot, to_slot FROM ${BASE_SCHEMA}._ranges ORDER BY from_slot DESC LIMIT 1),
    gaps AS (SELECT lag(to_slot) OVER (ORDER BY from_slot) + 1 AS first_slot, from_slot - 1 AS last_slot FROM ${BASE_SCHEMA}._ranges),
    missing AS (
      SELECT coalesce(list(concat(first_slot, '-', last_slot) ORDER BY first_slot), []::VARCHAR[]) AS missing_slots
      FROM gaps WHERE first_slot IS NOT NULL),
    edges AS (
      SELECT n.from_slot, n.to_slot,
        (SELECT min(b.block_time) FROM ${BASE_SCHEMA}.blocks b WHERE b.slot BETWEEN n.from_slot AND n.from_slot + ${EDGE_SLOTS} AND b.block_time > TIMESTAMP_S '1970-01-01 00:00:00') AS from_time,
        (SELECT max(b.block_time) FROM ${BASE_SCHEMA}.blocks b WHERE b.slot BETWEEN n.to_slot - least(n.to_slot, ${EDGE_SLOTS}) AND n.to_slot) AS to_time
      FROM newest n)
    SELECT t.name AS table_name, e.from_slot, e.to_slot, e.from_time, e.to_time,
      greatest(p.tip_slot, e.to_slot) AS tip_slot,
      greatest(p.tip_slot, e.to_slot) - e.to_slot AS lag_slots,
      greatest(0, epoch(now())::BIGINT - epoch(e.to_time)::BIGINT) AS lag_seconds,
      ((SELECT count(*) FROM ${BASE_SCHEMA}._ranges) - 1)::UBIGINT AS open_gaps,
      0::UBIGINT AS retention_slots, ${DECODER_VERSION}::UINTEGER AS decoder_version,
      least(p.finalized_slot, e.to_slot) AS finalized_slot, m.missing_slots
    FROM edges e, missing m, ${BASE_SCHEMA}._progress p, (VALUES ${names}) t(name)`
}
