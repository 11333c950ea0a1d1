import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readContacts } from './contacts.ts'

test('an address is checked when its leader is looked up, once', () => {
  const checked: string[] = []
  const addressOf = (text: string) => {
    checked.push(text)
    return text === 'bad' ? undefined : { ip: text, port: 8009 }
  }
  const nodes = Array.from({ length: 5000 }, (_, n) => ({ pubkey: `k${n}`, tpuQuic: `ip ${n}` }))
  const contacts = readContacts([...nodes, { pubkey: 'b', tpuQuic: 'bad' }], addressOf)
  assert.deepEqual([contacts?.size, checked], [5001, []])
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(contacts?.find('k7'), { identity: 'k7', ip: 'ip 7', port: 8009 })
    assert.equal(contacts?.find('b'), undefined)
    assert.equal(contacts?.find('unknown'), undefined)
  }
  assert.deepEqual(checked, ['ip 7', 'bad'])
})

test('takes nodes with a key and an address, up to a maximum', () => {
  const addressOf = (ip: string) => ({ ip, port: 1 })
  const nodes = [null, 7, {}, { pubkey: 'a' }, { pubkey: 'b', tpuQuic: null }, { pubkey: 3, tpuQuic: 'x' }]
  assert.equal(readContacts(nodes, addressOf)?.size, 0)
  assert.equal(readContacts({ nodes }, addressOf), undefined)
  const many = Array.from({ length: 20_001 }, (_, n) => ({ pubkey: `k${n}`, tpuQuic: 'x' }))
  assert.equal(readContacts(many, addressOf)?.size, 20_000)
})
