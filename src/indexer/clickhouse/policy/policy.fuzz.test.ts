import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, isFull, seedOf } from '../../../../test/support/property.ts'
import { PUBLISHED } from '../../duckdb/run-query.ts'
import { QueryError } from '../../query/error.ts'
import { isSymbol, type Token, tokenize } from '../../query/sql-tokens.ts'
import { CANARY, CLICKHOUSE_FUZZ, makeStatement } from '../../query/test-fuzz.ts'
import { applyClickHousePolicy } from './policy.ts'

const COUNT = isFull ? 1_000_000 : 4_000

test(`T14: of ${COUNT} made-up statements those that pass name nothing that is not published`, (t) => {
  const random = createRandom(seedOf(t))
  let passed = 0
  for (let count = 0; count < COUNT; count++) {
    const statement = makeStatement(CLICKHOUSE_FUZZ, random)
    try {
      const { sql } = applyClickHousePolicy(statement, { tables: PUBLISHED, database: 'chain' })
      passed++
      assert.ok(!readsHidden(tokenize(sql)), `${statement} became ${sql}`)
      // Written again it is the same: what the server reads is what was judged.
      assert.equal(applyClickHousePolicy(sql, { tables: PUBLISHED, database: 'chain' }).sql, sql)
    } catch (error) {
      assert.ok(error instanceof QueryError, `${statement}: ${String(error)}`)
    }
  }
  t.diagnostic(`${passed} of ${COUNT} passed: ${Math.round((100 * passed) / COUNT)} %`)
  assert.ok(passed >= COUNT / 5, `${passed} of ${COUNT} passed`)
})

const HIDDEN = new Set([CANARY, 'system', 'chain_base', 'information_schema', 'secret'])

/** Whether a hidden name stands right behind a word that reads tables. (As a column it is nothing to any server.) */
function readsHidden(tokens: readonly Token[]): boolean {
  return tokens.some(({ kind, value }, at) => {
    if ((kind !== 'word' && kind !== 'name') || !HIDDEN.has(value) || !isSymbol(tokens[at + 1], '.')) return false
    const before = tokens.slice(Math.max(0, at - 3), at).findLast((token) => !isSymbol(token, '('))
    return ['FROM', 'JOIN', 'IN'].includes(before?.upper ?? '')
  })
}
