import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { compileStatement } from '../dialect/compile-statement.ts'
import { QueryError, type QueryErrorName } from '../query/error.ts'
import { parseStatement } from '../query/statement.ts'
import { DATABASE, PUBLISHED_NAMES } from '../schema.ts'
import { applySqlPolicy } from './sql-policy.ts'
import { openQueryDatabase } from './test-queries.ts'

const POLICY = { tables: PUBLISHED_NAMES, database: DATABASE }
const rewrite = (sql: string, given: Record<string, string> = {}) => compileStatement(parseStatement(sql), { given })

type Opened = Awaited<ReturnType<typeof openQueryDatabase>>
type Case = readonly [sql: string, ...errors: QueryErrorName[]]

/** KELVIN SIGN: its Unicode lower case is k; the engine compares it as a different character. */
const KELVIN = '\u212a'
const CATALOGUE = [
  'duckdb_databases',
  'duckdb_tables',
  'duckdb_views',
  'duckdb_schemas',
  'duckdb_columns',
  'duckdb_types',
] as const

const HOSTILE: Readonly<Record<string, readonly Case[]>> = {
  'letters with the same Unicode lower case': [
    ...CATALOGUE.map(
      (view) => [`WITH "${view.replace('k', KELVIN)}" AS (SELECT 1) SELECT * FROM ${view}`, 'UNKNOWN_TABLE'] as const,
    ),
    [`WITH "duckdb_tables\u0130" AS (SELECT 1) SELECT * FROM duckdb_tables`, 'UNKNOWN_TABLE'],
    [`SELECT * FROM "bloc${KELVIN}s"`, 'UNKNOWN_TABLE'],
    [`SELECT * FROM "\u017folana".blocks`, 'UNKNOWN_DATABASE'],
    [`SELECT "ran${KELVIN}"() OVER (ORDER BY slot) FROM blocks`, 'UNKNOWN_FUNCTION'],
    [`WITH duc${KELVIN}db_databases AS (SELECT 1) SELECT * FROM duckdb_databases`, 'SYNTAX_ERROR'],
    ['SELECT * FROM \uff42locks', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
  ],
  'white space and line ends': [
    ['SELECT * FROM\u00a0duckdb_tables', 'UNKNOWN_TABLE'],
    ['SELECT\u2028*\u2029FROM\ufeffduckdb_tables', 'UNKNOWN_TABLE'],
    ['SELECT 1 \0', 'SYNTAX_ERROR'],
    ["SELECT 'a\0', 1", 'SYNTAX_ERROR'],
    ["SELECT '\\0'", 'SYNTAX_ERROR'],
    ['SELECT 1 -- \r FROM blocks\n, * FROM duckdb_tables', 'UNKNOWN_TABLE'],
    ['SELECT 1 /* /* */ , * FROM duckdb_tables -- */', 'UNKNOWN_TABLE'],
    ['SELECT 1 #! */\n, * FROM duckdb_tables', 'UNKNOWN_TABLE'],
    ['SELECT 1 \v\f\u200b FROM duckdb_tables', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
  ],
  quotes: [
    ['SELECT $$x$$, * FROM duckdb_tables', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ["SELECT $a$ ' $a$, * FROM duckdb_tables -- '", 'SYNTAX_ERROR'],
    ["SELECT E'\\'', * FROM duckdb_tables -- '", 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ["SELECT U&'\\0041', * FROM duckdb_tables", 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ["SELECT * FROM 'duckdb_tables'", 'UNKNOWN_TABLE'],
    ["SELECT * FROM '/etc/passwd'", 'UNKNOWN_TABLE', 'SYNTAX_ERROR'],
    ['SELECT * FROM "/etc/passwd"', 'UNKNOWN_TABLE'],
    ["SELECT * FROM 'data.csv', `x.parquet`", 'UNKNOWN_TABLE', 'SYNTAX_ERROR'],
    ['SELECT 1_0_ FROM duckdb_tables', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
  ],
  'table references of other kinds': [
    ['SELECT * FROM blocks AT (VERSION => 1)', 'SYNTAX_ERROR', 'NOT_IMPLEMENTED'],
    ['SELECT * FROM blocks TABLESAMPLE 10%', 'NOT_IMPLEMENTED'],
    ['SELECT * FROM blocks USING SAMPLE 5', 'SYNTAX_ERROR'],
    ['FROM duckdb_tables SELECT *', 'UNKNOWN_TABLE'],
    ['FROM duckdb_tables', 'UNKNOWN_TABLE'],
    ['TABLE duckdb_tables', 'READONLY', 'UNKNOWN_TABLE'],
    ['SELECT * FROM (TABLE duckdb_tables)', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ['SELECT * FROM blocks POSITIONAL JOIN duckdb_tables', 'NOT_IMPLEMENTED'],
    ['SELECT * FROM blocks ASOF JOIN duckdb_tables USING (slot)', 'UNKNOWN_TABLE'],
    ['SELECT * FROM blocks SEMI JOIN duckdb_tables ON true', 'UNKNOWN_TABLE'],
    ['SELECT * FROM blocks, LATERAL (SELECT * FROM duckdb_tables)', 'NOT_IMPLEMENTED'],
    ['SELECT * FROM blocks b: duckdb_tables', 'SYNTAX_ERROR'],
    ['SELECT * FROM b: duckdb_tables', 'SYNTAX_ERROR'],
    ['SELECT * FROM (VALUES ((SELECT count(*) FROM duckdb_tables)))', 'UNKNOWN_TABLE'],
    ['SELECT * FROM (PIVOT blocks ON leader USING count(*))', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ['SELECT * FROM blocks PIVOT (count(*) FOR slot IN (1, 2))', 'NOT_IMPLEMENTED'],
    ['SELECT * FROM (SHOW ALL TABLES)', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ['SELECT * FROM (SUMMARIZE blocks)', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ['SELECT * FROM (DESCRIBE SELECT * FROM duckdb_tables)', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ['SELECT (SELECT 1 FROM duckdb_tables) FROM blocks', 'UNKNOWN_TABLE'],
    ['SELECT 1 WHERE EXISTS (FROM duckdb_tables)', 'UNKNOWN_TABLE'],
    ['SELECT 1 ORDER BY (SELECT 1 FROM duckdb_tables)', 'UNKNOWN_TABLE'],
    ['SELECT 1 LIMIT (SELECT count(*) FROM duckdb_tables)', 'UNKNOWN_TABLE'],
    ['SELECT 1 LIMIT 10%', 'NOT_IMPLEMENTED'],
    ['SELECT count(*) FILTER (WHERE 1 IN (SELECT 1 FROM duckdb_tables)) FROM blocks', 'UNKNOWN_TABLE'],
    ['SELECT CAST((SELECT 1 FROM duckdb_tables) AS INTEGER)', 'UNKNOWN_TABLE'],
    ['SELECT sum(slot ORDER BY (SELECT 1 FROM duckdb_tables)) FROM blocks', 'UNKNOWN_TABLE'],
    ['SELECT row_number() OVER (ORDER BY (SELECT 1 FROM duckdb_tables)) FROM blocks', 'UNKNOWN_TABLE'],
    ['SELECT * REPLACE ((SELECT 1 FROM duckdb_tables) AS slot) FROM blocks', 'UNKNOWN_TABLE'],
    ['SELECT x FROM blocks GROUP BY (SELECT 1 FROM duckdb_tables)', 'UNKNOWN_TABLE'],
    ['SELECT 1 UNION ALL BY NAME SELECT 2 FROM duckdb_tables', 'UNKNOWN_TABLE'],
  ],
  'names that are in scope elsewhere': [
    ['(WITH pg_class AS (SELECT 1) SELECT * FROM pg_class) UNION ALL SELECT 1 FROM pg_class', 'UNKNOWN_TABLE'],
    ['WITH pg_class AS (SELECT * FROM pg_class) SELECT * FROM pg_class', 'UNKNOWN_TABLE'],
    ['WITH "PG_CLASS" AS (SELECT 1) SELECT * FROM main.pg_class', 'UNKNOWN_DATABASE'],
    ['WITH pg_class AS (SELECT 1) SELECT * FROM system.main.pg_class', 'UNKNOWN_TABLE'],
    ['WITH pg_class AS (SELECT 1) SELECT * FROM solana.pg_class', 'UNKNOWN_TABLE'],
    ['SELECT * FROM blocks AS pg_class, pg_class', 'UNKNOWN_TABLE'],
    ['SELECT 1 AS pg_class, (SELECT 1 FROM pg_class)', 'UNKNOWN_TABLE'],
    ['WITH a AS (SELECT 1) SELECT * FROM customers.solana.blocks', 'UNKNOWN_TABLE'],
    ['SELECT * FROM fn.covered', 'UNKNOWN_DATABASE'],
  ],
  'descriptions and settings': [
    ['DESCRIBE TABLE system.blocks', 'UNKNOWN_TABLE'],
    ['SHOW CREATE TABLE base.blocks', 'UNKNOWN_TABLE'],
    [`DESCRIBE "bloc${KELVIN}s"`, 'UNKNOWN_TABLE'],
    ['SELECT 1 SETTINGS "max_threads" = 1', 'SYNTAX_ERROR'],
  ],
  functions: [
    ['SELECT COLUMNS(*) FROM blocks', 'NOT_IMPLEMENTED'],
    ["SELECT *COLUMNS('s.*') FROM blocks", 'NOT_IMPLEMENTED', 'SYNTAX_ERROR'],
    ["SELECT fn.toDate('2020-01-01')", 'UNKNOWN_FUNCTION'],
    ['SELECT system.main.abs(1)', 'UNKNOWN_FUNCTION'],
    ["SELECT customers.fn.toDate('2020-01-01')", 'UNKNOWN_FUNCTION'],
    ['SELECT * FROM main.unnest([1]), main.duckdb_tables()', 'UNKNOWN_FUNCTION'],
    ['SELECT * FROM system.main.duckdb_tables()', 'UNKNOWN_FUNCTION'],
    ['SELECT * FROM system.main.unnest([1])', 'UNKNOWN_FUNCTION'],
    ["SELECT * FROM main.read_csv('/etc/passwd')", 'UNKNOWN_FUNCTION'],
    ["SELECT getvariable('x'), current_setting('threads')", 'UNKNOWN_FUNCTION'],
    ["SELECT * FROM query('SELECT 1'), query_table('blocks')", 'UNKNOWN_FUNCTION'],
    ["SELECT 'x'.getenv()", 'UNKNOWN_FUNCTION', 'SYNTAX_ERROR'],
    ["SELECT ('PATH').getenv()", 'UNKNOWN_FUNCTION'],
    ['SELECT list_transform([1], lambda x: x)', 'SYNTAX_ERROR'],
    ['SELECT list_sort([1], x -> x)', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR', 'UNKNOWN_FUNCTION'],
    ["SELECT 'a' COLLATE NOCASE", 'SYNTAX_ERROR'],
    ['SELECT #1 FROM blocks', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR'],
    ['SELECT [getenv(x) FOR x IN [1]]', 'SYNTAX_ERROR'],
    ['SELECT row_number() OVER (ORDER BY getenv(leader)) FROM blocks', 'UNKNOWN_FUNCTION'],
    ['SELECT checkpoint() OVER ()', 'UNKNOWN_FUNCTION'],
    ["SELECT CAST(getenv('PATH') AS VARCHAR)", 'UNKNOWN_FUNCTION'],
    ["SELECT getenv('PATH')::VARCHAR", 'UNKNOWN_FUNCTION'],
    ['WITH MATERIALIZED AS (SELECT 1) SELECT getenv(1)', 'UNKNOWN_FUNCTION', 'SYNTAX_ERROR'],
  ],
}

/** Unusual and harmless: quoted text is a value or an alias, whatever its letters. */
const GOOD = [
  `WITH "duc${KELVIN}db_databases" AS (SELECT 1) SELECT * FROM "duc${KELVIN}db_databases"`,
  `SELECT 'K${KELVIN}' AS "gr\u00f6\u00dfe", slot AS "\u017flot" FROM "BLOCKS" WHERE leader <> '\u2028'`,
  'WITH "Recent" AS (SELECT slot FROM Solana.Blocks) SELECT * FROM RECENT r ORDER BY r.SLOT',
  'SELECT slot AS x, * EXCEPT (leader) FROM blocks',
  'FROM blocks SELECT slot',
  "SELECT 'a\\', * FROM duckdb_tables -- '",
  'SELECT abs(slot) FROM (SELECT 1 AS slot UNION ALL SELECT 2) AS v',
  'SELECT CAST([1, 2] AS Array(UInt64)), CAST(1 AS DECIMAL(18, 4)), 1_000, 1e3, 0xff',
]

describe('the SQL policy of the embedded engine: names', () => {
  let opened: Opened
  before(async () => {
    opened = await openQueryDatabase()
  })
  after(() => opened[Symbol.dispose]())

  for (const [name, cases] of Object.entries(HOSTILE))
    test(`T14: ${name}`, async () => {
      for (const [sql, ...errors] of cases) {
        const error = await opened.ask(sql).then(
          ({ body }) => assert.fail(`${sql} was run: ${Buffer.from(body).toString().slice(0, 200)}`),
          (cause: unknown) => cause,
        )
        assert.ok(error instanceof QueryError, `${sql}: ${String(error)}`)
        // What the grammar does not know is refused before its names are looked up.
        const isByGrammar = error.type === 'SYNTAX_ERROR' || error.type === 'NOT_IMPLEMENTED'
        assert.ok(isByGrammar || errors.includes(error.type), `${sql}: ${error.type} ${error.message}`)
      }
    })

  test('names with other letters or in upper case pass where they are harmless', async () => {
    for (const sql of GOOD) await opened.ask(sql).catch((error: Error) => assert.fail(`${sql}: ${error.message}`))
  })

  test('T14: the SQL policy refuses statements that the ClickHouse tokenizer cannot produce', async () => {
    for (const [sql, type] of [
      ['SELECT * FROM blocks AT (VERSION => 1)', 'NOT_IMPLEMENTED'],
      ["SELECT * FROM blocks AT (TIMESTAMP => TIMESTAMP '2020-01-01')", 'NOT_IMPLEMENTED'],
      ["SELECT * FROM read_csv('/etc/passwd', header := true)", 'UNKNOWN_FUNCTION'],
      ['SELECT $$a$$, * FROM duckdb_tables', 'UNKNOWN_TABLE'],
      ['SELECT #1 FROM blocks', 'NOT_IMPLEMENTED'],
      ['SELECT * FROM abs(1)', 'UNKNOWN_FUNCTION'],
      [`SELECT (SELECT 1 FROM blocks${', blocks'.repeat(11)}) FROM blocks${', blocks'.repeat(11)}`, 'TOO_BIG_AST'],
      [`SELECT 1 WHERE true${' AND true'.repeat(12_000)}`, 'TOO_BIG_AST'],
      [`WITH "\u00e9" AS (SELECT 1) SELECT 1`, 'UNKNOWN_TABLE'],
      ['SELECT 1; SELECT 2', 'SYNTAX_ERROR'],
      ['', 'SYNTAX_ERROR'],
      ['SELECT 1e400', 'SYNTAX_ERROR'],
      ['SELECT 1 +', 'SYNTAX_ERROR'],
      ['DROP TABLE blocks', 'READONLY'],
    ] as const) {
      const tree = await treeOf(opened, sql)
      assert.throws(
        () => applySqlPolicy(tree, POLICY),
        (error: unknown) => error instanceof QueryError && error.type === type,
        sql,
      )
    }
  })

  test('T14: a NUL character never reaches the engine', () => {
    for (const sql of ["SELECT '\\0'", 'SELECT "\\0"', 'SELECT `\\x00`', "SELECT 'a\0b'"])
      assert.throws(() => rewrite(sql), /NUL character/, sql)
    assert.throws(() => rewrite('SELECT {a:Array(String)}', { a: "['\\0']" }), /NUL character/)
  })

  test('the SQL policy lists the tables and functions that a statement names', async () => {
    const { sql } = rewrite('WITH a AS (SELECT max(slot) m FROM Blocks) SELECT abs(m) FROM a, solana.rewards')
    const { tables, functions } = applySqlPolicy(await treeOf(opened, sql), POLICY)
    assert.deepEqual([...tables].toSorted(), ['blocks', 'rewards'])
    assert.deepEqual([...functions].toSorted(), ['abs', 'max'])
  })
})

/** The serialized parse tree of a statement. */
async function treeOf({ database }: Opened, sql: string): Promise<string> {
  using connection = await database.connect()
  const [piece] = (await connection.run('SELECT json_serialize_sql($sql::VARCHAR)', { sql })).pieces()
  return String(piece?.[0]?.[0])
}
