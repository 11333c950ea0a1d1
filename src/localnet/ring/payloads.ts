import { PAYLOADS } from '../../evm/event/payloads.ts'
import { EVENT, type EventName } from '../../evm/event/type.ts'
import { writeWord } from './state.ts'
import type { AccountTouch, CallFrame, SlotTouch, Txn, TxnLog } from './txn.ts'

/**
 * Payloads of the events of a transaction, written field by field without intermediate objects, because a busy chain records hundreds
 * of thousands of events per second. Offsets come from the same tables that readers use.
 */
export type Encoded = { readonly type: number; readonly payload: Uint8Array; readonly accountIndex?: number }

export type ChainFacts = { readonly chainId: number; readonly baseFeeGwei: number }

const GWEI = 1_000_000_000n
const EMPTY = new Uint8Array(0)

export const PERF_ENTER: Encoded = { type: EVENT.TXN_PERF_EVM_ENTER, payload: EMPTY }
export const PERF_EXIT: Encoded = { type: EVENT.TXN_PERF_EVM_EXIT, payload: EMPTY }
export const HEADER_END: Encoded = { type: EVENT.TXN_HEADER_END, payload: EMPTY }
export const TXN_END: Encoded = { type: EVENT.TXN_END, payload: EMPTY }

const HEADER = PAYLOADS.TXN_HEADER_START.fields
const OUTPUT = PAYLOADS.TXN_EVM_OUTPUT.fields
const LOG = PAYLOADS.TXN_LOG.fields
const FRAME = PAYLOADS.TXN_CALL_FRAME.fields
const LIST = PAYLOADS.ACCOUNT_ACCESS_LIST_HEADER.fields
const ACCOUNT = PAYLOADS.ACCOUNT_ACCESS.fields
const STORAGE = PAYLOADS.STORAGE_ACCESS.fields

/** An EIP-1559 transaction with a random signature. */
export function headerPayload(txn: Txn, { chainId, baseFeeGwei }: ChainFacts): Encoded {
  const payload = begin('TXN_HEADER_START', txn.data.length)
  payload.set(txn.hash, HEADER.txn_hash[1])
  payload.set(txn.sender.address, HEADER.sender[1])
  payload[HEADER.txn_type[1]] = 2
  setU64(payload, HEADER.chain_id[1], chainId)
  setU64(payload, HEADER.nonce[1], txn.nonce)
  setU64(payload, HEADER.gas_limit[1], txn.gasLimit)
  setGwei(payload, HEADER.max_fee_per_gas[1], baseFeeGwei * 2 + txn.tipGwei)
  setGwei(payload, HEADER.max_priority_fee_per_gas[1], txn.tipGwei)
  setGwei(payload, HEADER.value[1], txn.valueGwei)
  payload.set(txn.to.address, HEADER.to[1])
  payload.set(txn.signature.subarray(0, 32), HEADER.r[1])
  payload.set(txn.signature.subarray(32), HEADER.s[1])
  payload[HEADER.y_parity[1]] = (txn.signature[0] as number) & 1
  payload.writeUInt32LE(txn.data.length, HEADER.data_length[1])
  payload.set(txn.data, PAYLOADS.TXN_HEADER_START.bytes)
  return { type: EVENT.TXN_HEADER_START, payload }
}

export function outputPayload(txn: Txn): Encoded {
  const payload = begin('TXN_EVM_OUTPUT')
  payload[OUTPUT.status[1]] = txn.isSuccess ? 1 : 0
  payload.writeUInt32LE(txn.logs.length, OUTPUT.log_count[1])
  setU64(payload, OUTPUT.gas_used[1], txn.gasUsed)
  payload.writeUInt32LE(txn.frames.length, OUTPUT.call_frame_count[1])
  return { type: EVENT.TXN_EVM_OUTPUT, payload }
}

export function logPayload({ contract, topics, data }: TxnLog, index: number): Encoded {
  const payload = begin('TXN_LOG', topics.length * 32 + data.length)
  payload.writeUInt32LE(index, LOG.index[1])
  payload.set(contract.address, LOG.address[1])
  payload[LOG.topic_count[1]] = topics.length
  payload.writeUInt32LE(data.length, LOG.data_length[1])
  let at: number = PAYLOADS.TXN_LOG.bytes
  for (const topic of topics) {
    payload.set(topic, at)
    at += 32
  }
  payload.set(data, at)
  return { type: EVENT.TXN_LOG, payload }
}

/** EVMC_SUCCESS and EVMC_REVERT of the EVM's C interface. */
const STATUS = { success: 0, revert: 2 } as const

