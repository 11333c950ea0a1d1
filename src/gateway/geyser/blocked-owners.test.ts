import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { createBlockedOwners } from './blocked-owners.ts'

const SYSTEM = '11111111111111111111111111111111'
const TOKEN = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const SAME_ENDING = 'AokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'

test('finds each owner at its place in a request', () => {
  const owners = createBlockedOwners([SYSTEM, TOKEN, SAME_ENDING])
  const request = Buffer.from(`x${TOKEN}y${SAME_ENDING}${SYSTEM}`)
  const at = (text: string) => owners.find(request, request.indexOf(text), request.indexOf(text) + text.length)
  for (const owner of [SYSTEM, TOKEN, SAME_ENDING]) assert.equal(at(owner), owner)
})

test('finds nothing in another account with the same ending, in a part of an owner, or where it is empty', () => {
  const owners = createBlockedOwners([TOKEN])
  const find = (text: string) => owners.find(Buffer.from(text), 0, text.length)
  for (const other of [SAME_ENDING, TOKEN.slice(1), `1${TOKEN}`, TOKEN.slice(-4), TOKEN.slice(-3), '', SYSTEM])
    assert.equal(find(other), undefined, other)
  assert.equal(owners.isEmpty, false)
  assert.equal(createBlockedOwners([]).isEmpty, true)
})

test('agrees with a set of texts', (t) => {
  const texts = fc.string({ unit: fc.constantFrom('a', 'b', 'é'), maxLength: 6 })
  const agrees = fc.property(fc.array(texts, { maxLength: 8 }), texts, (owners, text) => {
    const bytes = Buffer.from(text)
    const expected = owners.includes(text) ? text : undefined
    assert.equal(createBlockedOwners(owners).find(bytes, 0, bytes.length), expected)
  })
  checkProperty(t, agrees, 1000, 100_000)
})
