import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import type { DuckConnection } from '../../platform/db/duckdb.ts'
import { replaceConnectionFunctions } from '../catalogue/connection-functions.ts'
import { policyTables } from '../catalogue/policy-tables.ts'
import { compileStatement } from '../dialect/compile-statement.ts'
import { QueryError } from '../query/error.ts'
import { parseStatement } from '../query/statement.ts'
import { CANARY, DUCK_FUZZ, makeStatement } from '../query/test-fuzz.ts'
import { DATABASE } from '../schema.ts'
import { applySqlPolicy } from './sql-policy.ts'
import { openQueryDatabase } from './test-queries.ts'

const COUNT = repeatsOf({ short: 3_000, full: 1_000_000 })
const RUN = repeatsOf({ short: 300, full: 100_000 })
const CONNECTION = { user: 'u', database: DATABASE, hostName: 'h', uptimeSeconds: 1, timezone: 'UTC' }
/** Statements parsed in one call of the engine. */
const BATCH = 250

/** Hidden tables and views with the canary in their names and values. */
const PLANTED = [
  `CREATE TABLE memory.base.${CANARY} AS SELECT '${CANARY}' AS a, 1 AS slot, 'x' AS leader`,
  `CREATE TABLE memory.main.${CANARY} AS SELECT '${CANARY}' AS a, 1 AS slot`,
  `CREATE VIEW memory.base.${CANARY}_view AS SELECT '${CANARY}' AS a`,
  `COMMENT ON TABLE memory.base.blocks IS '${CANARY}'`,
  `ATTACH ':memory:' AS ${CANARY}_files`,
  `CREATE TABLE ${CANARY}_files.main.t AS SELECT '${CANARY}' AS a`,
]

test(`T14: of ${COUNT} generated statements those that pass return no canary`, async (t) => {
  const random = createRandom(seedOf(t))
  using opened = await openQueryDatabase(PLANTED)
  using connection = await opened.database.connect()
  await isPlanted(connection)
  let [made, passed, run, ran] = [0, 0, 0, 0]
  while (made < COUNT) {
    const statements = Array.from({ length: Math.min(BATCH, COUNT - made) }, () => makeStatement(DUCK_FUZZ, random))
    made += statements.length
    const good = await passing(connection, statements)
    passed += good.length
    for (const statement of good.slice(0, Math.ceil((RUN * statements.length) / (COUNT / 5)))) {
      if (run >= RUN) break
      run++
      try {
        const { body } = await opened.ask(statement, { rowsMax: 1000, secondsMax: 5 })
        ran++
        assert.ok(!Buffer.from(body).toString('latin1').includes(CANARY) || isInLiteral(statement), statement)
      } catch (error) {
        assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`)
      }
    }
  }
  t.diagnostic(`${passed} of ${made} passed: ${Math.round((100 * passed) / made)} %; ${run} were run, ${ran} gave rows`)
  // Names that do not exist are refused before the policy: about one in twelve statements passes.
  assert.ok(passed >= made / 20, `${passed} of ${made} passed`)
  assert.ok(ran > run / 20, `${ran} of ${run} gave rows`)
})

/** Whether a literal of the statement has the canary, so that it may come back without being read anywhere. */
function isInLiteral(statement: string): boolean {
  return parseStatement(statement).tokens.some(({ kind, value }) => kind === 'string' && value.includes(CANARY))
}

/** The statements that the SQL policy allows. */
async function passing(connection: DuckConnection, statements: readonly string[]): Promise<string[]> {
  const rewritten = statements.flatMap((statement) => {
    try {
      const called = replaceConnectionFunctions(parseStatement(statement).tokens, CONNECTION)
      return [{ statement, sql: compileStatement({ tokens: called }).sql }]
    } catch (error) {
      assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`)
      return []
    }
  })
  const values = rewritten.map(({ sql }, at) => `(${at}, '${sql.replaceAll("'", "''")}')`)
  const trees = await connection.run(
    `SELECT i::INTEGER, json_serialize_sql(v::VARCHAR)::VARCHAR FROM (VALUES ${values.join(', ')}) t(i, v)`,
  )
  const good: string[] = []
  for (const [positions = [], texts = []] of trees.pieces()) {
    for (const [at, position] of positions.entries()) {
      const { statement } = rewritten[Number(position)] as { statement: string }
      try {
        applySqlPolicy(String(texts[at]), policyTables(DATABASE))
        good.push(statement)
      } catch (error) {
        assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`)
      }
    }
  }
  return good
}

/** Checks that the canary is readable without the SQL policy. */
async function isPlanted(connection: DuckConnection): Promise<void> {
  for (const sql of [
    `SELECT a FROM memory.base.${CANARY}`,
    'SELECT table_name FROM duckdb_tables()',
    'SELECT database_name FROM duckdb_databases()',
    'SELECT relname FROM pg_class',
    'SELECT table_name FROM information_schema.tables',
  ]) {
    const pieces = [...(await connection.run(sql)).pieces()]
    assert.ok(JSON.stringify(pieces).includes(CANARY), sql)
  }
}