export function framePayload(frame: CallFrame, index: number, txn: Txn): Encoded {
  const payload = begin('TXN_CALL_FRAME', frame.input.length + frame.output.length)
  payload.writeUInt32LE(index, FRAME.index[1])
  payload.set(frame.caller.address, FRAME.caller[1])
  payload.set(frame.target.address, FRAME.call_target[1])
  payload[FRAME.opcode[1]] = frame.opcode
  if (frame.depth === 0) setGwei(payload, FRAME.value[1], txn.valueGwei)
  setU64(payload, FRAME.gas[1], Math.floor(txn.gasLimit * frame.gasShare))
  setU64(payload, FRAME.gas_used[1], Math.floor(txn.gasUsed * frame.gasShare))
  payload.writeInt32LE(txn.isSuccess ? STATUS.success : STATUS.revert, FRAME.evmc_status[1])
  setU64(payload, FRAME.depth[1], frame.depth)
  setU64(payload, FRAME.input_length[1], frame.input.length)
  setU64(payload, FRAME.return_length[1], frame.output.length)
  payload.set(frame.input, PAYLOADS.TXN_CALL_FRAME.bytes)
  payload.set(frame.output, PAYLOADS.TXN_CALL_FRAME.bytes + frame.input.length)
  return { type: EVENT.TXN_CALL_FRAME, payload }
}

/** The accounts accessed, each followed by its storage slots: persistent ones first, then transient ones, each indexed from 0. */
export function* accessPayloads(touches: readonly AccountTouch[], context: number): Generator<Encoded> {
  const list = begin('ACCOUNT_ACCESS_LIST_HEADER')
  list.writeUInt32LE(touches.length, LIST.entry_count[1])
  list[LIST.access_context[1]] = context
  yield { type: EVENT.ACCOUNT_ACCESS_LIST_HEADER, payload: list }
  for (const [accountIndex, touch] of touches.entries()) {
    const transient = touch.slots.filter(({ isTransient }) => isTransient)
    const persistent = touch.slots.filter(({ isTransient }) => !isTransient)
    const counts = { persistent: persistent.length, transient: transient.length }
    yield { type: EVENT.ACCOUNT_ACCESS, payload: accountPayload(touch, accountIndex, context, counts) }
    for (const slots of [persistent, transient])
      for (const [index, slot] of slots.entries())
        yield { type: EVENT.STORAGE_ACCESS, payload: storagePayload(slot, index, context), accountIndex }
  }
}

function accountPayload(
  touch: AccountTouch,
  index: number,
  context: number,
  counts: { persistent: number; transient: number },
): Uint8Array {
  const payload = begin('ACCOUNT_ACCESS')
  const isBalanceModified = touch.balanceGwei !== touch.balanceGweiAfter
  const isNonceModified = touch.nonce !== touch.nonceAfter
  payload.writeUInt32LE(index, ACCOUNT.index[1])
  payload.set(touch.account.address, ACCOUNT.address[1])
  payload[ACCOUNT.access_context[1]] = context
  payload[ACCOUNT.is_balance_modified[1]] = isBalanceModified ? 1 : 0
  payload[ACCOUNT.is_nonce_modified[1]] = isNonceModified ? 1 : 0
  setU64(payload, ACCOUNT.prestate_nonce[1], touch.nonce)
  setGwei(payload, ACCOUNT.prestate_balance[1], touch.balanceGwei)
  payload.set(touch.account.codeHash, ACCOUNT.prestate_code_hash[1])
  if (isBalanceModified) setGwei(payload, ACCOUNT.modified_balance[1], touch.balanceGweiAfter)
  if (isNonceModified) setU64(payload, ACCOUNT.modified_nonce[1], touch.nonceAfter)
  payload.writeUInt32LE(counts.persistent, ACCOUNT.storage_key_count[1])
  payload.writeUInt32LE(counts.transient, ACCOUNT.transient_count[1])
  return payload
}

function storagePayload({ slot, start, end, isTransient }: SlotTouch, index: number, context: number): Uint8Array {
  const payload = begin('STORAGE_ACCESS')
  payload.set(slot.contract.address, STORAGE.address[1])
  payload.writeUInt32LE(index, STORAGE.index[1])
  payload[STORAGE.access_context[1]] = context
  payload[STORAGE.modified[1]] = start === end ? 0 : 1
  payload[STORAGE.transient[1]] = isTransient ? 1 : 0
  payload.set(slot.key, STORAGE.key[1])
  writeWord(payload, STORAGE.start_value[1], start)
  if (start !== end) writeWord(payload, STORAGE.end_value[1], end)
  return payload
}

/** Zeroed bytes from Node's buffer pool: a separate allocation per event would cost more than filling it. */
function begin(name: EventName, tailBytes = 0): Buffer {
  return Buffer.allocUnsafe(PAYLOADS[name].bytes + tailBytes).fill(0)
}

/** Sets the low 64 bits of an integer field; the high bits are already zero. */
function setU64(payload: Buffer, at: number, value: number): void {
  payload.writeUInt32LE(value >>> 0, at)
  payload.writeUInt32LE(Math.floor(value / 2 ** 32), at + 4)
}

/** An amount of gwei as wei in a 256-bit field. */
function setGwei(payload: Buffer, at: number, gwei: number): void {
  const wei = BigInt(Math.floor(gwei)) * GWEI
  payload.writeBigUInt64LE(BigInt.asUintN(64, wei), at)
  payload.writeBigUInt64LE(wei >> 64n, at + 8)
}
