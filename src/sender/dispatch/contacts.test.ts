import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { readContacts } from './contacts.ts'

const keyOf = (n: number) => new Uint8Array(32).fill(n).fill(n >> 8, 0, 16)
const nameOf = (n: number) => encodeBase58(keyOf(n))

test('an address is checked when its leader is looked up, once', () => {
  const checked: string[] = []
  const addressOf = (text: string) => {
    checked.push(text)
    return text === 'bad' ? undefined : { ip: text, port: 8009 }
  }
  const nodes = Array.from({ length: 5000 }, (_, n) => ({ pubkey: nameOf(n), tpuQuic: `ip ${n}` }))
  const contacts = readContacts([...nodes, { pubkey: nameOf(5000), tpuQuic: 'bad' }], addressOf)
  assert.deepEqual([contacts?.size, checked], [5001, []])
  for (let n = 0; n < 3; n++) {
    assert.deepEqual(contacts?.find(nameOf(7)), {
      identity: nameOf(7),
      ip: 'ip 7',
      port: 8009,
      address: 'ip 7:8009',
    })
    assert.equal(contacts?.find(nameOf(5000)), undefined)
    assert.equal(contacts?.find(nameOf(5001)), undefined)
  }
  assert.deepEqual(checked, ['ip 7', 'bad'])
})

test('a node whose name is not a public key is unknown; the others are found', () => {
  const names = ['validator-0', '', 'é'.repeat(32), '1'.repeat(6000), encodeBase58(new Uint8Array(31).fill(9))]
  const nodes = [...names, encodeBase58(new Uint8Array(64).fill(9)), nameOf(1)]
  const contacts = readContacts(
    nodes.map((pubkey) => ({ pubkey, tpuQuic: 'x' })),
    (ip) => ({ ip, port: 1 }),
  )
  for (let n = 0; n < 2; n++)
    assert.deepEqual(
      nodes.map((name) => contacts?.find(name)?.identity),
      [...nodes.slice(0, -1).map(() => undefined), nameOf(1)],
    )
})

test('takes nodes with a key and an address, up to a maximum', () => {
  const addressOf = (ip: string) => ({ ip, port: 1 })
  const nodes = [null, 7, {}, { pubkey: 'a' }, { pubkey: 'b', tpuQuic: null }, { pubkey: 3, tpuQuic: 'x' }]
  assert.equal(readContacts(nodes, addressOf)?.size, 0)
  assert.equal(readContacts({ nodes }, addressOf), undefined)
  const many = Array.from({ length: 20_001 }, (_, n) => ({ pubkey: `k${n}`, tpuQuic: 'x' }))
  assert.equal(readContacts(many, addressOf)?.size, 20_000)
})
