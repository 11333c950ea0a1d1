import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRandom, seedOf } from '../../../test/support/process/property.ts'
import { acceptsGzip, isJsonRequest, splitTarget } from './request-headers.ts'

test('gzip is accepted when it is listed with a weight above zero, or covered by *', () => {
  const accepting = ['gzip', 'GZIP', 'x-gzip', 'br, gzip', 'br,\tgzip', ', gzip ,', 'gzip;q=1.0', 'gzip ; Q=0.001']
  for (const value of [...accepting, '*', 'br;q=0, *;q=0.1', 'gzip;q=1.']) assert(acceptsGzip(value), value)
})

test('gzip is not accepted when it is absent, has the weight zero or is malformed', () => {
  assert(!acceptsGzip(undefined))
  const refusing = ['', 'br', 'identity', 'gzip;q=0', 'gzip; q=0.000', '*;q=0', 'gzip;q=0, *', '*, gzip;q=0', 'gzipped']
  const malformed = [
    'gzip;q=2',
    'gzip;q=0.0001',
    'gzip;q=-1',
    'gzip;q',
    'gzip;level=9',
    'gzip q=1',
    '\xa0gzip',
    'gz ip',
  ]
  for (const value of [...refusing, ...malformed]) assert(!acceptsGzip(value), value)
})

test('the weight of gzip decides, at any index of the list', (t) => {
  const random = createRandom(seedOf(t))
  for (let i = 0; i < 500; i++) {
    const others = ['br', 'deflate;q=0.5', 'identity;q=0', '', 'zstd ;q=1'].filter(() => random(2) === 0)
    const weight = random(1001)
    const gzip = `${' '.repeat(random(3))}gzip${random(2) === 0 ? ' ' : ''};q=${(weight / 1000).toFixed(3)}`
    const any = random(2) === 0 ? ['*'] : []
    const list = [...others, ...any].toSpliced(random(others.length + 1), 0, gzip).join(',')
    assert.equal(acceptsGzip(list), weight > 0, list)
  }
})

test('JSON is accepted by its content type, in both of its names', () => {
  const types = ['application/json', 'Application/JSON', 'application/json; charset=utf-8', 'application/json \t;a="b"']
  const named = [
    'application/json;',
    'application/json ',
    'application/json-rpc',
    'application/json-rpc; charset=utf-8',
  ]
  for (const contentType of [...types, ...named]) {
    for (const origin of [undefined, 'https://a.example']) assert(isJsonRequest({ contentType, origin }), contentType)
  }
})

test('other content types are refused; none is accepted unless the request comes from a web page', () => {
  const types = [
    '',
    'text/plain',
    'application/json5',
    'application/json+x',
    'application/jsonp;a=b',
    'application/json-rpcx',
    ' application/json',
  ]
  for (const contentType of [...types, 'text/html; application/json', 'application/json, text/plain']) {
    for (const origin of [undefined, 'https://a.example']) assert(!isJsonRequest({ contentType, origin }), contentType)
  }
  assert(isJsonRequest({ contentType: undefined, origin: undefined }))
  assert(!isJsonRequest({ contentType: undefined, origin: 'https://a.example' }))
  assert(!isJsonRequest({ contentType: undefined, origin: 'null' }))
})

test('a target is split at its first question mark', () => {
  assert.deepEqual(splitTarget('/'), { path: '/', query: '' })
  assert.deepEqual(splitTarget('/a/b?c=d?e'), { path: '/a/b', query: 'c=d?e' })
  assert.deepEqual(splitTarget('//a?'), { path: '//a', query: '' })
  assert.deepEqual(splitTarget(undefined), { path: '/', query: '' })
  assert.deepEqual(splitTarget('?a'), { path: '/', query: 'a' })
  assert.deepEqual(splitTarget('*'), { path: '*', query: '' })
})

test('the absolute form of a target loses scheme and host', () => {
  assert.deepEqual(splitTarget('http://host:80/a?b'), { path: '/a', query: 'b' })
  assert.deepEqual(splitTarget('HTTPS://[::1]:80'), { path: '/', query: '' })
  assert.deepEqual(splitTarget('http://host?a=/b'), { path: '/', query: 'a=/b' })
  assert.deepEqual(splitTarget('/http://host/a'), { path: '/http://host/a', query: '' })
})

test('path and query of any target in origin form give the target back', (t) => {
  const random = createRandom(seedOf(t))
  for (let i = 0; i < 500; i++) {
    const target = `/${Array.from({ length: random(12) }, () => 'a/?&=%:'[random(7)]).join('')}`
    const { path, query } = splitTarget(target)
    assert(!path.includes('?'), target)
    assert.equal(target.includes('?') ? `${path}?${query}` : path, target)
  }
})
