import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { test } from 'node:test'
import { ERRORS } from '../contract/errors.ts'
import { ServiceError } from '../core/error.ts'
import { docsUrl, formatError } from './errors.ts'

test('an internal error has a fix for the operator, not for customers', () => {
  const message = formatError(new TypeError('boom'), false)
  assert.match(message, /^error: boom\n {2}fix: .*npm ci.*sluice doctor/)
  assert.doesNotMatch(message, /Tell the operator/)
  assert.match(message, /\n {4}at /, 'with the place, for a report')
})

test('an expected error has its own fix and no stack', () => {
  const message = formatError(new ServiceError('not-found', 'there is no x', { fix: 'List them.' }), false)
  assert.equal(message, `error: there is no x\n  fix: List them.\n  see: ${docsUrl('not-found')}`)
})

test('the documentation of every error is a file of the installation, with a heading for it', () => {
  for (const code of [...Object.keys(ERRORS), 'no-such-code']) {
    const url = new URL(docsUrl(code))
    assert.match(readFileSync(url, 'utf8'), new RegExp(`^## ${url.hash.slice(1)}$`, 'm'))
  }
})
