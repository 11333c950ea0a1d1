import { DIALECT_DIFFERENCES } from '../../src/indexer/dialect/differences.ts'
import { OFFERED_FUNCTIONS, OFFERED_TABLE_FUNCTIONS } from '../../src/indexer/dialect/function-list.ts'
import { TYPE_NAMES } from '../../src/indexer/dialect/parse-type.ts'
import { EXAMPLE_QUERIES } from '../../src/indexer/example-queries.ts'
import { CLICKHOUSE_TYPES, COVERAGE, TABLES } from '../../src/indexer/schema.ts'
import { interfaceSections } from './interface-sections.ts'
import { GENERATED, table } from './markdown.ts'

/** The tables of the indexer, from the definition that both engines use. */
export function schemaPage(): string {
  const coverage = {
    ...COVERAGE,
    help: `${COVERAGE.help} Written by the same transaction as the rows that it covers.`,
    key: ['table_name'],
  }
  return `${[
    '# Tables of the indexer',
    GENERATED,
    'Database `solana`. Names, types and meaning are the same on the embedded engine and on ClickHouse. Keys and signatures are base58 text; times are UTC; amounts are in the smallest unit. 64-bit numbers come quoted in the JSON formats unless `output_format_json_quote_64bit_integers=0` is given.',
    ...[...TABLES, coverage].flatMap(({ name, help, key, columns }) => [
      `## ${name}`,
      `${help} One row for each (${key.join(', ')}).`,
      table(
        ['column', 'type', 'meaning'],
        columns.map((column) => [`\`${column.name}\``, CLICKHOUSE_TYPES[column.type], column.help]),
      ),
    ]),
    ...interfaceSections(),
    '## Questions',
    'These run on both engines and return the same rows; a test runs them on both with the same blocks. Values in braces are parameters, passed as `param_NAME`. Write table names without a database.',
    ...EXAMPLE_QUERIES.flatMap(({ question, sql }) => [`**${question}**`, `\`\`\`sql\n${sql}\n\`\`\``]),
    '## What the embedded engine offers',
    'Statements are SELECT of ClickHouse: WITH for queries and for expressions, DISTINCT and DISTINCT ON, `*` and COLUMNS with EXCEPT, REPLACE and APPLY, PREWHERE, WHERE, GROUP BY with ALL, ROLLUP, CUBE, GROUPING SETS and WITH TOTALS, HAVING, WINDOW, QUALIFY, ORDER BY with ALL and WITH FILL of one column, LIMIT BY, LIMIT with OFFSET and WITH TIES, UNION, EXCEPT and INTERSECT, ARRAY JOIN and LEFT ARRAY JOIN, INNER, LEFT, RIGHT, FULL and CROSS JOIN with ALL, ANY, SEMI, ANTI, ASOF and GLOBAL, lambdas, and parameters, `{name:Identifier}` for tables included. Everything else is refused with its name and position. Names of functions may be written in any case. Aggregates take the endings `If`, `OrNull`, `OrDefault` and `Distinct`; those of `arrayReduce` take `Array`, too. A subquery of an expression may use columns of the SELECT around it. With one join a name that both tables have is the column of the left one.',
    ...OFFERED_FUNCTIONS.flatMap(({ name, functions }) => [
      `**${name}**: ${functions.map((each) => `\`${each}\``).join(', ')}`,
    ]),
    `**Table functions**: ${OFFERED_TABLE_FUNCTIONS.map((each) => `\`${each}\``).join(', ')}`,
    `**Types**: ${TYPE_NAMES.map((each) => `\`${each}\``).join(', ')}`,
    'Limits: 1,000 characters of a padded text (`pad_length`), 1,000 characters of a random text (`random_length`), 1,000 rows of `values` (`values_rows`), 100,000 elements of a list made from a number (`list_length`), 100,000 rows of WITH FILL (`fill_rows`), 5 levels of lambdas (`lambda_nesting`), 100 characters of a pattern of times (`pattern_length`), 20,000 parts of the expressions before BETWEEN (`between_parts`), 1,048,576 characters (`translation_length`, for constants and names each use counted) and 20,000 steps (`translation_steps`) of the translated statement, and the nesting of aliases that stand for each other (`translation_nesting`); 250 levels and 10,000 parts, and 100,000 levels of all parts together beyond the first 25 of each (`depth_sum`).',
    '## Where the engines differ',
    'A test runs 755 statements on the embedded engine and on ClickHouse 26.5 over the same blocks and compares rows and types. These differ:',
    DIALECT_DIFFERENCES.map(({ text }) => `- ${text}`).join('\n'),
    "With ClickHouse, a parameter is at most as long as the server's `http_max_field_value_size`, 128 KiB unless its default profile sets another; on the embedded engine they are bounded by the request alone, 256 KiB.",
    'On old servers (before 25.8) there are no parameters, no `LowCardinality` in the types, and errors have no names.',
    'With ClickHouse, Sluice parses each statement first and refuses syntax that it does not know. Quote a name that is a keyword (`"final"`). Common table expressions are visible in their scope. Not supported are `FROM … SELECT`, `WITH RECURSIVE`, `WITH FILL FROM`, `EXTRACT(… FROM …)`, `DISTINCT ON`, `APPLY`, expressions after LIMIT, and qualified names inside `IN ( )`. On both engines a statement has at most 262,144 characters (`statement_length`), 20,000 tokens (`statement_tokens`) and 100 levels of nesting (`statement_nesting`).',
    '## What was not tested',
    'Without a current ClickHouse server, these are untested: accounts, roles, profiles and quotas at run time, clusters and replicated tables, and how its HTTP interface reads parameters of more than 4 KiB, which Sluice sends in a form. Protocol, ingest, kills, aborts and limits are tested with the server of Debian (18.16); tables, views, the writer and deletes with ClickHouse 26.5 from npm, which is not a server; responses of current servers with a fake server. Forks and interrupted batches are tested with both: accounts have the state of the blocks that remain. `accounts` contains updates from the stream: an account that changed only in a gap filled by getBlock keeps its older row until its next change.',
  ].join('\n\n')}\n`
}
