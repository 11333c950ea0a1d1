import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MISTAKES } from '../../../test/support/indexer/dialect/mistakes.ts'
import { openQueryDatabase } from '../duckdb/test-queries.ts'
import { QueryError } from '../query/error.ts'

test('60 and more typical mistakes get the error of ClickHouse and a text that names the cause', async () => {
  assert.ok(MISTAKES.length >= 60)
  using opened = await openQueryDatabase()
  for (const [error, named, statement] of MISTAKES)
    await assert.rejects(opened.ask(statement), (cause: unknown) => {
      assert.ok(cause instanceof QueryError, `${statement}: ${String(cause)}`)
      assert.equal(cause.type, error, `${statement}: ${cause.message}`)
      assert.ok(cause.message.includes(named), `${statement}: ${cause.message}`)
      return true
    })
})
