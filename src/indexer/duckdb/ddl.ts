import { type Column, type ColumnType, TABLES, type Table } from '../schema.ts'

/** Schema of the data file that holds the tables themselves; customers see views of them in catalogues of their plans. */
export const BASE_SCHEMA = 'base'

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

/** What a new data file is given, and an old one is left with. No index but the keys of the small tables: data comes in slot order. */
export function duckDdl(): readonly string[] {
  return [
    `CREATE SCHEMA IF NOT EXISTS ${BASE_SCHEMA}`,
    ...TABLES.map((table) => createTable(table)),
    `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}._ranges (from_slot UBIGINT NOT NULL, to_slot UBIGINT NOT NULL)`,
    `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}._faults (slot UBIGINT PRIMARY KEY, reason VARCHAR NOT NULL, since TIMESTAMP_S NOT NULL)`,
    // One row. `last_batch` tells after a failed COMMIT whether it took effect.
    `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}._progress (
       id UTINYINT PRIMARY KEY, last_batch VARCHAR NOT NULL, finalized_slot UBIGINT NOT NULL,
       tip_slot UBIGINT NOT NULL, written_at TIMESTAMP_S NOT NULL)`,
    coverageView(),
  ]
}

function createTable({ name, columns }: Table): string {
  return `CREATE TABLE IF NOT EXISTS ${BASE_SCHEMA}.${name} (${columns.map(column).join(', ')})`
}

function column({ name, type }: Column): string {
  return `${name} ${TYPES[type]} NOT NULL`
}

/** The columns of `coverage`, for the catalogue that customers see. */
export const COVERAGE_COLUMNS: readonly Column[] = [
  { name: 'table_name', type: 'word', help: 'the table' },
  { name: 'from_slot', type: 'u64', help: 'first slot of the newest stretch without a gap' },
  { name: 'to_slot', type: 'u64', help: 'last slot of it: everything up to here is in the table' },
  { name: 'from_time', type: 'time', help: 'time of the first block of that stretch' },
  { name: 'to_time', type: 'time', help: 'time of its last block' },
  { name: 'tip_slot', type: 'u64', help: 'newest slot the node has told of' },
  { name: 'lag_slots', type: 'u64', help: 'how far `to_slot` is behind it' },
  { name: 'lag_seconds', type: 'i64', help: 'age of the last block' },
  { name: 'open_gaps', type: 'u64', help: 'stretches missing between what is older and this one' },
  { name: 'retention_slots', type: 'u64', help: 'how many slots are kept; 0 for all' },
  { name: 'decoder_version', type: 'u32', help: 'raised when the meaning of a column changes' },
]

/** Raised when a column means something else than before. */
export const DECODER_VERSION = 1

/** What is complete, told by the same transaction that made it so. */
function coverageView(): string {
  const names = TABLES.map(({ name }) => `('${name}')`).join(', ')
  return `CREATE OR REPLACE VIEW ${BASE_SCHEMA}.coverage AS
    WITH newest AS (SELECT from_slot, to_slot FROM ${BASE_SCHEMA}._ranges ORDER BY from_slot DESC LIMIT 1),
    edges AS (
      SELECT n.from_slot, n.to_slot,
        (SELECT min(b.block_time) FROM ${BASE_SCHEMA}.blocks b WHERE b.slot >= n.from_slot AND b.block_time > TIMESTAMP_S '1970-01-01 00:00:00') AS from_time,
        (SELECT max(b.block_time) FROM ${BASE_SCHEMA}.blocks b WHERE b.slot <= n.to_slot) AS to_time
      FROM newest n)
    SELECT t.name AS table_name, e.from_slot, e.to_slot, e.from_time, e.to_time,
      greatest(p.tip_slot, e.to_slot) AS tip_slot,
      greatest(p.tip_slot, e.to_slot) - e.to_slot AS lag_slots,
      greatest(0, epoch(now())::BIGINT - epoch(e.to_time)::BIGINT) AS lag_seconds,
      ((SELECT count(*) FROM ${BASE_SCHEMA}._ranges) - 1)::UBIGINT AS open_gaps,
      0::UBIGINT AS retention_slots, ${DECODER_VERSION}::UINTEGER AS decoder_version
    FROM edges e, ${BASE_SCHEMA}._progress p, (VALUES ${names}) t(name)`
}
