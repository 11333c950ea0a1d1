import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../core/error.ts'
import { formatError } from './errors.ts'

test('an internal error has a fix for the operator, not for customers', () => {
  const message = formatError(new TypeError('boom'), false)
  assert.match(message, /^error: boom\n {2}fix: .*npm ci.*sluice doctor/)
  assert.doesNotMatch(message, /Tell the operator/)
  assert.match(message, /\n {4}at /, 'with the place, for a report')
})

test('an expected error has its own fix and no stack', () => {
  const message = formatError(new ServiceError('not-found', 'there is no x', { fix: 'List them.' }), false)
  assert.equal(message, 'error: there is no x\n  fix: List them.\n  see: docs/errors.md#not-found')
})
