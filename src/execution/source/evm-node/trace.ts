import type { Hex } from '../../../evm/hex.ts'
import { type AccountAccess, TxnAccesses } from './accesses.ts'
import { addressOfWord, bytesOf, type Json, listOf, objectOf, quantityOf, quantityOrZero } from './values.ts'

/** Fields of the transaction that struct logs do not contain. */
export type TraceTxn = { from: Hex; to: Hex | null; created: Hex | null; beneficiary: Hex; isSuccess: boolean }

/** Accesses from the prestate tracer: `touched` without and `changed` with diff mode. */
export function accessesOfPrestate(touched: unknown, changed: unknown): AccountAccess[] {
  const accesses = new TxnAccesses()
  for (const [address, before] of accountsOf(touched, 'prestate')) {
    const account = accesses.account(address)
    account.balance = quantityOrZero(before['balance'], 'balance')
    account.nonce = quantityOrZero(before['nonce'], 'nonce')
    for (const [key, value] of storageOf(before)) accesses.read(address, key, value)
  }
  const { pre, post } = objectOf(changed, 'prestate with differences')
  const changedBefore = new Map(accountsOf(pre, 'pre'))
  const changedAfter = new Map(accountsOf(post, 'post'))
  for (const [address, before] of changedBefore) {
    // A slot that is missing afterwards is zero, as are all slots of a destroyed account.
    const after = storageOf(changedAfter.get(address) ?? {})
    for (const [key, value] of storageOf(before)) {
      accesses.read(address, key, value)
      accesses.write(address, key, after.get(key) ?? 0n)
    }
  }
  for (const [address, after] of changedAfter) {
    const account = accesses.account(address)
    if (after['balance'] !== undefined) account.balanceAfter = quantityOf(after['balance'], 'balance')
    if (after['nonce'] !== undefined) account.nonceAfter = quantityOf(after['nonce'], 'nonce')
    for (const [key, value] of storageOf(after)) {
      accesses.read(address, key, 0n)
      accesses.write(address, key, value)
    }
  }
  return accesses.list()
}

function accountsOf(value: unknown, what: string): [Hex, Json][] {
  return Object.entries(objectOf(value, what)).map(([address, account]) => [
    bytesOf(address, 20, 'an address'),
    objectOf(account, 'an account'),
  ])
}

function storageOf(account: Json): Map<bigint, bigint> {
  const storage = account['storage']
  if (storage === undefined || storage === null) return new Map()
  return new Map(
    Object.entries(objectOf(storage, 'storage')).map(([key, value]) => [
      quantityOf(key.startsWith('0x') ? key : `0x${key}`, 'a slot'),
      quantityOf(value, 'a value'),
    ]),
  )
}

/** Longer struct logs are refused: a transaction of 30 million gas has about ten million steps at most. */
const STEPS_MAX = 12_000_000

/** Accesses from struct logs, which have every EVM step with its stack. The calls before a step determine its contract. */
export function accessesOfStructLogs(trace: unknown, txn: TraceTxn): AccountAccess[] {
  const accesses = new TxnAccesses()
  accesses.account(txn.from)
  const first = txn.to ?? txn.created ?? txn.from
  accesses.account(first)
  const steps = listOf(objectOf(trace, 'a trace')['structLogs'], 'structLogs')
  if (steps.length > STEPS_MAX) throw new Error(`a trace has more than ${STEPS_MAX} steps`)
  // For each call depth the contract whose storage is used, and the mark of its first write.
  const owners: Hex[] = [first]
  const marks: number[] = [0]
  const baseDepth = (steps[0] as Step | undefined)?.depth ?? 1
  let depth = 0
  for (let at = 0; at < steps.length; at++) {
    const step = steps[at] as Step
    const nowDepth = step.depth - baseDepth
    // After a call its result is on top of the stack, zero for a failure.
    if (nowDepth < depth && stackAt(step, 0) === 0n) accesses.rollBack(marks[nowDepth + 1] ?? 0)
    depth = nowDepth
    const owner = owners[depth] ?? first
    const next = steps[at + 1] as Step | undefined
    const resultOf = (): bigint | undefined =>
      next !== undefined && next.depth === step.depth ? stackAt(next, 0) : undefined
    switch (step.op) {
      case 'SLOAD':
      case 'TLOAD': {
        const value = resultOf()
        if (value !== undefined) accesses.read(owner, stackAt(step, 0), value, kindOf(step.op))
        break
      }
      case 'SSTORE':
      case 'TSTORE':
        accesses.write(owner, stackAt(step, 0), stackAt(step, 1), kindOf(step.op))
        break
      case 'CALL':
      case 'STATICCALL':
      case 'CALLCODE':
      case 'DELEGATECALL': {
        const target = addressOfWord(stackAt(step, 1))
        accesses.account(target)
        owners[depth + 1] = step.op === 'CALL' || step.op === 'STATICCALL' ? target : owner
        marks[depth + 1] = accesses.mark()
        break
      }
      case 'CREATE':
      case 'CREATE2':
        owners[depth + 1] = createdBy(steps, at)
        marks[depth + 1] = accesses.mark()
        break
      case 'BALANCE':
      case 'EXTCODESIZE':
      case 'EXTCODECOPY':
      case 'EXTCODEHASH':
      case 'SELFDESTRUCT':
        accesses.account(addressOfWord(stackAt(step, 0)))
        break
      default:
    }
  }
  if (!txn.isSuccess) accesses.rollBack(0)
  accesses.account(txn.beneficiary)
  return accesses.list()
}

type Step = { op: string; depth: number; stack?: unknown }

const kindOf = (op: string): 'storage' | 'transient' => (op.startsWith('T') ? 'transient' : 'storage')

/** The n-th word from the top of the stack, in hex with or without 0x. */
function stackAt(step: Step, fromTop: number): bigint {
  const stack = listOf(step.stack, 'the stack of a step')
  const word = stack[stack.length - 1 - fromTop]
  if (typeof word !== 'string' || !/^(?:0x)?[0-9a-fA-F]{1,64}$/.test(word)) throw new Error('a stack word is not hex')
  return BigInt(word.startsWith('0x') ? word : `0x${word}`)
}

/** The address of a new contract is on the stack after its creation, or zero when it failed. */
function createdBy(steps: readonly unknown[], at: number): Hex {
  const { depth } = steps[at] as Step
  for (let later = at + 1; later < steps.length; later++) {
    const step = steps[later] as Step
    if (step.depth <= depth) return addressOfWord(stackAt(step, 0))
  }
  return addressOfWord(0n)
}
