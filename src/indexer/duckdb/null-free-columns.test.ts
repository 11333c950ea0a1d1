import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { type DuckConnection, type DuckDatabase, openDuckDatabase } from '../../platform/db/duckdb.ts'
import { readValue } from './customer-schema.ts'
import { nullFreeColumns } from './null-free-columns.ts'
import { readParseTree } from './parse-tree.ts'

describe('columns that cannot contain NULL, by the statement', () => {
  let database: DuckDatabase
  let connection: DuckConnection
  before(async () => {
    database = await openDuckDatabase(':memory:')
    connection = await database.connect()
  })
  after(() => {
    connection?.[Symbol.dispose]()
    database?.[Symbol.dispose]()
  })

  const CASES: readonly (readonly [sql: string, nullFree: readonly boolean[]])[] = [
    ['SELECT slot, leader FROM blocks', [true, true]],
    ["SELECT 1, 'a', NULL", [true, true, false]],
    ['SELECT slot + 1, slot / 2, slot // 2, slot % 2 FROM blocks', [true, false, false, false]],
    ['SELECT count(*), count(slot), sum(slot), max(slot) FROM blocks', [true, true, false, false]],
    ['SELECT a.slot, b.slot FROM blocks a JOIN blocks b ON a.slot = b.parent_slot', [true, true]],
    ['SELECT a.slot, b.slot FROM blocks a, blocks b', [true, true]],
    ['SELECT a.slot, b.slot FROM blocks a LEFT JOIN blocks b ON a.slot = b.parent_slot', [false, false]],
    ['SELECT a.slot, b.slot FROM blocks a POSITIONAL JOIN transactions b', [false, false]],
    ['SELECT slot FROM blocks a JOIN blocks b USING (slot)', [false]],
    ['SELECT to_slot FROM coverage', [false]],
    ['SELECT n FROM (SELECT slot AS n FROM blocks)', [true]],
    ['SELECT n FROM (SELECT max(slot) AS n FROM blocks)', [false]],
    ['WITH c AS (SELECT slot AS n FROM blocks) SELECT n, n + 1 FROM c', [true, true]],
    ['WITH blocks AS (SELECT NULL AS slot) SELECT slot FROM blocks', [false]],
    ['SELECT slot FROM blocks UNION ALL SELECT NULL', [false]],
    ['SELECT leader, count(*) FROM blocks GROUP BY leader', [true, true]],
    ['SELECT leader, count(*) FROM blocks GROUP BY ROLLUP (leader)', [false, false]],
    ["SELECT CASE WHEN slot > 1 THEN 'a' ELSE 'b' END, CASE WHEN slot > 1 THEN 'a' END FROM blocks", [true, false]],
    ['SELECT CAST(slot AS VARCHAR), TRY_CAST(leader AS INTEGER) FROM blocks', [true, false]],
    ['SELECT row_number() OVER (), lag(slot) OVER () FROM blocks', [true, false]],
    ['SELECT nosuch(slot), (SELECT slot FROM blocks LIMIT 1) FROM blocks', [false, false]],
  ]
  for (const [sql, expected] of CASES) {
    test(sql, async () => {
      const tree = readParseTree(
        String(await readValue(connection, 'SELECT json_serialize_sql($sql::VARCHAR)', { sql })),
      )
      assert.deepEqual(nullFreeColumns(tree, expected.length), expected)
    })
  }
})
