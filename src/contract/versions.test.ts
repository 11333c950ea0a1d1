import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createVersionHeaders, VERSIONS, versionHeaders } from './versions.ts'

const MARK = { deprecatedFrom: '2028-01-31', sunsetOn: '2029-01-31', successor: 'v2' }

test('no headers while no version is deprecated', () => {
  assert.deepEqual(VERSIONS, { v1: null })
  assert.equal(versionHeaders, undefined)
})

test('a response under a deprecated version has deprecation date, sunset and successor', () => {
  const headersFor = createVersionHeaders({ v1: MARK, v2: null })
  for (const url of ['/v1/whoami', '/v1/blocks?count=1', '/api/v1/transactions', '/v1'])
    assert.deepEqual(headersFor?.(url), {
      deprecation: `@${Date.UTC(2028, 0, 31) / 1000}`,
      sunset: 'Wed, 31 Jan 2029 00:00:00 GMT',
      link: '</v2/>; rel="successor-version", </docs/api>; rel="deprecation"',
    })
  for (const url of ['/', '/v2/whoami', '/v11/x', '/health', '/x/v1/y', '/v1x', '?/v1/'])
    assert.equal(headersFor?.(url), undefined, url)
})

test('a version stays twelve months after its deprecation', () => {
  assert.throws(() => createVersionHeaders({ v1: { ...MARK, sunsetOn: '2029-01-30' } }), /12 months/)
  assert.throws(() => createVersionHeaders({ v1: { ...MARK, deprecatedFrom: 'soon' } }), /not a day/)
})

test('every server with versioned paths sends the headers of its version', () => {
  const source = join(import.meta.dirname, '..')
  const servers = globSync('{gateway,sender,execution,indexer,shreds}/**/http.ts', { cwd: source })
  assert.ok(servers.length >= 3)
  const versioned = new Set(
    globSync('{gateway,sender,execution,indexer,shreds}/**/*.ts', { cwd: source, exclude: ['**/*.test.ts'] })
      .filter((path) => /['^]\\?\/(api\\?\/)?v1\\?\//.test(readFileSync(join(source, path), 'utf8')))
      .map((path) => path.split('/')[0] as string),
  )
  assert.ok(versioned.size >= 3, [...versioned].join(' '))
  const sockets = globSync('{gateway,execution}/**/ws.ts', { cwd: source })
  assert.equal(sockets.length, 2)
  const ofModules = [...versioned].map((name) => servers.filter((path) => path.startsWith(`${name}/`)))
  const hasHeaders = (path: string) =>
    readFileSync(join(source, path), 'utf8').match(/headersFor: .*\bversionHeaders\b/) !== null
  for (const paths of ofModules) assert.ok(paths.some(hasHeaders), paths.join(' '))
  for (const path of sockets) assert.ok(hasHeaders(path), path)
})
