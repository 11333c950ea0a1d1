import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toWire } from './print.ts'

test('JSON has snake_case names, ISO times, no revision of a record, and the earlier names of renamed fields', () => {
  assert.deepEqual(toWire({ id: 'sub_1', revision: 4, createdAt: 0, out: [{ gapsReported: 2 }] }), {
    id: 'sub_1',
    created_at: '1970-01-01T00:00:00.000Z',
    out: [{ gaps_reported: 2, gaps_told: 2 }],
  })
  assert.deepEqual(toWire({ message: 'ok', revision: 4 }), { message: 'ok', says: 'ok', revision: 4 })
})
