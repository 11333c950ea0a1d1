import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readMetadata } from './metadata.ts'

const ENDPOINTS = ['authorization_endpoint', 'token_endpoint', 'jwks_uri', 'userinfo_endpoint']

/** The discovery document of an issuer whose endpoints are all at one URL, except those that are given. */
const read = (issuer: string, given: Record<string, unknown> = {}) =>
  readMetadata(
    { issuer, ...Object.fromEntries(ENDPOINTS.map((name) => [name, 'https://login.example.net/x'])), ...given },
    issuer,
  )

test('every endpoint of an issuer with https is an https URL without credentials', () => {
  assert.equal(read('https://login.example.net').userinfoEndpoint, 'https://login.example.net/x')
  for (const name of ENDPOINTS)
    for (const url of [
      'http://login.example.net/x',
      'http://127.0.0.1/x',
      'http://localhost/x',
      'javascript:alert(1)',
      'https://user@login.example.net/x',
      'https://:password@login.example.net/x',
      '/x',
      7,
      null,
    ])
      assert.throws(
        () => read('https://login.example.net', { [name]: url }),
        { code: 'issuer-unavailable', message: `${name} of the discovery document is not an https URL` },
        `${name}: ${url}`,
      )
})

test('an issuer on loopback may have its endpoints there without TLS, and nowhere else', () => {
  const issuer = 'http://127.0.0.1:8080'
  assert.equal(read(issuer, { jwks_uri: 'http://localhost:8080/x' }).jwksUri, 'http://localhost:8080/x')
  assert.throws(() => read(issuer, { jwks_uri: 'http://login.example.net/x' }), /jwks_uri .* not an https URL/)
})

test('the userinfo endpoint may be missing; the others and the exact name of the issuer may not', () => {
  assert.equal(read('https://i.example', { userinfo_endpoint: undefined }).userinfoEndpoint, undefined)
  for (const name of ENDPOINTS.slice(0, 3))
    assert.throws(() => read('https://i.example', { [name]: undefined }), new RegExp(`has no ${name}`))
  for (const issuer of ['https://i.example/', 'https://I.example', undefined])
    assert.throws(() => read('https://i.example', { issuer }), /another issuer/)
})
