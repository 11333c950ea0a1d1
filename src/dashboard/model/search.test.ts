import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { heldText, joinResults, namedContracts, routeOf } from './search.ts'

const A = `0x${'a'.repeat(40)}` as const
const B = `0x${'b'.repeat(40)}` as const
const C = `0x${'c'.repeat(40)}` as const
const NAMES = new Map([
  [A, 'Token 10'],
  [B, 'Token 1'],
  [C, 'My token'],
])

describe('the search of the page', () => {
  test('finds names of this browser in any case, the closest first', () => {
    const found = (query: string) => namedContracts(NAMES, query).map((result) => 'name' in result && result.name)
    assert.deepEqual(found('token'), ['Token 1', 'Token 10', 'My token'])
    assert.deepEqual(found('TOKEN 1'), ['Token 1', 'Token 10'])
    assert.deepEqual(found('nothing'), [])
    assert.deepEqual(found('1'), [], 'a block number, not a part of a name')
  })

  test('lists a contract once, and only the one whose whole name it is', () => {
    const named = namedContracts(NAMES, 'token 1')
    const fromService = [{ kind: 'contract', address: B, name: 'Token 1' }] as const
    assert.deepEqual(
      joinResults(named, fromService, 'token 1').map((result) => 'address' in result && result.address),
      [B],
    )
    const both = joinResults(namedContracts(NAMES, 'oken'), fromService, 'oken')
    assert.equal(both.length, 3)
  })

  test('opens an address that nothing is known of, and finds nothing else', () => {
    assert.deepEqual(joinResults([], [], A.toUpperCase().replace('0X', '0x')), [
      { kind: 'contract', address: A, name: null },
    ])
    assert.deepEqual(joinResults([], [], 'nonsense'), [])
  })

  test('opens a transaction in its block', () => {
    const route = routeOf({ kind: 'transaction', hash: '0x1', block_number: 7, index: 30 })
    assert.deepEqual(route, { view: 'block', number: 7, txn: 30 })
  })

  test('names the blocks that are held', () => {
    assert.equal(heldText([]), 'No block is held yet.')
    assert.equal(
      heldText([
        { from: 1, to: 5 },
        { from: 9, to: 12 },
      ]),
      'Held are blocks 1 to 5, 9 to 12.',
    )
  })
})
