import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../core/error.ts'
import { formatError } from './errors.ts'

test('a fault inside tells the operator what to do, not to ask the operator', () => {
  const said = formatError(new TypeError('boom'), false)
  assert.match(said, /^error: boom\n {2}fix: .*npm ci.*sluice doctor/)
  assert.doesNotMatch(said, /Tell the operator/)
  assert.match(said, /\n {4}at /, 'with the place, for a report')
})

test('an expected error has its own advice and no stack', () => {
  const said = formatError(new ServiceError('not-found', 'there is no x', { fix: 'List them.' }), false)
  assert.equal(said, 'error: there is no x\n  fix: List them.\n  see: docs/errors.md#not-found')
})
