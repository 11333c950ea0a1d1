import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createPathRules } from './path-rules.ts'

const refuse = createPathRules(
  { '/': ['GET', 'POST'], '/health': ['GET'], '/v1/items/{id}/close': ['POST'] },
  { isPreflighted: true, upgradePaths: ['/', '/ws'] },
)

test('a listed path and method pass; GET includes HEAD', () => {
  for (const [method, path] of [
    ['GET', '/'],
    ['HEAD', '/'],
    ['POST', '/'],
    ['HEAD', '/health'],
    ['POST', '/v1/items/a%2Fb/close'],
  ] as const)
    assert.equal(refuse(method, path), undefined, `${method} ${path}`)
})

test('a path that does not exist is 404 with those that do, and is not echoed', () => {
  const paths = ['/', '/health', '/v1/items/{id}/close', '/ws']
  for (const path of ['/secret', '/health/', '//', '', '*', '/v1/items//close', '/v1/items/a/close/', '/Health']) {
    const refusal = refuse('GET', path)
    assert.deepEqual([refusal?.status, refusal?.body['error'], refusal?.body['paths']], [404, 'not-found', paths], path)
    assert(!JSON.stringify(refusal).includes('secret'))
  }
  assert.match(String(refuse('GET', '/health/')?.body['message']), /without the slash/)
  assert.doesNotMatch(String(refuse('GET', '/nowhere/')?.body['message']), /without the slash/)
})

test('a path that looks like a token is 404 with where a token belongs, and is not echoed', () => {
  for (const path of [`/slc_${'x'.repeat(38)}`, '/0f8fad5b-d9cb-469f-a165-70867728950e/']) {
    const refusal = refuse('POST', path)
    assert.equal(refusal?.status, 404)
    assert.match(String(refusal.body['message']), /no token is read from a path: send it in a header/)
    assert(!JSON.stringify(refusal).includes(path.slice(1, 12)))
  }
  assert.doesNotMatch(String(refuse('POST', '/v1/nowhere')?.body['message']), /token/)
})

test('a method that the path does not take is 405 with Allow', () => {
  const refusal = refuse('POST', '/health')
  assert.equal(refusal?.status, 405)
  assert.equal(refusal.headers['allow'], 'GET, HEAD, OPTIONS')
  assert.deepEqual(refusal.body, { error: 'method-not-allowed', message: 'this path takes GET', methods: ['GET'] })
  assert.equal(refuse('PUT', '/')?.headers['allow'], 'GET, HEAD, POST, OPTIONS')
  assert.equal(refuse('get', '/health')?.status, 405)
  const closed = createPathRules({ '/metrics': ['GET'] }, { isPreflighted: false })
  assert.equal(closed('OPTIONS', '/metrics')?.headers['allow'], 'GET, HEAD')
})

test('a path outside the list has the methods that the listener gives', () => {
  assert.equal(refuse('GET', '/page/main.js', ['GET']), undefined)
  assert.equal(refuse('POST', '/page/main.js', ['GET'])?.status, 405)
})

test('a path that is only a WebSocket is 426 for a read and 405 for anything else', () => {
  for (const method of ['GET', 'HEAD']) {
    const refusal = refuse(method, '/ws')
    assert.deepEqual([refusal?.status, refusal?.headers['upgrade']], [426, 'websocket'])
  }
  const other = refuse('POST', '/ws')
  assert.deepEqual([other?.status, other?.headers['allow']], [405, 'GET, HEAD, OPTIONS'])
})
