import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseError } from '@clickhouse/client'
import { QueryError } from './error.ts'

test('a client reads the type and the complete message, whatever names the message contains', () => {
  for (const [message, read] of [
    ['Unknown expression READ_CSV.', 'Unknown expression READ_CSV. '],
    ['Unknown expression (READ_CSV).', 'Unknown expression [READ_CSV]. '],
    ['Unknown expressions (_FOO), (1ABC), (ABC).', 'Unknown expressions [_FOO], [1ABC], [ABC]. '],
    ['DateTime64(3) and (A_B) are not names of errors.', 'DateTime64(3) and (A_B) are not names of errors. '],
    ['Unknown expression Exception: a.', 'Unknown expression exception a. '],
  ] as const) {
    const error = parseError(new QueryError('UNKNOWN_IDENTIFIER', message).body)
    assert.deepEqual([error.message, 'type' in error && error.type], [read, 'UNKNOWN_IDENTIFIER'])
  }
})
