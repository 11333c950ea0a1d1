import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oidcOptions } from './options.ts'

const VALID = { issuer: 'https://login.example.net', clientId: 'sluice', roles: { ops: 'owner' } }
const faultsOf = (changes: object): string[] =>
  oidcOptions
    .safeParse({ ...VALID, ...changes })
    .error?.issues.map(({ path, message }) => `${path.join('.')}: ${message}`) ?? []

test('the issuer is an https URL without credentials, query and fragment; http is for loopback hosts', () => {
  for (const issuer of ['https://i.example/realms/ops/', 'http://127.0.0.1:8080', 'http://localhost:1', 'http://[::1]'])
    assert.deepEqual(faultsOf({ issuer }), [], issuer)
  for (const [issuer, message] of [
    ['i.example', /^issuer: give a URL/],
    ['ftp://i.example', /^issuer: give a URL/],
    ['https://user@i.example', /remove the user and password/],
    ['https://:password@i.example', /remove the user and password/],
    ['https://i.example/?', /remove the query/],
    ['https://i.example/#', /remove the query/],
    ['http://i.example', /http is not encrypted/],
    ['http://127.0.0.1.example', /http is not encrypted/],
  ] as const)
    assert.match(faultsOf({ issuer }).join(), message, issuer)
})

test('secrets are references, scopes have openid, and groups have roles that exist', () => {
  assert.deepEqual(faultsOf({ clientSecret: 'env:SECRET', scopes: ['openid'] }), [])
  assert.match(faultsOf({ clientSecret: 'a literal secret' }).join(), /^clientSecret: secrets are given by reference/)
  assert.match(faultsOf({ scopes: ['profile'] }).join(), /^scopes: add openid/)
  assert.match(faultsOf({ scopes: ['openid', 'a b'] }).join(), /^scopes\.1: give one scope/)
  assert.match(faultsOf({ roles: {} }).join(), /^roles: give at least one group/)
  assert.match(faultsOf({ roles: { ops: 'root' } }).join(), /^roles\.ops: /)
  const many = Object.fromEntries(Array.from({ length: 201 }, (_, n) => [`g${n}`, 'owner']))
  assert.match(faultsOf({ roles: many }).join(), /^roles: give at most 200 groups/)
  for (const label of ['', '<b>', 'a\nb', 'x'.repeat(41)]) assert.match(faultsOf({ label }).join(), /^label: /, label)
  assert.match(faultsOf({ groupsClaim: 'a b' }).join(), /^groupsClaim: give the name of a claim/)
  for (const sessionHours of [0, 25, 1.5]) assert.match(faultsOf({ sessionHours }).join(), /^sessionHours: /)
})
