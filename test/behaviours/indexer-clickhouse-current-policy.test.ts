import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { AsyncChdb } from 'chdb-wasm'
import { tableDdl, viewDdl } from '../../src/indexer/clickhouse/ddl.ts'
import { applyClickHousePolicy } from '../../src/indexer/clickhouse/policy/policy.ts'
import { CLICKHOUSE_GOOD } from '../../src/indexer/clickhouse/policy/test-good.ts'
import { KEYWORD_ESCAPES } from '../../src/indexer/clickhouse/policy/test-keyword-escapes.ts'
import { EXAMPLE_QUERIES } from '../../src/indexer/example-queries.ts'
import { QueryError } from '../../src/indexer/query/error.ts'
import { parseStatement } from '../../src/indexer/query/statement.ts'
import { CANARY, CLICKHOUSE_FUZZ, makeStatement } from '../../src/indexer/query/test-fuzz.ts'
import { PUBLISHED_NAMES } from '../../src/indexer/schema.ts'
import { createRandom, isFull, repeatsOf, seedOf } from '../support/process/property.ts'

/** This engine takes some ten milliseconds for each; the larger number runs on Debian's server. */
const RUN = repeatsOf({ short: 150, full: 20_000 })
const ESCAPES = isFull ? KEYWORD_ESCAPES : KEYWORD_ESCAPES.filter((_, at) => at % 12 === 0)

const validate = (sql: string) =>
  applyClickHousePolicy(parseStatement(sql), { tables: PUBLISHED_NAMES, database: 'chain' })

describe("the SQL policy against ClickHouse's current engine, 26.5 from npm", () => {
  let database: AsyncChdb
  const run = async (statement: string): Promise<string> => (await database.query(statement, 'TabSeparated')).text()
  before(async () => {
    const moduleUrl = new URL('./chdb.mjs', import.meta.resolve('chdb-wasm')).href
    database = await AsyncChdb.create({ moduleUrl: new URL(moduleUrl).pathname })
    for (const statement of [
      ...tableDdl('chain', 'current'),
      ...viewDdl('chain', 'chain', 'current'),
      "INSERT INTO chain_base.blocks (slot, leader) VALUES (1, 'a'), (2, 'b')",
      `CREATE DATABASE ${CANARY}`,
      `CREATE TABLE ${CANARY}.secret (slot UInt64, leader String, a String) ENGINE = Memory COMMENT '${CANARY}'`,
      `INSERT INTO ${CANARY}.secret VALUES (1, 'a', '${CANARY}')`,
      'USE chain',
    ])
      await run(statement)
  })
  after(() => database?.terminate())

  test('the engine parses the statements that the policy writes', async () => {
    for (const sql of [...CLICKHOUSE_GOOD, ...EXAMPLE_QUERIES.map((query) => query.sql)]) {
      const quoted = validate(sql).sql.replaceAll('\\', '\\\\').replaceAll("'", "\\'")
      assert.notEqual(await run(`SELECT formatQuery('${quoted}')`), '', sql)
    }
  })

  test('T14: escapes that the engine itself would run are refused', async (t) => {
    let leaks = 0
    for (const escape of ESCAPES) {
      const statement = escape.replaceAll('system.processes', `${CANARY}.secret`)
      const response = await run(statement).catch(() => '')
      if (response.includes(CANARY)) leaks++
      assert.throws(() => validate(statement), QueryError, statement)
    }
    t.diagnostic(`${leaks} of ${ESCAPES.length} would have returned the canary`)
    assert.ok(leaks > ESCAPES.length / 20)
  })

  test(`T14: ${RUN} generated statements that pass return no canary`, async (t) => {
    const random = createRandom(seedOf(t))
    let [made, passed, ran] = [0, 0, 0]
    while (passed < RUN) {
      const statement = makeStatement(CLICKHOUSE_FUZZ, random)
      made++
      let sql: string
      try {
        ;({ sql } = validate(statement))
      } catch (error) {
        assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`)
        continue
      }
      passed++
      const response = await run(`${sql} SETTINGS max_execution_time = 5, max_result_rows = 10000`).catch(
        () => undefined,
      )
      if (response !== undefined) ran++
      assert.ok(response?.includes(CANARY) !== true, sql)
    }
    t.diagnostic(`${passed} of ${made} passed: ${Math.round((100 * passed) / made)} %; ${ran} gave rows`)
    assert.ok(passed >= made / 5 && ran > passed / 20)
  })
})
