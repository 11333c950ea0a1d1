import type { EthBlockHead, EthReceipt, EthTransaction } from './eth-block.ts'
import type { EventPayload } from './event/payloads.ts'
import { fromHex, type Hex, toHex, toQuantity } from './hex.ts'
import { keccak256 } from './keccak256.ts'

type Json = Record<string, unknown>

const ZERO_HASH: Hex = `0x${'0'.repeat(64)}`

/** A header as in eth_getBlockByNumber, without size, uncles and transactions. */
export function headerJson({ start, end }: EthBlockHead): Json {
  return {
    hash: end.eth_block_hash,
    parentHash: start.parent_eth_hash,
    sha3Uncles: start.ommers_hash,
    miner: start.beneficiary,
    stateRoot: end.state_root,
    transactionsRoot: start.transactions_root,
    receiptsRoot: end.receipts_root,
    logsBloom: end.logs_bloom,
    difficulty: toQuantity(start.difficulty),
    number: toQuantity(start.number),
    gasLimit: toQuantity(start.gas_limit),
    gasUsed: toQuantity(end.gas_used),
    timestamp: toQuantity(start.timestamp),
    extraData: start.extra_data.slice(0, 2 + 2 * Number(start.extra_data_length)),
    mixHash: start.prev_randao,
    nonce: start.nonce,
    baseFeePerGas: toQuantity(start.base_fee_per_gas),
    ...(start.withdrawals_root === ZERO_HASH ? {} : { withdrawalsRoot: start.withdrawals_root }),
    blobGasUsed: '0x0',
    excessBlobGas: '0x0',
    parentBeaconBlockRoot: ZERO_HASH,
    requestsHash: ZERO_HASH,
    totalDifficulty: '0x0',
  }
}

/** A transaction as in eth_getTransactionByHash. */
export function transactionJson(block: EthBlockHead, { index, header, accessList, authList }: EthTransaction): Json {
  const isLegacy = header.txn_type === 0
  const hasFeeMarket = header.txn_type >= 2
  return {
    type: toQuantity(header.txn_type),
    ...(isLegacy && header.chain_id === 0n ? {} : { chainId: toQuantity(header.chain_id) }),
    nonce: toQuantity(header.nonce),
    gas: toQuantity(header.gas_limit),
    ...(hasFeeMarket && {
      maxFeePerGas: toQuantity(header.max_fee_per_gas),
      maxPriorityFeePerGas: toQuantity(header.max_priority_fee_per_gas),
    }),
    ...(header.txn_type === 3 && {
      maxFeePerBlobGas: toQuantity(header.max_fee_per_blob_gas),
      blobVersionedHashes: header.blob_versioned_hashes,
    }),
    to: header.is_contract_creation ? null : header.to,
    value: toQuantity(header.value),
    ...(!isLegacy && {
      accessList: accessList.map((entry) => ({ address: entry.address, storageKeys: entry.storage_keys })),
    }),
    ...(header.txn_type === 4 && { authorizationList: authList.map(authorizationJson) }),
    input: header.data,
    r: toQuantity(header.r),
    s: toQuantity(header.s),
    ...(!isLegacy && { yParity: toQuantity(header.y_parity ? 1 : 0) }),
    v: toQuantity(signatureV(header)),
    hash: header.txn_hash,
    ...positionJson(block, index),
    from: header.sender,
    gasPrice: toQuantity(effectiveGasPrice(header, block.start.base_fee_per_gas)),
    blockTimestamp: toQuantity(block.start.timestamp),
  }
}

/** A receipt as in eth_getTransactionReceipt, without its logs, of which there may be many. */
export function receiptJson(block: EthBlockHead, txn: EthReceipt, bloom: Hex): Json {
  const { index, header, output, cumulativeGas } = txn
  return {
    type: toQuantity(header.txn_type),
    status: output.status ? '0x1' : '0x0',
    cumulativeGasUsed: toQuantity(cumulativeGas),
    logsBloom: bloom,
    transactionHash: header.txn_hash,
    ...positionJson(block, index),
    gasUsed: toQuantity(output.gas_used),
    effectiveGasPrice: toQuantity(effectiveGasPrice(header, block.start.base_fee_per_gas)),
    from: header.sender,
    to: header.is_contract_creation ? null : header.to,
    contractAddress: header.is_contract_creation ? createdAddress(header.sender, header.nonce) : null,
  }
}

/** Log number `at` of a transaction. */
export function logJson(block: EthBlockHead, txn: EthReceipt, log: EventPayload<'TXN_LOG'>, at: number): Json {
  return {
    address: log.address,
    topics: log.topics,
    data: log.data,
    ...positionJson(block, txn.index),
    blockTimestamp: toQuantity(block.start.timestamp),
    transactionHash: txn.header.txn_hash,
    logIndex: toQuantity(txn.firstLogIndex + at),
    removed: false,
  }
}

function positionJson({ start, end }: EthBlockHead, index: number): Json {
  return { blockHash: end.eth_block_hash, blockNumber: toQuantity(start.number), transactionIndex: toQuantity(index) }
}

function authorizationJson(entry: EventPayload<'TXN_AUTH_LIST_ENTRY'>): Json {
  return {
    chainId: toQuantity(entry.chain_id),
    address: entry.address,
    nonce: toQuantity(entry.nonce),
    yParity: toQuantity(entry.y_parity ? 1 : 0),
    r: toQuantity(entry.r),
    s: toQuantity(entry.s),
  }
}

/** The price paid for one unit of gas. */
function effectiveGasPrice(header: EthReceipt['header'], baseFee: bigint): bigint {
  if (header.txn_type < 2) return header.max_fee_per_gas
  const price = baseFee + header.max_priority_fee_per_gas
  return price < header.max_fee_per_gas ? price : header.max_fee_per_gas
}

/** Typed transactions have the parity; legacy ones 27 or 28, or the chain id as of EIP-155. */
function signatureV({ txn_type, chain_id, y_parity }: EventPayload<'TXN_HEADER_START'>): bigint {
  const parity = y_parity ? 1n : 0n
  if (txn_type !== 0) return parity
  return chain_id === 0n ? 27n + parity : 35n + 2n * chain_id + parity
}

/** Address of a contract created by a transaction: the last 20 bytes of the hash of the RLP list (sender, nonce). */
export function createdAddress(sender: Hex, nonce: bigint): Hex {
  const senderBytes = fromHex(sender)
  const nonceBytes = encodeNonce(nonce)
  const list = Uint8Array.of(0x80 + senderBytes.length, ...senderBytes, ...nonceBytes)
  return toHex(keccak256(Uint8Array.of(0xc0 + list.length, ...list)), 12)
}

/** RLP of an integer: below 0x80 the byte itself, zero the empty string, others prefixed with their length. */
function encodeNonce(nonce: bigint): Uint8Array {
  if (nonce === 0n) return Uint8Array.of(0x80)
  if (nonce < 0x80n) return Uint8Array.of(Number(nonce))
  const digits = nonce.toString(16)
  const bytes = fromHex(digits.length % 2 === 0 ? digits : `0${digits}`)
  return Uint8Array.of(0x80 + bytes.length, ...bytes)
}
