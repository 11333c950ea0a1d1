import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ServiceError } from '../../core/error.ts'
import { AdminError, errorReply } from './errors.ts'

test('docs_url is in an error that has a page of its own, and in no other', () => {
  const context = { requestId: 'r', docsUrl: (code: string) => `https://x/docs/errors/${code}` }
  const urlOf = (error: unknown) => (errorReply(error, context).body as { error: { docs_url?: string } }).error.docs_url
  assert.equal(urlOf(new ServiceError('not-found', 'x')), 'https://x/docs/errors/not-found')
  assert.equal(urlOf(new AdminError('csrf', 'x', 'y')), undefined)
  assert.equal(urlOf(new AdminError('unauthorized', 'x', 'y')), undefined)
  assert.equal(urlOf(new Error('x')), undefined)
  const without = errorReply(new ServiceError('not-found', 'x'), { requestId: 'r' })
  assert.ok(!JSON.stringify(without.body).includes('docs_url'))
})
