import { CLICKHOUSE_TYPES } from '../../src/indexer/catalogue.ts'
import { COVERAGE_COLUMNS } from '../../src/indexer/duck-ddl.ts'
import { TABLES } from '../../src/indexer/schema.ts'
import { GENERATED, table } from './markdown.ts'

/** The tables of the indexer, from the list that both engines' tables are made of. */
export function schemaPage(): string {
  const coverage = {
    name: 'coverage',
    help: 'What is complete, from where to where, and how far behind the chain. Written by the same transaction as the rows it speaks of.',
    key: ['table_name'],
    columns: COVERAGE_COLUMNS,
  }
  return `${[
    '# Tables of the indexer',
    GENERATED,
    'Database `solana`. Names, types and meaning are the same on the embedded engine and on ClickHouse. Base58 is the text people type; times are UTC; amounts are in the smallest unit. 64-bit numbers come quoted in the JSON formats unless `output_format_json_quote_64bit_integers=0` is given.',
    ...[...TABLES, coverage].flatMap(({ name, help, key, columns }) => [
      `## ${name}`,
      `${help} One row for each (${key.join(', ')}).`,
      table(
        ['column', 'type', 'meaning'],
        columns.map((column) => [`\`${column.name}\``, CLICKHOUSE_TYPES[column.type], column.help]),
      ),
    ]),
  ].join('\n\n')}\n`
}
