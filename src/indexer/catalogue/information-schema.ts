import {
  type CatalogueTable,
  type CatalogueType,
  type CatalogueValue,
  catalogueTable,
  type ListedTable,
} from './catalogue-table.ts'
import { DATABASE_NAMES, numericOf } from './system-database.ts'

type Columns = Readonly<Record<string, CatalogueType>>

const SCHEMATA: Columns = {
  catalog_name: 'String',
  schema_name: 'String',
  schema_owner: 'String',
  default_character_set_catalog: 'Nullable(String)',
  default_character_set_schema: 'Nullable(String)',
  default_character_set_name: 'Nullable(String)',
  sql_path: 'Nullable(String)',
}
const TABLES: Columns = {
  table_catalog: 'String',
  table_schema: 'String',
  table_name: 'String',
  table_type: 'String',
  table_rows: 'Nullable(UInt64)',
  data_length: 'Nullable(UInt64)',
  table_collation: 'Nullable(String)',
  table_comment: 'Nullable(String)',
}
const COLUMNS: Columns = {
  table_catalog: 'String',
  table_schema: 'String',
  table_name: 'String',
  column_name: 'String',
  ordinal_position: 'UInt64',
  column_default: 'String',
  is_nullable: 'String',
  data_type: 'String',
  character_maximum_length: 'Nullable(UInt64)',
  character_octet_length: 'Nullable(UInt64)',
  numeric_precision: 'Nullable(UInt64)',
  numeric_precision_radix: 'Nullable(UInt64)',
  numeric_scale: 'Nullable(UInt64)',
  datetime_precision: 'Nullable(UInt64)',
  column_comment: 'String',
  column_type: 'String',
}
const VIEWS: Columns = {
  table_catalog: 'String',
  table_schema: 'String',
  table_name: 'String',
  view_definition: 'String',
  check_option: 'String',
  is_updatable: 'String',
}
const KEY_COLUMN_USAGE: Columns = {
  constraint_catalog: 'String',
  constraint_schema: 'String',
  constraint_name: 'String',
  table_catalog: 'String',
  table_schema: 'String',
  table_name: 'String',
  column_name: 'String',
  ordinal_position: 'UInt64',
  position_in_unique_constraint: 'Nullable(UInt64)',
  referenced_table_schema: 'Nullable(String)',
  referenced_table_name: 'Nullable(String)',
  referenced_column_name: 'Nullable(String)',
}

/** `information_schema` without rows: what `system.columns` lists about it. */
export const INFORMATION_SCHEMA_SHAPE: readonly CatalogueTable[] = informationSchema([])

/** The tables of `information_schema` about the listed tables. */
export function informationSchema(listed: readonly ListedTable[]): readonly CatalogueTable[] {
  const named = ({ database, name }: ListedTable): Readonly<Record<string, CatalogueValue>> => ({
    table_catalog: database,
    table_schema: database,
    table_name: name,
  })
  const of = (
    name: string,
    help: string,
    columns: Columns,
    rows: readonly Readonly<Record<string, CatalogueValue>>[],
  ) => catalogueTable('information_schema', name, help, columns, rows)
  return [
    of(
      'schemata',
      'databases',
      SCHEMATA,
      DATABASE_NAMES.map((name) => ({ catalog_name: name, schema_name: name, schema_owner: 'default' })),
    ),
    of(
      'tables',
      'tables of all databases',
      TABLES,
      listed.map((table) => ({
        ...named(table),
        table_type: table.isSystem ? 'SYSTEM VIEW' : 'VIEW',
        table_comment: table.help,
      })),
    ),
    of(
      'columns',
      'columns of all tables',
      COLUMNS,
      listed.flatMap((table) =>
        table.columns.map(({ name, type, help }, at) => ({
          ...named(table),
          column_name: name,
          ordinal_position: at + 1,
          is_nullable: type.startsWith('Nullable(') ? 'YES' : 'NO',
          data_type: type,
          column_type: type,
          column_comment: help,
          ...numericOf(type),
        })),
      ),
    ),
    of(
      'views',
      'views of all databases',
      VIEWS,
      listed.map((table) => ({ ...named(table), check_option: 'NONE', is_updatable: 'NO' })),
    ),
    of(
      'key_column_usage',
      'columns of primary keys',
      KEY_COLUMN_USAGE,
      listed.flatMap((table) =>
        table.key.map((column, at) => ({
          ...named(table),
          constraint_catalog: table.database,
          constraint_schema: table.database,
          constraint_name: 'PRIMARY',
          column_name: column,
          ordinal_position: at + 1,
        })),
      ),
    ),
    of(
      'referential_constraints',
      'there are none',
      { constraint_schema: 'String', constraint_name: 'String', table_name: 'String' },
      [],
    ),
  ]
}
