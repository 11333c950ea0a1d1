import assert from 'node:assert/strict'
import { test } from 'node:test'
import { oidcOptions } from './options.ts'
import { personOf, roleOfGroups } from './person.ts'

const ISSUER = 'https://login.example.net/realms/ops'
const OPTIONS = oidcOptions.parse({ issuer: ISSUER, clientId: 'sluice', roles: { ops: 'support' } })
const person = (sub: string, claims: object = {}) => personOf(sub, { groups: ['ops'], ...claims }, OPTIONS)
const idOf = (sub: string): string => person(sub).id

test('the id of a person is issuer and subject; a long one, or one that is not plain ASCII, is a hash of both', () => {
  const prefix = 'oidc:login.example.net/realms/ops#'
  assert.equal(idOf('u-1'), `${prefix}u-1`)
  const longest = 'x'.repeat(160 - prefix.length)
  assert.equal(idOf(longest), `${prefix}${longest}`)
  const hashed = [`${longest}x`, `${longest}y`, 'ü', 'a b', 'a\u001b[2J'].map(idOf)
  for (const id of hashed) assert.match(id, /^oidc:login\.example\.net#sha256:[0-9a-f]{40}$/)
  assert.equal(new Set(hashed).size, hashed.length)
  const elsewhere = personOf('ü', { groups: ['ops'] }, { ...OPTIONS, issuer: 'https://login.example.net/realms/test' })
  assert.notEqual(elsewhere.id, idOf('ü'), 'the same subject of another issuer')
})

test('the name is one short line of text; without one it is the subject', () => {
  assert.equal(person('u-1', { name: 'n'.repeat(81) }).name, 'n'.repeat(80))
  for (const name of [undefined, '', ' \u202e ', 7, ['Ann']]) assert.equal(person('u-1', { name }).name, 'u-1')
  assert.equal(person('\u202e').name, 'unnamed')
})

test('groups that no configuration can name are not kept', () => {
  const groups = ['g'.repeat(256), 'g'.repeat(257), 'ops']
  assert.deepEqual(person('u-1', { groups }).groups, ['g'.repeat(256), 'ops'])
})

test('only entries of the configuration give a role, not what an object inherits', () => {
  assert.equal(roleOfGroups(['ops'], { ops: 'owner' }), 'owner')
  assert.equal(roleOfGroups(['ops'], Object.create({ ops: 'owner' }) as Record<string, 'owner'>), undefined)
})
