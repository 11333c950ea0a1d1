import type { Work } from '../core/work.ts'
import type { EthBlock, EthBlockHead } from './eth-block.ts'
import type { Layout } from './event/payload-layout.ts'
import { PAYLOADS } from './event/payloads.ts'
import { EVENT } from './event/type.ts'
import { fromHex } from './hex.ts'
import type { EventBatch } from './ring/event-batch.ts'

/**
 * The size of a block in RLP (Ethereum yellow paper, appendix B), the field `size` of its JSON. Only lengths are summed up, from the
 * recorded bytes: nothing is encoded and no transaction is decoded.
 */
export function* blockRlpBytes(block: EthBlock): Work<number> {
  let txns = 0
  for (let index = 0; index < block.txnCount; index++) {
    yield
    txns += transactionBytes(block, index)
  }
  const hasWithdrawals = hasWithdrawalsRoot(block)
  // The ring has neither ommers nor withdrawals: both lists count as empty.
  return listBytes(headerBytes(block) + listBytes(txns) + EMPTY_BYTES + (hasWithdrawals ? EMPTY_BYTES : 0))
}

const EMPTY_BYTES = 1
const HASH_BYTES = 33
const ADDRESS_BYTES = 21
const BLOOM_BYTES = 259
const NONCE_BYTES = 9

function headerBytes(head: EthBlockHead): number {
  const { start, end } = head
  const hashes = [start.parent_eth_hash, start.ommers_hash, end.state_root, start.transactions_root, end.receipts_root]
  let bytes = (hashes.length + 1) * HASH_BYTES + ADDRESS_BYTES + BLOOM_BYTES + NONCE_BYTES
  for (const value of [start.difficulty, start.number, start.gas_limit, end.gas_used, start.timestamp])
    bytes += integerBytes(value)
  bytes += stringBytes(Number(start.extra_data_length), fromHex(start.extra_data)[0] ?? 0)
  bytes += integerBytes(start.base_fee_per_gas)
  // As in the JSON: withdrawalsRoot, two blob counters of zero, parentBeaconBlockRoot and requestsHash.
  if (hasWithdrawalsRoot(head)) bytes += HASH_BYTES + 2 * EMPTY_BYTES + 2 * HASH_BYTES
  return listBytes(bytes)
}

function hasWithdrawalsRoot({ start }: EthBlockHead): boolean {
  return !/^0x0*$/.test(start.withdrawals_root)
}

function transactionBytes(block: EthBlock, index: number): number {
  const { batch } = block
  let header: Fields | undefined
  let accessList = 0
  let authList = 0
  for (const at of block.eventsOf(index)) {
    const type = batch.type(at)
    if (type === EVENT.TXN_HEADER_START) header = fieldsOf(PAYLOADS.TXN_HEADER_START, batch, at)
    else if (type === EVENT.TXN_ACCESS_LIST_ENTRY) accessList += accessBytes(batch, at)
    else if (type === EVENT.TXN_AUTH_LIST_ENTRY) authList += authorizationBytes(batch, at)
  }
  if (header === undefined) return 0
  const type = header.byte('txn_type')
  let bytes = header.byte('is_contract_creation') !== 0 ? EMPTY_BYTES : ADDRESS_BYTES
  bytes += stringBytes(header.word('data_length'), header.tailByte)
  for (const name of ['nonce', 'gas_limit', 'max_fee_per_gas', 'value', 'r', 's']) bytes += header.integerBytes(name)
  if (type === 0) return listBytes(bytes + integerBytes(legacyV(header)))
  // The parity is 0 or 1: one byte.
  bytes += header.integerBytes('chain_id') + listBytes(accessList) + 1
  if (type >= 2) bytes += header.integerBytes('max_priority_fee_per_gas')
  if (type === 3)
    bytes +=
      header.integerBytes('max_fee_per_blob_gas') + listBytes(header.word('blob_versioned_hash_length') * HASH_BYTES)
  if (type === 4) bytes += listBytes(authList)
  // The type byte and the list, as one string.
  return stringBytes(1 + listBytes(bytes), type)
}

function accessBytes(batch: EventBatch, at: number): number {
  const keys = fieldsOf(PAYLOADS.TXN_ACCESS_LIST_ENTRY, batch, at).word('storage_key_count')
  return listBytes(ADDRESS_BYTES + listBytes(keys * HASH_BYTES))
}

function authorizationBytes(batch: EventBatch, at: number): number {
  const field = fieldsOf(PAYLOADS.TXN_AUTH_LIST_ENTRY, batch, at)
  let bytes = ADDRESS_BYTES + 1
  for (const name of ['chain_id', 'nonce', 'r', 's']) bytes += field.integerBytes(name)
  return listBytes(bytes)
}

function legacyV(header: Fields): bigint {
  const chainId = header.integer('chain_id')
  const parity = BigInt(header.byte('y_parity'))
  return chainId === 0n ? 27n + parity : 35n + 2n * chainId + parity
}

type Fields = {
  byte(name: string): number
  word(name: string): number
  integer(name: string): bigint
  /** Bytes of an integer in RLP. */
  integerBytes(name: string): number
  /** The first byte after the struct; 0 where there is none. */
  readonly tailByte: number
}

/** Reads single fields of a recorded payload without decoding it. */
function fieldsOf(shape: Layout, batch: EventBatch, at: number): Fields {
  const { payloadBytes: bytes } = batch
  const from = batch.payloadAt[at] as number
  const view = new DataView(bytes.buffer, bytes.byteOffset + from, batch.payloadSize(at))
  const offsetOf = (name: string): number => (shape.fields[name] as readonly [string, number])[1]
  const limbsOf = (name: string): number => (shape.fields[name]?.[0] === 'u256' ? 4 : 1)
  return {
    byte: (name) => view.getUint8(offsetOf(name)),
    word: (name) => view.getUint32(offsetOf(name), true),
    integer(name) {
      let value = 0n
      for (let limb = limbsOf(name) - 1; limb >= 0; limb--)
        value = (value << 64n) | view.getBigUint64(offsetOf(name) + limb * 8, true)
      return value
    },
    integerBytes(name) {
      const offset = offsetOf(name)
      let length = limbsOf(name) * 8
      while (length > 0 && view.getUint8(offset + length - 1) === 0) length -= 1
      return stringBytes(length, view.getUint8(offset))
    },
    tailByte: view.byteLength > shape.bytes ? view.getUint8(shape.bytes) : 0,
  }
}

function integerBytes(value: bigint): number {
  return value < 0x80n ? 1 : 1 + Math.ceil(value.toString(16).length / 2)
}

/** A single byte below 0x80 is its own encoding. */
function stringBytes(length: number, firstByte: number): number {
  return length === 1 && firstByte < 0x80 ? 1 : prefixBytes(length) + length
}

function listBytes(content: number): number {
  return prefixBytes(content) + content
}

/** Size of the length prefix of a string or list: one byte, and above 55 also the bytes of the length. */
function prefixBytes(length: number): number {
  return length <= 55 ? 1 : 1 + Math.ceil(length.toString(16).length / 2)
}
