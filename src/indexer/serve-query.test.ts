import assert from 'node:assert/strict'
import { test } from 'node:test'
import { systemClock } from '../platform/process/clock.ts'
import { QueryError } from './query/error.ts'
import { createServeQuery, type Exchange, type ServeQueryDeps } from './serve-query.ts'

/** A statement for the operator's ClickHouse, by a customer with or without quota; records what is read, charged and refunded. */
async function forward(statement: string, hasQuota: boolean): Promise<readonly string[]> {
  const seen: string[] = []
  const query = { query: '', parameters: {}, settings: {}, database: 'solana', defaultFormat: 'TabSeparated' }
  const body = Object.defineProperty(Buffer.from(statement), 'toString', {
    value: () => (seen.push('read'), statement),
  })
  const request = { headers: {} }
  const admission = hasQuota
    ? { ok: true }
    : { ok: false, limitName: 'callsPerMonth', limitSize: 1, retryAfterMs: 1_000 }
  const deps = {
    clock: systemClock,
    access: {
      admit: () => (seen.push(hasQuota ? 'charged' : 'refused'), admission),
      refund: () => seen.push('refunded'),
    },
    engine: {
      proxy: {
        validate() {
          throw new QueryError('UNKNOWN_TABLE', 'Unknown table.')
        },
      },
    },
    coverageSlot: () => 1,
  }
  const options = { limits: { secondsMax: 1, rowsMax: 1, bytesMax: 1_000_000 }, readSecondsMax: 1, displayName: 'test' }
  const serve = createServeQuery(options, deps as unknown as ServeQueryDeps)
  const exchange = {
    request,
    query,
    body,
    caller: { subscription: { id: 's' } },
    login: { username: 'u' },
  } as unknown as Exchange
  await assert.rejects(serve(exchange), QueryError)
  return seen
}

test('with ClickHouse a statement is read only after the quota, and one that is refused is not charged', async () => {
  assert.deepEqual(await forward(`SHOW FUNCTIONS LIKE '${'a'.repeat(250_000)}'`, false), ['refused'])
  for (const statement of ['SELECT 1 FROM secrets', 'SHOW NOTHING', "SELECT 'open"])
    assert.deepEqual(await forward(statement, true), ['charged', 'read', 'refunded'], statement)
})
