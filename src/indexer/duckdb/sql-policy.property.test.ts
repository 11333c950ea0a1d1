import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { repeatsOf, seedFor } from '../../core/test-seed.ts'
import { QueryError } from '../query/error.ts'
import { openQueryDatabase } from './test-queries.ts'

const WORDS =
  `SELECT FROM WHERE WITH AS INSERT INTO UPDATE SET DELETE DROP TABLE VIEW CREATE COPY TO ATTACH PRAGMA CALL LOAD INSTALL EXPLAIN ANALYZE UNION ALL
  VALUES ORDER BY GROUP LIMIT JOIN ON USING LATERAL RECURSIVE MATERIALIZED RETURNING PIVOT SUMMARIZE SHOW DESCRIBE USE EXPORT CHECKPOINT FOR IN
  transactions blocks coverage base._progress memory.base.blocks customers.solana.blocks main.blocks system.main solana.blocks pg_class
  duckdb_settings information_schema.tables sqlite_master
  read_text('/etc/passwd') read_csv('/etc/passwd') getenv('HOME') current_setting('threads') query('DROP TABLE blocks') glob('/*') range(3)
  repeat('x',3) unnest([1,2]) count(*) max(slot) duckdb_tables() checkpoint() enable_logging() json_execute_serialized_sql('{}') pragma_version()
  slot fee 1 'x' "blocks" * , ( ) ; . = -- /* */ [ ] { } :: $1 ? -> || {p:UInt64} FORMAT JSON SETTINGS a=1 \\' ''`.split(
    /\s+/,
  )

const COUNT = repeatsOf({ short: 300, full: 10_000 })

test(`T14: ${COUNT} statements made of hostile pieces write nothing and return only published data`, async (t) => {
  const { seed } = seedFor('hostile statements')
  using opened = await openQueryDatabase()
  const stateOf = async (): Promise<string> => {
    using connection = await opened.database.connect()
    const [piece] = (
      await connection.run(
        `SELECT (SELECT hash(list(hash(t))) FROM memory.base.blocks t), (SELECT count(*) FROM memory.base.transactions), (SELECT count(*) FROM duckdb_tables()),
           (SELECT count(*) FROM duckdb_views()), (SELECT count(*) FROM duckdb_databases()), (SELECT hash(list(value ORDER BY name)) FROM duckdb_settings())`,
      )
    ).pieces()
    return String(piece)
  }
  const before = await stateOf()
  const statement = fc
    .tuple(
      fc.constantFrom(
        'SELECT',
        'SELECT * FROM',
        'WITH x AS (SELECT 1) SELECT',
        'SELECT count(*) FROM blocks',
        'SELECT count(*) FROM blocks WHERE',
        '',
        'FROM',
      ),
      fc.array(fc.constantFrom(...WORDS), { maxLength: 8 }),
    )
    .map(([head, tail]) => `${head} ${tail.join(' ')}`)
  let ran = 0
  for (const sql of fc.sample(statement, { seed, numRuns: COUNT })) {
    try {
      const { body } = await opened.ask(sql, { rowsMax: 100_000, secondsMax: 5 }, { parameters: { p: '1' } })
      ran++
      const text = Buffer.from(body).toString('latin1')
      assert.doesNotMatch(text, /root:x:|_progress|_ranges|customers/, sql)
    } catch (error) {
      assert.ok(error instanceof QueryError, `${sql}: ${String(error)}`)
      assert.doesNotMatch(error.body, /root:x:|Did you mean|_ranges|Candidate/, sql)
    }
  }
  assert.equal(await stateOf(), before)
  t.diagnostic(`${ran} of ${COUNT} ran`)
  assert.ok(ran > 0 && ran < COUNT, `${ran} of ${COUNT} ran`)
})
