import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../../test/support/process/property.ts'
import { QueryError } from '../../query/error.ts'
import { isSymbol, type Token, tokenize } from '../../query/sql-tokens.ts'
import { parseStatement } from '../../query/statement.ts'
import { CANARY, CLICKHOUSE_FUZZ, makeStatement } from '../../query/test-fuzz.ts'
import { PUBLISHED_NAMES } from '../../schema.ts'
import { applyClickHousePolicy } from './policy.ts'

const validate = (sql: string) =>
  applyClickHousePolicy(parseStatement(sql), { tables: PUBLISHED_NAMES, database: 'chain' })

const COUNT = repeatsOf({ short: 4_000, full: 1_000_000 })

test(`T14: of ${COUNT} generated statements those that pass name only published tables`, (t) => {
  const random = createRandom(seedOf(t))
  let passed = 0
  for (let count = 0; count < COUNT; count++) {
    const statement = makeStatement(CLICKHOUSE_FUZZ, random)
    try {
      const { sql } = validate(statement)
      passed++
      assert.ok(!readsHidden(tokenize(sql)), `${statement} became ${sql}`)
      // Checking the written statement gives the same one: the server reads what was checked.
      assert.equal(validate(sql).sql, sql)
    } catch (error) {
      assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`)
    }
  }
  t.diagnostic(`${passed} of ${COUNT} passed: ${Math.round((100 * passed) / COUNT)} %`)
  assert.ok(passed >= COUNT / 5, `${passed} of ${COUNT} passed`)
})

const HIDDEN = new Set([CANARY, 'system', 'chain_base', 'information_schema', 'secret'])

/** Whether a hidden name follows a keyword that reads tables. (As a column name it is harmless.) */
function readsHidden(tokens: readonly Token[]): boolean {
  return tokens.some(({ kind, value }, at) => {
    if ((kind !== 'word' && kind !== 'name') || !HIDDEN.has(value) || !isSymbol(tokens[at + 1], '.')) return false
    const before = tokens.slice(Math.max(0, at - 3), at).findLast((token) => !isSymbol(token, '('))
    return ['FROM', 'JOIN', 'IN'].includes(before?.upper ?? '')
  })
}
