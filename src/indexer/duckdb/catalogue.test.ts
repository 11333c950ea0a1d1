import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { CATALOGUE_TABLES, LISTED_TABLES } from '../catalogue/catalogue.ts'
import { CONNECTION_FUNCTIONS } from '../catalogue/connection-functions.ts'
import { OFFERED_FUNCTIONS } from '../dialect/function-list.ts'
import type { QueryError } from '../query/error.ts'
import type { QueryJob } from '../query/request.ts'
import { PUBLISHED } from '../schema.ts'
import { SETTINGS } from '../session/setting-list.ts'
import { openQueryDatabase } from './test-queries.ts'

const CONTEXT = { user: "u_it's", database: 'solana', hostName: 'sql.example', uptimeSeconds: 77 }

describe('the databases system and information_schema', () => {
  let opened: Awaited<ReturnType<typeof openQueryDatabase>>
  before(async () => {
    opened = await openQueryDatabase()
  })
  after(() => opened?.[Symbol.dispose]())

  async function rows(query: string, given: Partial<QueryJob> = {}): Promise<unknown[]> {
    const { body } = await opened.ask(query, {}, { context: CONTEXT, ...given })
    return body
      .toString()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as unknown)
  }

  test('list the published tables and themselves, and nothing of the engine', async () => {
    const names = await rows('SELECT database, name FROM system.tables ORDER BY database, name')
    const expected = LISTED_TABLES.map(({ database, name }) => [database, name])
    assert.deepEqual(
      names,
      expected.toSorted((a, b) => (a.join(' ') < b.join(' ') ? -1 : 1)),
    )
    assert.deepEqual(await rows("SELECT count() FROM system.columns WHERE database = 'solana'"), [
      [String(PUBLISHED.flatMap(({ columns }) => columns).length)],
    ])
    assert.deepEqual(await rows('SELECT table_schema, table_name FROM INFORMATION_SCHEMA.TABLES ORDER BY 1, 2'), names)
    assert.deepEqual(
      await rows(
        "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'rewards' ORDER BY ordinal_position",
      ),
      await rows("SELECT name, type FROM system.columns WHERE table = 'rewards' ORDER BY position"),
    )
    assert.deepEqual(await rows('SELECT name FROM system.databases ORDER BY name'), [
      ['INFORMATION_SCHEMA'],
      ['information_schema'],
      ['solana'],
      ['system'],
    ])
  })

  test('every table has the columns and types that it is listed with', async () => {
    for (const { database, name, columns } of CATALOGUE_TABLES) {
      const described = (await rows(`DESCRIBE (SELECT * FROM ${database}.${name})`)) as string[][]
      assert.deepEqual(
        described.map(([column, type]) => [column, type]),
        columns.map((column) => [column.name, column.type]),
        `${database}.${name}`,
      )
    }
  })

  test('list what is accepted: functions, settings and formats', async () => {
    const functions = (await rows('SELECT name FROM system.functions')).flat() as string[]
    const offered = [...CONNECTION_FUNCTIONS, ...OFFERED_FUNCTIONS.flatMap((group) => group.functions)]
    assert.deepEqual(functions.toSorted(), offered.toSorted())
    // None of them is unknown to the compiler: a call without arguments is refused for other reasons.
    for (const name of functions)
      await rows(`SELECT ${name}() FROM blocks LIMIT 1`).catch(({ type }: QueryError) =>
        assert.notEqual(type, 'UNKNOWN_FUNCTION', name),
      )
    for (const name of CONNECTION_FUNCTIONS) assert.equal((await rows(`SELECT ${name}()`)).length, 1)
    assert.ok(functions.length > 200)
    const settings = await rows('SELECT name, value FROM system.settings ORDER BY name')
    assert.deepEqual(
      settings,
      SETTINGS.map(({ name, value }) => [name, value]),
    )
    for (const [name] of (await rows('SELECT name FROM system.formats')) as [string][])
      await opened.ask(`SELECT 1 FORMAT ${name}`)
    assert.deepEqual(await rows("SELECT alias_to FROM system.data_type_families WHERE name = 'BIGINT'"), [['Int64']])
  })

  test('one and numbers', async () => {
    assert.deepEqual(await rows('SELECT * FROM system.one'), [[0]])
    assert.deepEqual(await rows('SELECT number FROM system.numbers LIMIT 3'), [['0'], ['1'], ['2']])
    assert.deepEqual(await rows('SELECT sum(number) FROM (SELECT number FROM system.numbers LIMIT 1000)'), [['499500']])
    await assert.rejects(rows('SELECT * FROM system.numbers'), { type: 'TOO_MANY_ROWS_OR_BYTES' })
  })

  test('can be joined with tables, under aliases and by complete names', async () => {
    assert.deepEqual(
      await rows(
        "SELECT t.name, d.engine FROM system.tables t JOIN system.databases d ON system.tables.database = system.databases.name WHERE t.name = 'blocks'",
      ),
      [['blocks', 'Memory']],
    )
    assert.deepEqual(await rows('SELECT system.one.dummy, one.dummy FROM system.one'), [[0, 0]])
    assert.deepEqual(await rows('SELECT count() > 0 FROM blocks, system.one'), [[1]])
    assert.deepEqual(await rows('SELECT system.slot > 0 FROM blocks AS system LIMIT 1'), [[1]])
    assert.deepEqual(await rows('SELECT count() FROM (SELECT table FROM system.columns GROUP BY table)'), [
      [String(LISTED_TABLES.length - 2)],
    ])
  })

  test('USE and the database of the request choose where names without one are', async () => {
    const context = { ...CONTEXT, database: 'system' }
    assert.deepEqual(await rows('SELECT dummy FROM one', { context }), [[0]])
    assert.deepEqual(await rows('SELECT currentDatabase()', { context }), [['system']])
    assert.deepEqual(await rows('SELECT count() > 0 FROM solana.blocks', { context }), [[1]])
    await assert.rejects(rows('SELECT * FROM blocks', { context }), { type: 'UNKNOWN_TABLE' })
    await assert.rejects(rows('SELECT * FROM one'), { type: 'UNKNOWN_TABLE' })
  })

  test('the functions about the connection return its values, with their text as the name of the column', async () => {
    const { body } = await opened.ask(
      'SELECT version(), currentDatabase(), currentUser(), user() AS who, timezone(), serverTimeZone(), hostName(), uptime(), concat(user(), version()) AS both FORMAT JSON',
      {},
      { context: CONTEXT, settings: { session_timezone: 'Asia/Tokyo' } },
    )
    const { meta, data } = JSON.parse(body.toString()) as {
      meta: { name: string; type: string }[]
      data: [Record<string, unknown>]
    }
    assert.deepEqual(data[0], {
      'version()': '25.8.1.1',
      'currentDatabase()': 'solana',
      'currentUser()': "u_it's",
      who: "u_it's",
      'timezone()': 'Asia/Tokyo',
      'serverTimeZone()': 'UTC',
      'hostName()': 'sql.example',
      'uptime()': 77,
      both: "u_it's25.8.1.1",
    })
    assert.deepEqual(
      meta.map(({ type }) => type),
      [...Array<string>(7).fill('String'), 'UInt32', 'String'],
    )
    assert.deepEqual(await rows('SELECT count() FROM system.tables WHERE database = currentDatabase()'), [
      [String(PUBLISHED.length)],
    ])
    assert.deepEqual(await rows('SELECT a FROM (SELECT upper(user()) AS a, version() FROM system.one)'), [["U_IT'S"]])
  })

  test('EXPLAIN shows the steps without running them, and refuses what the statement itself would be refused for', async () => {
    const plan = await rows(
      'EXPLAIN SELECT leader, count() AS n FROM blocks WHERE slot > 1 GROUP BY leader ORDER BY n DESC LIMIT 3',
    )
    assert.deepEqual(plan.flat(), [
      'Limit',
      '  Sorting',
      '    Expression (Projection)',
      '      Aggregating',
      '        Filter (WHERE)',
      '          ReadFromTable (blocks)',
    ])
    assert.deepEqual(
      (await rows('EXPLAIN PLAN SELECT 1 FROM system.one a JOIN solana.blocks b ON a.dummy = b.slot')).flat(),
      [
        'Expression (Projection)',
        '  Join (INNER)',
        '    ReadFromTable (system.one)',
        '    ReadFromTable (solana.blocks)',
      ],
    )
    assert.deepEqual(
      (
        await rows(
          'EXPLAIN WITH a AS (SELECT max(slot) AS m FROM blocks) SELECT m FROM a UNION ALL SELECT number FROM numbers(3) ARRAY JOIN [1] AS x LIMIT 1 BY x',
        )
      ).flat(),
      [
        'Union',
        '  Expression (Projection)',
        '    ReadFromTable (a)',
        '  CommonTable (a)',
        '    Expression (Projection)',
        '      Aggregating',
        '        ReadFromTable (blocks)',
        '  LimitBy',
        '    Expression (Projection)',
        '      ArrayJoin',
        '        ReadFromTableFunction (numbers)',
      ],
    )
    assert.deepEqual(await rows('EXPLAIN SYNTAX SELECT  1'), [['SELECT 1']])
    for (const [query, type] of [
      ['EXPLAIN SELECT * FROM base.blocks', 'UNKNOWN_DATABASE'],
      ['EXPLAIN SELECT nosuch FROM blocks', 'UNKNOWN_IDENTIFIER'],
      ['EXPLAIN AST SELECT 1', 'NOT_IMPLEMENTED'],
      ['EXPLAIN DELETE FROM blocks', 'NOT_IMPLEMENTED'],
      ['EXPLAIN ANALYZE SELECT 1', 'NOT_IMPLEMENTED'],
      ['EXPLAIN (DELETE FROM blocks)', 'SYNTAX_ERROR'],
      ["DESCRIBE (SELECT * FROM read_text('/etc/passwd'))", 'UNKNOWN_FUNCTION'],
      ['DESCRIBE (SELECT * FROM duckdb_tables)', 'UNKNOWN_TABLE'],
    ] as const)
      await assert.rejects(rows(query), { type }, query)
  })

  test('DESCRIBE of a query gives the types of its columns', async () => {
    assert.deepEqual(await rows('DESCRIBE (SELECT slot, leader, count() AS n, block_time FROM blocks GROUP BY ALL)'), [
      ['slot', 'UInt64', '', '', '', '', ''],
      ['leader', 'LowCardinality(String)', '', '', '', '', ''],
      ['n', 'UInt64', '', '', '', '', ''],
      ['block_time', "DateTime('UTC')", '', '', '', '', ''],
    ])
    assert.deepEqual(await rows('DESC TABLE (SELECT 1 AS x)'), [['x', 'UInt8', '', '', '', '', '']])
  })

  test('max_result_rows with break ends the result there; the limit of the operator is still an error', async () => {
    const settings = { max_result_rows: '2', result_overflow_mode: 'break' }
    assert.equal((await rows('SELECT slot FROM blocks', { settings })).length, 2)
    await assert.rejects(rows('SELECT slot FROM blocks', { settings: { max_result_rows: '2' } }), {
      type: 'TOO_MANY_ROWS_OR_BYTES',
    })
    const beyond = { max_result_rows: '100000000', result_overflow_mode: 'break' }
    await assert.rejects(rows('SELECT * FROM system.numbers', { settings: beyond }), { type: 'TOO_MANY_ROWS_OR_BYTES' })
    await assert.rejects(rows('SELECT slot FROM blocks', { settings: { max_result_bytes: '20' } }), {
      type: 'TOO_MANY_BYTES',
    })
  })

  test('date_time_output_format', async () => {
    const query =
      "SELECT CAST('2024-03-01 01:02:03' AS DateTime) AS t, 'x', NULL, block_time IS NULL FROM blocks LIMIT 1"
    const first = async (format: string) =>
      ((await rows(query, { settings: { date_time_output_format: format } })) as unknown[][])[0]
    assert.deepEqual(await first('simple'), ['2024-03-01 01:02:03', 'x', null, 0])
    assert.deepEqual(await first('iso'), ['2024-03-01T01:02:03Z', 'x', null, 0])
    assert.deepEqual(await first('unix_timestamp'), ['1709254923', 'x', null, 0])
  })
})
