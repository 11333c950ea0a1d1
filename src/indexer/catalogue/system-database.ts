import { OFFERED_FUNCTIONS, OFFERED_TABLE_FUNCTIONS } from '../dialect/function-list.ts'
import { FORMAT_NAMES } from '../formats/formats.ts'
import { CLICKHOUSE_TYPES, DATABASE, PUBLISHED, TABLES } from '../schema.ts'
import { SETTINGS } from '../session/setting-list.ts'
import { type CatalogueTable, type CatalogueValue, catalogueTable, type ListedTable } from './catalogue-table.ts'
import { CONNECTION_FUNCTIONS } from './connection-functions.ts'
import { createStatementOf } from './create-statement.ts'
import { DATA_TYPES } from './data-types.ts'

/** Rows of `system.numbers`: as many as a result may have. */
export const NUMBERS_MAX = 100_000_000

/** Database of every table, with what it is for. */
const DATABASES: readonly (readonly [name: string, comment: string])[] = [
  ['INFORMATION_SCHEMA', 'the same as information_schema'],
  ['information_schema', 'the tables and columns, in the form of the SQL standard'],
  [DATABASE, 'tables of the chain'],
  ['system', 'what this interface offers'],
]

export const DATABASE_NAMES: readonly string[] = DATABASES.map(([name]) => name)

const KEYS = new Map<string, readonly string[]>(TABLES.map(({ name, key }) => [name, key]))

/** The tables of `system` that describe nothing but the interface itself. */
const PLAIN: readonly CatalogueTable[] = [
  catalogueTable('system', 'one', 'one row', { dummy: 'UInt8' }, [{ dummy: 0 }]),
  catalogueTable('system', 'numbers', `the numbers from 0, ${NUMBERS_MAX} of them`, { number: 'UInt64' }, undefined),
  catalogueTable(
    'system',
    'databases',
    'databases',
    {
      name: 'String',
      engine: 'String',
      data_path: 'String',
      metadata_path: 'String',
      uuid: 'UUID',
      engine_full: 'String',
      comment: 'String',
      database: 'String',
    },
    DATABASES.map(([name, comment]) => ({ name, database: name, engine: 'Memory', engine_full: 'Memory', comment })),
  ),
  catalogueTable(
    'system',
    'functions',
    'functions that a statement may call',
    {
      name: 'String',
      is_aggregate: 'UInt8',
      is_deterministic: 'UInt8',
      case_insensitive: 'UInt8',
      alias_to: 'String',
      create_query: 'String',
      origin: 'String',
      description: 'String',
      syntax: 'String',
      arguments: 'String',
      parameters: 'String',
      returned_value: 'String',
      examples: 'String',
      introduced_in: 'String',
      categories: 'String',
    },
    [{ functions: CONNECTION_FUNCTIONS, isAggregate: false }, ...OFFERED_FUNCTIONS]
      .flatMap(({ functions, isAggregate }) => functions.map((name) => ({ name, isAggregate })))
      .toSorted((a, b) => (a.name < b.name ? -1 : 1))
      .map(({ name, isAggregate }) => ({
        name,
        is_aggregate: isAggregate === true ? 1 : 0,
        is_deterministic: 1,
        origin: 'System',
      })),
  ),
  catalogueTable(
    'system',
    'table_functions',
    'functions that a statement may call in FROM',
    { name: 'String', description: 'String' },
    OFFERED_TABLE_FUNCTIONS.map((name) => ({ name, description: '' })),
  ),
  catalogueTable(
    'system',
    'settings',
    'settings that a client may give',
    {
      name: 'String',
      value: 'String',
      changed: 'UInt8',
      description: 'String',
      min: 'Nullable(String)',
      max: 'Nullable(String)',
      readonly: 'UInt8',
      type: 'String',
      default: 'String',
      alias_for: 'String',
      is_obsolete: 'UInt8',
      tier: 'String',
    },
    SETTINGS.map(({ name, type, value, help, effect }) => ({
      name,
      value,
      default: value,
      type,
      tier: 'Production',
      description: effect === 'without effect' ? `accepted without effect: ${help}` : help,
      readonly: name === 'readonly' ? 1 : 0,
    })),
  ),
  catalogueTable(
    'system',
    'formats',
    'formats of results',
    {
      name: 'String',
      is_input: 'UInt8',
      is_output: 'UInt8',
      supports_parallel_parsing: 'UInt8',
      supports_parallel_formatting: 'UInt8',
      is_tty_friendly: 'UInt8',
      content_type: 'String',
    },
    FORMAT_NAMES.map((name) => ({ name, is_output: 1 })),
  ),
  catalogueTable(
    'system',
    'data_type_families',
    'types of columns and parameters',
    { name: 'String', case_insensitive: 'UInt8', alias_to: 'String' },
    DATA_TYPES.map((type) => ({ ...type })),
  ),
  catalogueTable('system', 'table_engines', 'engines of tables', { name: 'String' }, [{ name: 'View' }]),
  catalogueTable(
    'system',
    'dictionaries',
    'there are none',
    { database: 'String', name: 'String', status: 'String', comment: 'String' },
    [],
  ),
]

