import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Hex } from '../../../evm/hex.ts'
import type { AccountAccess } from './accesses.ts'
import { accessesOfPrestate, accessesOfStructLogs } from './trace.ts'

const address = (digit: string): Hex => `0x${digit.repeat(40)}`
const [sender, first, second, miner] = [address('a'), address('b'), address('c'), address('d')]
const word = (value: number): Hex => `0x${value.toString(16).padStart(64, '0')}`
const txn = { from: sender, to: first, created: null, beneficiary: miner, isSuccess: true }

const step = (depth: number, op: string, ...stack: (number | Hex)[]) => ({
  depth,
  op,
  stack: stack.map((value) => (typeof value === 'number' ? word(value) : `0x${value.slice(2).padStart(64, '0')}`)),
})

/** Slots as `address digit:key start>end`, transient ones with a t. */
function slotsOf(accesses: readonly AccountAccess[]): string[] {
  return accesses.flatMap(({ address: owner, storage, transient }) => [
    ...storage.map(({ key, start, end }) => `${owner[2]}:${Number(key)} ${start}>${end}`),
    ...transient.map(({ key, start, end }) => `${owner[2]}:t${Number(key)} ${start}>${end}`),
  ])
}

describe('struct logs', () => {
  test('return the slots of each contract that were read and changed', () => {
    assert.throws(() => accessesOfStructLogs({ structLogs: [{ depth: 1, op: 'SSTORE' }] }, txn), /stack/)
    // What a load or a call gives lies on top of the stack of the step after it.
    const steps = [
      step(1, 'SLOAD', 5),
      step(1, 'POP', 40),
      step(1, 'CALL', 0, 0, 0, 0, 0, second, 9999),
      step(2, 'SLOAD', 5),
      step(2, 'PUSH1', 41),
      step(2, 'SSTORE', 77, 5),
      step(2, 'TSTORE', 1, 3),
      step(2, 'STOP'),
      step(1, 'POP', 1),
      step(1, 'DELEGATECALL', 0, 0, 0, 0, second, 9999),
      step(2, 'SSTORE', 8, 6),
      step(2, 'STOP'),
      step(1, 'STOP', 1),
    ]
    const accesses = accessesOfStructLogs({ structLogs: steps }, txn)
    assert.deepEqual(slotsOf(accesses), ['b:5 40>40', 'b:6 0>8', 'c:5 41>77', 'c:t3 0>1'])
    assert.deepEqual(
      accesses.map((access) => access.address),
      [sender, first, second, miner],
    )
  })

  test('a call that fails changes nothing, though it touched; so does a transaction that fails', () => {
    const steps = [
      step(1, 'SSTORE', 3, 1),
      step(1, 'CALL', 0, 0, 0, 0, 0, second, 9999),
      step(2, 'SSTORE', 5, 2),
      step(2, 'REVERT', 0, 0),
      step(1, 'STOP', 0),
    ]
    assert.deepEqual(slotsOf(accessesOfStructLogs({ structLogs: steps }, txn)), ['b:1 0>3', 'c:2 0>0'])
    const failed = accessesOfStructLogs({ structLogs: steps }, { ...txn, isSuccess: false })
    assert.deepEqual(slotsOf(failed), ['b:1 0>0', 'c:2 0>0'])
  })

  test('a contract being created works on its own storage', () => {
    const steps = [
      step(1, 'CREATE', 0, 0, 0),
      step(2, 'SSTORE', 1, 0),
      step(2, 'RETURN', 0, 0),
      step(1, 'STOP', second),
    ]
    assert.deepEqual(slotsOf(accessesOfStructLogs({ structLogs: steps }, txn)), ['c:0 0>1'])
  })

  test('a plain transfer has no steps, and touches sender, receiver and miner', () => {
    assert.deepEqual(
      accessesOfStructLogs({ structLogs: [] }, txn).map((access) => access.address),
      [sender, first, miner],
    )
  })
})

describe('the prestate tracer', () => {
  test('returns everything touched, and in diff mode what was changed', () => {
    const touched = {
      [sender]: { balance: '0x64', nonce: 7 },
      [first]: {
        balance: '0x0',
        code: '0x60',
        storage: { [word(1)]: word(10), [word(2)]: word(20), [word(3)]: word(0) },
      },
    }
    const changed = {
      pre: {
        [sender]: { balance: '0x64', nonce: 7 },
        [first]: { storage: { [word(1)]: word(10), [word(2)]: word(20) } },
      },
      post: {
        [sender]: { balance: '0x5f', nonce: 8 },
        [first]: { storage: { [word(1)]: word(11), [word(3)]: word(30) } },
      },
    }
    const accesses = accessesOfPrestate(touched, changed)
    assert.deepEqual(slotsOf(accesses), ['b:1 10>11', 'b:2 20>0', 'b:3 0>30'])
    assert.deepEqual(
      accesses.map(({ balance, balanceAfter, nonce, nonceAfter }) => [balance, balanceAfter, nonce, nonceAfter]),
      [
        [100n, 95n, 7n, 8n],
        [0n, undefined, 0n, undefined],
      ],
    )
  })

  test('nonsense is refused', () => {
    for (const touched of [
      null,
      [],
      { x: {} },
      { [first]: { storage: { zz: '0x1' } } },
      { [first]: { balance: -1 } },
    ]) {
      assert.throws(() => accessesOfPrestate(touched, { pre: {}, post: {} }))
    }
  })
})
