import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { FinalBanks } from './final-banks.ts'

const bank = (id: number, connection = 1) => ({ connection, id: BigInt(id) })

describe('the banks of a slot', () => {
  test('one that died, and all but the finalized one, have lost', () => {
    const banks = new FinalBanks()
    for (const id of [5, 6, 7]) banks.received(10, `hash${id}`, bank(id))
    assert.deepEqual([banks.finalBlockhash(10), banks.lostBlockhashes(10)], [undefined, []])
    banks.died(10, bank(6))
    const lost = () => [5, 6, 7].filter((id) => banks.hasLost(10, bank(id)))
    assert.deepEqual(lost(), [6])
    banks.finalized(10, bank(7))
    assert.deepEqual(lost(), [5, 6])
    assert.deepEqual([banks.finalBlockhash(10), banks.lostBlockhashes(10)], ['hash7', ['hash5', 'hash6']])
  })

  test('a final bank whose block has not come names all others as lost, and its block when it comes', () => {
    const banks = new FinalBanks()
    banks.received(10, 'a', bank(5))
    banks.finalized(10, bank(6))
    assert.deepEqual([banks.finalBlockhash(10), banks.lostBlockhashes(10)], [undefined, ['a']])
    banks.received(10, 'b', bank(6))
    assert.deepEqual([banks.finalBlockhash(10), banks.lostBlockhashes(10)], ['b', ['a']])
  })

  test('a node returned the same block as final, whatever its id is there', () => {
    const banks = new FinalBanks()
    banks.received(10, 'a', bank(5))
    banks.finalized(10, bank(900))
    banks.fetchedFinal(10, 'a')
    assert.deepEqual([banks.finalBlockhash(10), banks.lostBlockhashes(10)], ['a', []])
  })

  test('ids of another connection mean nothing', () => {
    const banks = new FinalBanks()
    assert.equal(banks.areNamed, false)
    banks.received(10, 'a', bank(5))
    banks.finalized(10, bank(6))
    assert.equal(banks.hasLost(10, bank(5, 2)), false)
    assert.deepEqual([banks.finalBlockhash(10), banks.lostBlockhashes(10), banks.areNamed], [undefined, [], true])
  })

  test('memory is bounded in slots and in banks of a slot', () => {
    const banks = new FinalBanks()
    for (let slot = 0; slot < 600; slot++) banks.received(slot, `hash${slot}`, bank(slot))
    assert.deepEqual([banks.blockhashOf(599, bank(599)), banks.blockhashOf(20, bank(20))], ['hash599', undefined])
    for (let id = 0; id < 40; id++) banks.received(700, `hash${id}`, bank(id))
    banks.finalized(700, bank(1000))
    assert.equal(banks.lostBlockhashes(700).length, 16)
  })
})
