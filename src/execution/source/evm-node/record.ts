import { ACCESS_CONTEXT, type EventPayload, RECORD_ERROR_TYPE } from '../../../evm/event/payloads.ts'
import type { EventContext, ExecRecorder } from '../../../evm/event/recorder.ts'
import { EVENT } from '../../../evm/event/type.ts'
import type { Hex } from '../../../evm/hex.ts'
import type { AccountAccess } from './accesses.ts'
import type { NodeBlock, NodeTxn } from './client.ts'
import {
  bytesOf,
  bytesOrZero,
  dataOf,
  type Json,
  listOf,
  objectOf,
  quantityOf,
  quantityOrZero,
  wordOf,
} from './values.ts'

const EXTRA_BYTES = 32

/**
 * Records a block of a node as ring events. The node provides no times, so all events of a block have the same time and every duration
 * is zero; there are no perf markers. The block hash is used as consensus id.
 */
export function recordNodeBlock(
  recorder: ExecRecorder,
  { block, txns }: NodeBlock,
  chainId: bigint,
  timeNs: bigint,
): void {
  const context = { timeNs }
  recorder.add('BLOCK_START', startOf(block, txns.length, chainId), context)
  for (const [txnIndex, txn] of txns.entries()) recordTxn(recorder, txn, { timeNs, txnIndex })
  recorder.add(
    'BLOCK_END',
    {
      eth_block_hash: bytesOf(block['hash'], 32, 'hash'),
      state_root: bytesOrZero(block['stateRoot'], 32, 'stateRoot'),
      receipts_root: bytesOrZero(block['receiptsRoot'], 32, 'receiptsRoot'),
      logs_bloom: bytesOrZero(block['logsBloom'], 256, 'logsBloom'),
      gas_used: quantityOf(block['gasUsed'], 'gasUsed'),
    },
    context,
  )
}

function startOf(block: Json, txnCount: number, chainId: bigint): Partial<EventPayload<'BLOCK_START'>> {
  const number = quantityOf(block['number'], 'number')
  // Some chains have longer extra data than the format allows.
  const extra = dataOf(block['extraData'] ?? '0x', 'extraData').slice(2, 2 + EXTRA_BYTES * 2)
  const timestamp = quantityOf(block['timestamp'], 'timestamp')
  return {
    id: bytesOf(block['hash'], 32, 'hash'),
    block_number: number,
    number,
    round: number,
    chain_id: chainId,
    proposal_epoch_nanos: timestamp * 1_000_000_000n,
    parent_eth_hash: bytesOf(block['parentHash'], 32, 'parentHash'),
    ommers_hash: bytesOrZero(block['sha3Uncles'], 32, 'sha3Uncles'),
    beneficiary: bytesOf(block['miner'], 20, 'miner'),
    transactions_root: bytesOrZero(block['transactionsRoot'], 32, 'transactionsRoot'),
    difficulty: BigInt.asUintN(64, quantityOrZero(block['difficulty'], 'difficulty')),
    gas_limit: quantityOf(block['gasLimit'], 'gasLimit'),
    timestamp,
    extra_data: `0x${extra.padEnd(EXTRA_BYTES * 2, '0')}`,
    extra_data_length: BigInt(extra.length / 2),
    prev_randao: bytesOrZero(block['mixHash'], 32, 'mixHash'),
    nonce: bytesOrZero(block['nonce'], 8, 'nonce'),
    base_fee_per_gas: quantityOrZero(block['baseFeePerGas'], 'baseFeePerGas'),
    withdrawals_root: bytesOrZero(block['withdrawalsRoot'], 32, 'withdrawalsRoot'),
    txn_count: BigInt(txnCount),
  }
}

function recordTxn(recorder: ExecRecorder, { txn, receipt, accesses }: NodeTxn, context: EventContext): void {
  const accessList = listOf(txn['accessList'] ?? [], 'accessList').map((entry) => objectOf(entry, 'an access'))
  const authList = listOf(txn['authorizationList'] ?? [], 'authorizationList').map((entry) => objectOf(entry, 'one'))
  const logs = listOf(receipt['logs'], 'logs').map((log) => objectOf(log, 'a log'))
  recorder.add(
    'TXN_HEADER_START',
    { ...headerOf(txn), access_list_count: accessList.length, auth_list_count: authList.length },
    context,
  )
  for (const [index, entry] of accessList.entries()) {
    const storage_keys = listOf(entry['storageKeys'], 'storageKeys').map((key) => bytesOf(key, 32, 'a key'))
    recorder.add(
      'TXN_ACCESS_LIST_ENTRY',
      { index, address: bytesOf(entry['address'], 20, 'address'), storage_keys },
      context,
    )
  }
  for (const [index, entry] of authList.entries())
    recorder.add('TXN_AUTH_LIST_ENTRY', { index, ...authOf(entry) }, context)
  recorder.add('TXN_HEADER_END', {}, context)
  const status = quantityOrZero(receipt['status'], 'status') === 1n
  const gas_used = quantityOf(receipt['gasUsed'], 'gasUsed')
  recorder.add('TXN_EVM_OUTPUT', { status, log_count: logs.length, gas_used }, context)
  for (const [index, log] of logs.entries()) {
    const topics = listOf(log['topics'], 'topics').map((topic) => bytesOf(topic, 32, 'a topic'))
    const data = dataOf(log['data'], 'data')
    recorder.add('TXN_LOG', { index, address: bytesOf(log['address'], 20, 'address'), topics, data }, context)
  }
  if (accesses === undefined) recordMissing(recorder, context)
  else recordAccesses(recorder, accesses, context)
  recorder.add('TXN_END', {}, context)
}

