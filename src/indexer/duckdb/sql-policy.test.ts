import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { QueryError, type QueryErrorName } from '../query/error.ts'
import { openQueryDatabase } from './test-queries.ts'

type Opened = Awaited<ReturnType<typeof openQueryDatabase>>

const nest = (count: number, open: string, inner: string, close: string): string =>
  open.repeat(count) + inner + close.repeat(count)

/** Hostile statements with the errors that they may give. */
const HOSTILE: Readonly<Record<string, readonly (readonly [sql: string, ...errors: QueryErrorName[]])[]>> = {
  'not a SELECT': [
    ...[
      'DELETE FROM transactions',
      'INSERT INTO blocks SELECT * FROM blocks',
      'UPDATE blocks SET slot = 0',
      'DROP TABLE transactions',
      'DROP VIEW transactions',
      'CREATE TABLE t (x INT)',
      'CREATE TEMP TABLE t AS SELECT 1',
      'CREATE MACRO f(x) AS x',
      "CREATE SECRET s (TYPE S3, KEY_ID 'a')",
      'RESET threads',
      'BEGIN',
      'COMMIT',
      'PREPARE p AS SELECT 1',
      'EXECUTE p',
      'CALL pragma_version()',
      "ATTACH ':memory:' AS other",
      'INSTALL httpfs',
      'LOAD httpfs',
      "COPY transactions TO '/tmp/x'",
      "COPY (SELECT 1) TO '/tmp/x'",
      "EXPORT DATABASE '/tmp/x'",
      "IMPORT DATABASE '/tmp/x'",
      'CHECKPOINT',
      'VACUUM',
      'PRAGMA database_list',
      'ALTER TABLE blocks ADD COLUMN x INT',
    ].map((sql) => [sql, 'READONLY', 'SYNTAX_ERROR'] as const),
    ...['SET threads = 1', 'SET search_path = base', "SET memory_limit = '1GB'", 'SET temp_directory = 1'].map(
      (sql) => [sql, 'UNKNOWN_SETTING'] as const,
    ),
    ...[
      'SET VARIABLE x = 1',
      'SET max_threads',
      'SET GLOBAL max_threads = 1',
      'SET ROLE ALL',
      'SET max_threads = 1; DROP TABLE blocks',
    ].map((sql) => [sql, 'SYNTAX_ERROR', 'READONLY'] as const),
    ...['USE memory', 'USE base', 'USE customers', 'USE main', 'USE clickhouse_system', 'USE fn'].map(
      (sql) => [sql, 'UNKNOWN_DATABASE'] as const,
    ),
    ['USE memory.base', 'SYNTAX_ERROR'],
    ['SET readonly = 0', 'READONLY'],
    ...[
      'EXPLAIN ANALYZE DELETE FROM transactions',
      'EXPLAIN ANALYZE SELECT 1',
      'EXPLAIN DROP TABLE blocks',
      'EXPLAIN EXPLAIN SELECT 1',
    ].map((sql) => [sql, 'NOT_IMPLEMENTED'] as const),
    ['EXPLAIN SELECT 1; DROP TABLE blocks', 'SYNTAX_ERROR', 'READONLY'],
    ['DESCRIBE (SELECT 1); DROP TABLE blocks', 'SYNTAX_ERROR', 'READONLY'],
    ['EXPLAIN SYNTAX SELECT * FROM base._progress', 'UNKNOWN_DATABASE'],
    ['WITH x AS (DELETE FROM blocks RETURNING *) SELECT * FROM x', 'SYNTAX_ERROR', 'READONLY'],
    ['SELECT 1 INTO t', 'NOT_IMPLEMENTED'],
  ],
  'number of statements': [
    ['SELECT 1; DROP TABLE transactions', 'READONLY', 'SYNTAX_ERROR'],
    ['SELECT 1; SELECT 2', 'SYNTAX_ERROR'],
    ['', 'SYNTAX_ERROR'],
    ['-- nothing', 'SYNTAX_ERROR'],
  ],
  'table functions': [
    'enable_logging()',
    "enable_logging(storage='file')",
    "enable_profiling(save_location='/tmp/x')",
    'checkpoint()',
    'force_checkpoint()',
    'truncate_duckdb_logs()',
    'enable_peg_parser()',
    'duckdb_settings()',
    'duckdb_secrets()',
    "read_text('/etc/passwd')",
    "read_csv('/etc/passwd')",
    "read_csv('http://127.0.0.1/x')",
    "read_blob('/etc/passwd')",
    "read_parquet('/tmp/x')",
    "glob('/*')",
    "sniff_csv('/etc/passwd')",
    "query('DROP TABLE t')",
    "query_table('transactions')",
    "json_execute_serialized_sql('{}')",
    "seq_scan('transactions')",
    'range(10000000000)',
    'generate_series(1, 10000000000)',
    "repeat('x', 5)",
  ].map((call) => [`SELECT * FROM ${call}`, 'UNKNOWN_FUNCTION', 'NOT_IMPLEMENTED'] as const),
  names: [
    ["SELECT * FROM '/etc/passwd'", 'UNKNOWN_TABLE', 'SYNTAX_ERROR'],
    ['SELECT * FROM duckdb_settings', 'UNKNOWN_TABLE'],
    ['SELECT * FROM duckdb_tables', 'UNKNOWN_TABLE'],
    ...`system.main.duckdb_tables system.information_schema.tables system.pg_catalog.pg_class memory.information_schema.tables customers.fn.covered
      customers.clickhouse_system.tables temp.information_schema.tables`
      .split(/\s+/)
      .map((name) => [`SELECT * FROM ${name}`, 'UNKNOWN_TABLE', 'UNKNOWN_DATABASE'] as const),
    ...`system.duckdb_tables system.duckdb_settings system.processes system.users system.query_log system.pg_class system.sqlite_master system.range
      information_schema.character_sets information_schema.constraint_column_usage information_schema.table_constraints
      "system"."duckdb_tables" INFORMATION_SCHEMA.users system.blocks`
      .split(/\s+/)
      .map((name) => [`SELECT * FROM ${name}`, 'UNKNOWN_TABLE'] as const),
    // The schemas of the engine that hold the tables of system and information_schema are no databases of the customer.
    ...'clickhouse_system.duckdb_tables clickhouse_system.processes clickhouse_system.tables clickhouse_information_schema.tables'
      .split(' ')
      .map((name) => [`SELECT * FROM ${name}`, 'UNKNOWN_DATABASE'] as const),
    ['SELECT * FROM fn.covered', 'UNKNOWN_DATABASE'],
    ['WITH tables AS (SELECT 1) SELECT * FROM system.duckdb_tables', 'UNKNOWN_TABLE'],
    ['WITH system AS (SELECT 1) SELECT * FROM system.duckdb_tables', 'UNKNOWN_TABLE'],
    ['SELECT * FROM blocks AS system, system.pg_class', 'UNKNOWN_TABLE'],
    ['SELECT * FROM pg_catalog.pg_class', 'UNKNOWN_DATABASE'],
    ['SELECT * FROM pg_class', 'UNKNOWN_TABLE'],
    ['SELECT * FROM sqlite_master', 'UNKNOWN_TABLE'],
    ['SELECT * FROM memory.base.transactions', 'UNKNOWN_TABLE'],
    ['SELECT * FROM base.transactions', 'UNKNOWN_DATABASE'],
    ['SELECT * FROM base._progress', 'UNKNOWN_DATABASE'],
    ['SELECT * FROM _progress', 'UNKNOWN_TABLE'],
    ['WITH _ranges AS (SELECT 1) SELECT * FROM base._ranges', 'UNKNOWN_DATABASE'],
    ['SELECT * FROM (WITH pg_class AS (SELECT 1) SELECT 1) q, pg_class', 'UNKNOWN_TABLE'],
    ['WITH a AS (SELECT * FROM b), b AS (SELECT 1) SELECT * FROM a', 'UNKNOWN_TABLE'],
    ["SELECT system.main.repeat('x', 5)", 'UNKNOWN_FUNCTION', 'SYNTAX_ERROR'],
  ],
  'the SHOW family': [
    ...['SHOW ALL TABLES', 'SUMMARIZE transactions', 'SHOW PROCESSLIST', 'SHOW VARIABLES'].flatMap((sql) => [
      [sql, 'NOT_IMPLEMENTED', 'READONLY', 'SYNTAX_ERROR'] as const,
      [`SELECT * FROM (${sql})`, 'NOT_IMPLEMENTED', 'READONLY', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'] as const,
    ]),
    ['SELECT * FROM (SHOW TABLES)', 'NOT_IMPLEMENTED', 'READONLY', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ['SELECT * FROM (DESCRIBE transactions)', 'NOT_IMPLEMENTED', 'READONLY', 'SYNTAX_ERROR', 'UNKNOWN_TABLE'],
    ['PIVOT blocks ON slot USING count(*)', 'NOT_IMPLEMENTED', 'READONLY', 'SYNTAX_ERROR'],
    ['SELECT * FROM (UNPIVOT blocks ON slot INTO NAME n VALUE v)', 'NOT_IMPLEMENTED', 'READONLY'],
  ],
  functions: [
    ..."repeat('x', 9)|getenv('PATH')|current_setting('threads')|sleep_ms(1)|write_log('x')|current_query()|nextval('s')|which_secret('a','b')|error('x')"
      .split('|')
      .map((call) => [`SELECT ${call}`, 'UNKNOWN_FUNCTION'] as const),
    ['SELECT list_transform([1], x -> x)', 'UNKNOWN_FUNCTION', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR'],
    ['SELECT [x + 1 FOR x IN [1, 2]]', 'UNKNOWN_FUNCTION', 'NOT_IMPLEMENTED', 'SYNTAX_ERROR'],
  ],
  size: [
    [`SELECT 1${' + 1'.repeat(150)}`, 'TOO_DEEP_AST'],
    [`SELECT 1${' + 1'.repeat(900)}`, 'TOO_DEEP_AST'],
    [`SELECT ${nest(150, 'abs(', '1', ')')}`, 'TOO_DEEP_AST'],
    [`SELECT ${nest(300, '[', '1', ']')}`, 'TOO_DEEP_AST'],
    [`SELECT 1${' UNION ALL SELECT 1'.repeat(5000)}`, 'TOO_DEEP_AST', 'TOO_BIG_AST', 'SYNTAX_ERROR'],
    [`SELECT 1 WHERE true${' AND true'.repeat(10_000)}`, 'TOO_BIG_AST'],
    [`SELECT 1 WHERE 1 IN (${'1,'.repeat(50_000)}1)`, 'TOO_BIG_AST'],
    [
      `SELECT 1 FROM ${Array.from({ length: 31 }, (_, at) => `blocks b${at}`).join(', ')}`,
      'TOO_BIG_AST',
      'TOO_DEEP_AST',
    ],
    [
      `WITH c0 AS (SELECT * FROM blocks)${Array.from({ length: 16 }, (_, at) => `, c${at + 1} AS (SELECT a.slot FROM c${at} a, c${at} b)`).join('')} SELECT count(*) FROM c16`,
      'TOO_BIG_AST',
    ],
    ['WITH RECURSIVE r AS (SELECT 1 AS n UNION ALL SELECT n + 1 FROM r) SELECT * FROM r', 'NOT_IMPLEMENTED'],
    ['SELECT 1e400', 'SYNTAX_ERROR'],
    [nest(20_000, '(', 'SELECT 1', ')'), 'SYNTAX_ERROR', 'TOO_DEEP_AST'],
    [`SELECT ${nest(10_000, 'quantile(0.5)(', '1', ')')}`, 'TOO_DEEP_AST', 'SYNTAX_ERROR'],
  ],
}

/** Ordinary queries that must pass. */
const GOOD = [
  'SELECT 1',
  "SELECT 'ping'",
  'SELECT count() FROM transactions',
  'SELECT count(*) FROM solana.transactions FINAL WHERE success AND fee > 0',
  'SELECT toStartOfMinute(block_time) AS minute, countIf(NOT success) / count(*) AS failed FROM transactions GROUP BY minute ORDER BY minute',
  'SELECT program_id, quantile(0.95)(fee) FROM (SELECT unnest(program_ids) AS program_id, fee FROM transactions) GROUP BY 1 ORDER BY 1',
  'WITH t AS (SELECT slot, count(*) AS n FROM transactions GROUP BY slot), u AS (SELECT max(n) AS m FROM t) SELECT t.slot FROM t, u WHERE t.n = u.m ORDER BY 1',
  'SELECT slot, row_number() OVER (PARTITION BY leader ORDER BY slot) FROM blocks QUALIFY row_number() OVER (ORDER BY slot) < 5',
  "SELECT mint, sum(amount), uniqExact(from_owner), argMax(signature, amount) FROM token_transfers WHERE kind <> 'sol' GROUP BY mint HAVING count(*) > 1 ORDER BY 2 DESC LIMIT 5",
  "SELECT a.signature, b.leader FROM transactions a LEFT JOIN blocks b USING (slot) WHERE has(a.signers, 'x') LIMIT 3",
  'SELECT * FROM account_activity WHERE account IN (SELECT fee_payer FROM transactions LIMIT 1) ORDER BY slot LIMIT 3',
  'SELECT CASE WHEN fee > 5 THEN 1 ELSE 0 END, coalesce(NULL, fee), CAST(fee AS String) FROM transactions LIMIT 1'.replace(
    'String',
    'VARCHAR',
  ),
  'SELECT DISTINCT version FROM transactions ORDER BY version',
  'SELECT table_name, from_slot, to_slot FROM coverage ORDER BY table_name',
  "SELECT block_time + INTERVAL 1 HOUR, dateDiff('minute', block_time, now()) FROM blocks LIMIT 1",
  'SELECT slot FROM blocks UNION ALL SELECT slot FROM rewards ORDER BY 1 LIMIT 2',
  'VALUES (1), (2)',
]

describe('the SQL policy of the embedded engine', () => {
  let opened: Opened
  before(async () => {
    opened = await openQueryDatabase()
  })
  after(() => opened[Symbol.dispose]())

  test('ordinary queries pass', async () => {
    for (const sql of GOOD) {
      const { rows } = await opened.ask(sql).catch((error: Error) => assert.fail(`${sql}: ${error.message}`))
      assert.ok(rows >= 0, sql)
    }
  })

  for (const [name, statements] of Object.entries(HOSTILE)) {
    test(`T14: ${name}`, async () => {
      const before = await countsOf(opened)
      for (const [sql, ...errors] of statements) {
        const shown = sql.slice(0, 100)
        const error = await opened.ask(sql).then(
          () => assert.fail(`${shown} was run`),
          (cause: unknown) => cause,
        )
        assert.ok(error instanceof QueryError, `${shown}: ${String(error)}`)
        assert.ok(errors.includes(error.type), `${shown}: ${error.type} ${error.message}`)
        assert.match(error.body, /^Code: \d+\. DB::Exception: [^\n]+ \([A-Z_]{3,}\)\n$/)
      }
      assert.deepEqual(await countsOf(opened), before)
    })
  }

  test('an error contains no name that the customer did not write, but for published columns that are alike', async () => {
    for (const [sql, type] of [
      ['SELECT nosuch FROM transactions', 'UNKNOWN_IDENTIFIER'],
      ['SELECT slott FROM blocks', 'UNKNOWN_IDENTIFIER'],
      ['SELECT upper(1, 2, 3)', 'NUMBER_OF_ARGUMENTS_DOESNT_MATCH'],
      ['SELECT fee, count(*) FROM transactions', 'NOT_AN_AGGREGATE'],
      ["SELECT CAST('x' AS INTEGER)", 'CANNOT_PARSE_TEXT'],
      ['SELECT x.y FROM transactions t', 'UNKNOWN_IDENTIFIER'],
    ] as const) {
      const error = await opened.ask(sql).catch((cause: unknown) => cause)
      assert.ok(error instanceof QueryError)
      assert.equal(error.type, type, `${sql}: ${error.message}`)
      assert.doesNotMatch(error.body, /Did you mean|Candidate|LINE|base\.|customers|_progress/)
    }
  })

  test('more rows or bytes than allowed is an error, never a truncated result', async () => {
    const rows = await opened.ask('SELECT * FROM transactions', { rowsMax: 10 }).catch((cause: unknown) => cause)
    assert.ok(rows instanceof QueryError && rows.type === 'TOO_MANY_ROWS_OR_BYTES')
    assert.equal((await opened.ask('SELECT slot FROM transactions LIMIT 10', { rowsMax: 10 })).rows, 10)
    const bytes = await opened.ask('SELECT * FROM transactions', { bytesMax: 1000 }).catch((cause: unknown) => cause)
    assert.ok(bytes instanceof QueryError && bytes.type === 'TOO_MANY_BYTES')
  })
})

async function countsOf(opened: Opened): Promise<string> {
  using connection = await opened.database.connect()
  const [piece] = (
    await connection.run(
      'SELECT (SELECT count(*) FROM memory.base.transactions), (SELECT count(*) FROM memory.base.blocks), (SELECT count(*) FROM duckdb_tables()), (SELECT count(*) FROM duckdb_views() WHERE NOT internal), (SELECT count(*) FROM duckdb_databases())',
    )
  ).pieces()
  return String(piece)
}
