import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { repeatsOf } from '../../core/test-seed.ts'
import { AccountStore } from './accounts.ts'
import type { Account } from './model.ts'

const account = (lamports: number, owner = 'o'): Account => ({
  lamports: BigInt(lamports),
  owner,
  data: new Uint8Array(0),
  executable: false,
  rentEpoch: 0n,
})

test('a read returns the account as of the end of the given slot', () => {
  const store = new AccountStore()
  store.write({ address: 'a', account: account(1), slot: 3, writeVersion: 1n })
  store.write({ address: 'a', account: account(2), slot: 5, writeVersion: 2n })
  store.write({ address: 'a', account: account(3), slot: 5, writeVersion: 3n })
  store.write({ address: 'a', account: null, slot: 7, writeVersion: 4n })
  assert.deepEqual(
    [2, 3, 4, 5, 6, 7].map((slot) => store.read('a', slot)?.lamports ?? null),
    [null, 1n, 1n, 3n, 3n, null],
  )
  assert.equal(store.readNewest('a'), null)
})

test('rooting drops versions that no read can see, and deleted accounts', () => {
  const store = new AccountStore()
  for (let slot = 1; slot <= 5; slot++) store.write({ address: 'a', account: account(slot), slot, writeVersion: 1n })
  store.write({ address: 'b', account: account(1), slot: 1, writeVersion: 1n })
  store.write({ address: 'b', account: null, slot: 4, writeVersion: 1n })
  for (let slot = 1; slot <= 4; slot++) store.root(slot)
  assert.equal(store.read('a', 3), null)
  assert.equal(store.read('a', 4)?.lamports, 4n)
  assert.equal(store.size, 1)
  assert.deepEqual(
    [...store.ownedBy('o', 5)].map(([address]) => address),
    ['a'],
  )
})

test('reads match a list of all writes for every slot at or above the root', () => {
  const addresses = ['a', 'b', 'c']
  const write = fc.record({
    address: fc.constantFrom(...addresses),
    lamports: fc.nat(3),
    owner: fc.constantFrom('p', 'q'),
  })
  fc.assert(
    fc.property(fc.array(fc.array(write, { maxLength: 4 }), { maxLength: 12 }), fc.nat(6), (slots, depth) => {
      const store = new AccountStore()
      const states: Map<string, Account>[] = [new Map()]
      slots.forEach((writes, index) => {
        const slot = index + 1
        const state = new Map(states[index])
        for (const { address, lamports, owner } of writes) {
          const written = lamports === 0 ? null : account(lamports, owner)
          store.write({ address, account: written, slot, writeVersion: 1n })
          if (written) state.set(address, written)
          else state.delete(address)
        }
        states.push(state)
        store.root(slot - depth)
      })
      for (let slot = Math.max(0, slots.length - depth); slot <= slots.length; slot++) {
        const state = states[slot] as Map<string, Account>
        assert.deepEqual(new Map(store.all(slot)), state)
        for (const owner of ['p', 'q']) {
          assert.deepEqual(
            new Map(store.ownedBy(owner, slot)),
            new Map([...state].filter(([, found]) => found.owner === owner)),
          )
        }
      }
    }),
    fuzz(),
  )
})

function fuzz() {
  const seed = Number(process.env['SLUICE_SEED'] ?? Date.now() % 2 ** 31)
  console.log(`SLUICE_SEED=${seed}`)
  return { seed, numRuns: repeatsOf({ short: 200, full: 5000 }) }
}