function headerOf(txn: Json): Partial<EventPayload<'TXN_HEADER_START'>> {
  const type = Number(quantityOrZero(txn['type'], 'type'))
  const hasFeeMarket = type >= 2
  const to = txn['to']
  const v = quantityOrZero(txn['v'], 'v')
  const parity = txn['yParity'] === undefined ? (v >= 27n ? 1n - (v % 2n) : v) : quantityOf(txn['yParity'], 'yParity')
  return {
    txn_hash: bytesOf(txn['hash'], 32, 'hash'),
    sender: bytesOf(txn['from'], 20, 'from'),
    txn_type: type,
    // A legacy transaction has its chain id in the signature, if at all (EIP-155).
    chain_id: type === 0 ? (v >= 35n ? (v - 35n) / 2n : 0n) : quantityOrZero(txn['chainId'], 'chainId'),
    nonce: quantityOf(txn['nonce'], 'nonce'),
    gas_limit: quantityOf(txn['gas'], 'gas'),
    max_fee_per_gas: quantityOrZero(hasFeeMarket ? txn['maxFeePerGas'] : txn['gasPrice'], 'the fee'),
    max_priority_fee_per_gas: hasFeeMarket ? quantityOrZero(txn['maxPriorityFeePerGas'], 'the tip') : 0n,
    value: quantityOf(txn['value'], 'value'),
    is_contract_creation: to === null || to === undefined,
    to: bytesOrZero(to, 20, 'to'),
    r: quantityOrZero(txn['r'], 'r'),
    s: quantityOrZero(txn['s'], 's'),
    y_parity: parity === 1n,
    max_fee_per_blob_gas: quantityOrZero(txn['maxFeePerBlobGas'], 'maxFeePerBlobGas'),
    data: dataOf(txn['input'] ?? txn['data'] ?? '0x', 'input'),
    blob_versioned_hashes: listOf(txn['blobVersionedHashes'] ?? [], 'blobVersionedHashes').map((hash) =>
      bytesOf(hash, 32, 'a blob hash'),
    ),
  }
}

function authOf(entry: Json): Partial<EventPayload<'TXN_AUTH_LIST_ENTRY'>> {
  return {
    chain_id: quantityOrZero(entry['chainId'], 'chainId'),
    address: bytesOf(entry['address'], 20, 'address'),
    nonce: quantityOf(entry['nonce'], 'nonce'),
    y_parity: quantityOrZero(entry['yParity'] ?? entry['v'], 'yParity') === 1n,
    r: quantityOf(entry['r'], 'r'),
    s: quantityOf(entry['s'], 's'),
  }
}

/** The accesses are unknown: the block counts for TPS, but gets no contention figures. */
function recordMissing(recorder: ExecRecorder, context: EventContext): void {
  recorder.add(
    'RECORD_ERROR',
    { error_type: RECORD_ERROR_TYPE.missingEvent, dropped_event_type: EVENT.ACCOUNT_ACCESS_LIST_HEADER },
    context,
  )
}

function recordAccesses(recorder: ExecRecorder, accesses: readonly AccountAccess[], context: EventContext): void {
  const access_context = ACCESS_CONTEXT.transaction
  recorder.add('ACCOUNT_ACCESS_LIST_HEADER', { entry_count: accesses.length, access_context }, context)
  for (const [accountIndex, access] of accesses.entries()) {
    const { address, balance, balanceAfter, nonce, nonceAfter, storage, transient } = access
    recorder.add(
      'ACCOUNT_ACCESS',
      {
        index: accountIndex,
        address,
        access_context,
        is_balance_modified: balanceAfter !== undefined,
        is_nonce_modified: nonceAfter !== undefined,
        prestate_nonce: nonce,
        prestate_balance: balance,
        modified_balance: balanceAfter ?? 0n,
        modified_nonce: nonceAfter ?? 0n,
        storage_key_count: storage.length,
        transient_count: transient.length,
      },
      context,
    )
    for (const [isTransient, slots] of [[false, storage] as const, [true, transient] as const]) {
      for (const [index, { key, start, end }] of slots.entries()) {
        const modified = start !== end
        const values: { start_value: Hex; end_value?: Hex } = { start_value: wordOf(start) }
        if (modified) values.end_value = wordOf(end)
        recorder.add(
          'STORAGE_ACCESS',
          { address, index, access_context, modified, transient: isTransient, key, ...values },
          { ...context, accountIndex },
        )
      }
    }
  }
}
