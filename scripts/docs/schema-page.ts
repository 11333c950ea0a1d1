import { COVERAGE_COLUMNS } from '../../src/indexer/duckdb/ddl.ts'
import { CLICKHOUSE_TYPES } from '../../src/indexer/query/catalogue.ts'
import { QUERY_PACK } from '../../src/indexer/query/pack.ts'
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
    '## Questions',
    'These run on both engines and give the same rows; a test asks them of both over the same blocks. Values in braces are parameters, given as `param_NAME`. Tables are named without a database.',
    ...QUERY_PACK.flatMap(({ question, sql }) => [`**${question}**`, `\`\`\`sql\n${sql}\n\`\`\``]),
    '## Where the engines differ',
    'Both accept these and answer otherwise: `sum` or `max` over no rows (NULL on the embedded engine, 0 on ClickHouse), an index outside of an array (NULL, or the default of the type), `uniq` (an estimate on both, and not the same one).',
    'The embedded engine refuses LIMIT BY, WITH TOTALS, ARRAY JOIN as a clause, SAMPLE, lambdas and recursion, and says so. On old servers (before 25.8) there are no parameters, no `LowCardinality` in the types, and errors have no names.',
    'Before ClickHouse a statement is read by a grammar of the gateway, which refuses by name what it does not know. A name that is a keyword stands in quotes (`"final"`); common tables are known where they are in sight; not supported are `FROM … SELECT`, `WITH RECURSIVE`, `WITH FILL FROM`, `EXTRACT(… FROM …)`, `DISTINCT ON`, `APPLY`, expressions after LIMIT, and names with their table inside of `IN ( )`. On both engines a statement has at most 262,144 characters (`statement_length`), 20,000 tokens (`statement_tokens`) and 100 levels of nesting (`statement_nesting`).',
    '## What was not tested',
    'For want of a current ClickHouse server: what accounts, roles, profiles and quotas do there at run time, deletes of current servers, clusters and replicated tables. The wire, ingest, kills, aborts and limits are tested with the server of Debian (18.16), tables, views and the writer with ClickHouse 26.5 from npm, which is no server, and what only current servers send with a made-up one. `accounts` holds what came with the stream: after a gap that was filled by getBlock, an account that changed only there keeps its older row until it changes again.',
  ].join('\n\n')}\n`
}
