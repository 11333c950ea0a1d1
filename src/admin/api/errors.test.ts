import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ServiceError } from '../../core/error.ts'
import { AdminError, errorReply, STATUS } from './errors.ts'

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

test('docs/admin-api.md lists every code with its status', () => {
  const page = readFileSync(join(import.meta.dirname, '../../../docs/admin-api.md'), 'utf8')
  const rows = page.slice(page.indexOf('| status | code |')).split('\n\n')[0]?.split('\n').slice(2) ?? []
  const listed = rows.flatMap((row) => {
    const [, statuses = '', codes = ''] = row.split('|')
    return [...codes.matchAll(/`([a-z-]+)`/g)].map(([, code = '']) => [code, statuses] as const)
  })
  const documented = listed.filter(([code]) => code in STATUS)
  assert.deepEqual(new Set(documented.map(([code]) => code)), new Set(Object.keys(STATUS)))
  for (const [code, statuses] of documented) assert.ok(statuses.includes(String(STATUS[code])), code)
})