export const PUBLISHED_TABLES: readonly ListedTable[] = PUBLISHED.map(({ name, help, columns }) => ({
  database: DATABASE,
  name,
  help,
  key: KEYS.get(name) ?? [],
  columns: columns.map((column) => ({ name: column.name, type: CLICKHOUSE_TYPES[column.type], help: column.help })),
  isSystem: false,
}))

export function listedTable({ database, name, help, columns }: CatalogueTable): ListedTable {
  return { database, name, help, key: [], columns: columns.map((column) => ({ ...column, help: '' })), isSystem: true }
}

/** All tables of `system`; `others` are the other tables that it lists besides the published ones and its own. */
export function systemDatabase(others: readonly ListedTable[]): readonly CatalogueTable[] {
  const tables = describeTables([])
  const columns = describeColumns([])
  const own = [...PLAIN, tables, columns].map(listedTable)
  const listed = [...PUBLISHED_TABLES, ...own, ...others]
  return [...PLAIN, describeTables(listed), describeColumns(listed)]
}

function describeTables(listed: readonly ListedTable[]): CatalogueTable {
  return catalogueTable(
    'system',
    'tables',
    'tables of all databases',
    {
      database: 'String',
      name: 'String',
      uuid: 'UUID',
      engine: 'String',
      is_temporary: 'UInt8',
      data_paths: 'Array(String)',
      metadata_path: 'String',
      metadata_modification_time: "DateTime('UTC')",
      dependencies_database: 'Array(String)',
      dependencies_table: 'Array(String)',
      create_table_query: 'String',
      engine_full: 'String',
      as_select: 'String',
      partition_key: 'String',
      sorting_key: 'String',
      primary_key: 'String',
      sampling_key: 'String',
      storage_policy: 'String',
      total_rows: 'Nullable(UInt64)',
      total_bytes: 'Nullable(UInt64)',
      parts: 'Nullable(UInt64)',
      comment: 'String',
      has_own_data: 'UInt8',
      table: 'String',
    },
    listed.map((table) => ({
      database: table.database,
      name: table.name,
      table: table.name,
      engine: table.isSystem ? 'SystemView' : 'View',
      create_table_query: createStatementOf(table),
      sorting_key: table.key.join(', '),
      primary_key: table.key.join(', '),
      comment: table.help,
    })),
  )
}

function describeColumns(listed: readonly ListedTable[]): CatalogueTable {
  const rows = listed.flatMap((table) =>
    table.columns.map(({ name, type, help }, at): Readonly<Record<string, CatalogueValue>> => {
      const isKey = table.key.includes(name) ? 1 : 0
      return {
        database: table.database,
        table: table.name,
        name,
        type,
        position: at + 1,
        comment: help,
        is_in_sorting_key: isKey,
        is_in_primary_key: isKey,
        ...numericOf(type),
      }
    }),
  )
  return catalogueTable(
    'system',
    'columns',
    'columns of all tables',
    {
      database: 'String',
      table: 'String',
      name: 'String',
      type: 'String',
      position: 'UInt64',
      default_kind: 'String',
      default_expression: 'String',
      data_compressed_bytes: 'UInt64',
      data_uncompressed_bytes: 'UInt64',
      marks_bytes: 'UInt64',
      comment: 'String',
      is_in_partition_key: 'UInt8',
      is_in_sorting_key: 'UInt8',
      is_in_primary_key: 'UInt8',
      is_in_sampling_key: 'UInt8',
      compression_codec: 'String',
      character_octet_length: 'Nullable(UInt64)',
      numeric_precision: 'Nullable(UInt64)',
      numeric_precision_radix: 'Nullable(UInt64)',
      numeric_scale: 'Nullable(UInt64)',
      datetime_precision: 'Nullable(UInt64)',
    },
    rows,
  )
}

/** Bits of numbers, as ClickHouse lists them. */
export function numericOf(type: string): Readonly<Record<string, CatalogueValue>> {
  if (type === 'Bool') return { numeric_precision: 8, numeric_precision_radix: 2, numeric_scale: 0 }
  const bits = /^U?Int(\d+)$/.exec(type)?.[1]
  if (bits !== undefined) return { numeric_precision: Number(bits), numeric_precision_radix: 2, numeric_scale: 0 }
  return type.startsWith('DateTime') ? { datetime_precision: 0 } : {}
}
