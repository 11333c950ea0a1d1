import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createdAddress, headerJson } from './eth-json.ts'
import type { ExecEvent } from './event/exec-event.ts'
import type { EventPayload } from './event/payloads.ts'
import type { ExecRecorder } from './event/recorder.ts'
import { createFoldRing } from './fold/test-fold.ts'
import { decodeAll } from './ring/test-ring.ts'
import { addressOf, idOf, slotOf } from './test-block.ts'
import { assembleBlock, type DecodedBlock, receiptOf, transactionOf } from './test-eth-block.ts'

type Header = Partial<EventPayload<'TXN_HEADER_START'>>

const at = { timeNs: 1n }

function readEvents(record: (recorder: ExecRecorder) => void): ExecEvent[] {
  const { recorder, reader } = createFoldRing()
  record(recorder)
  recorder.flush()
  return decodeAll(reader).map((decoded) => (decoded.ok ? decoded.event : assert.fail(decoded.reason)))
}

/** A block of one transaction, with a base fee of 100. */
function blockWith(header: Header, more: (recorder: ExecRecorder) => void = () => {}): DecodedBlock {
  const events = readEvents((recorder) => {
    recorder.add('BLOCK_START', { id: idOf(1), number: 1n, txn_count: 1n, base_fee_per_gas: 100n }, at)
    recorder.add('TXN_HEADER_START', header, { ...at, txnIndex: 0 })
    more(recorder)
    recorder.add('TXN_EVM_OUTPUT', { status: true, gas_used: 21_000n }, { ...at, txnIndex: 0 })
    recorder.add('BLOCK_END', { gas_used: 21_000n }, at)
  })
  return assembleBlock(events) ?? assert.fail('the block is not whole')
}

describe('transactions by type', () => {
  const table: [name: string, header: Header, has: Record<string, unknown>, lacks: string[]][] = [
    [
      'legacy without chain id',
      { txn_type: 0, max_fee_per_gas: 7n, y_parity: true },
      { type: '0x0', v: '0x1c', gasPrice: '0x7' },
      ['chainId', 'yParity', 'accessList', 'maxFeePerGas', 'maxPriorityFeePerGas'],
    ],
    [
      'legacy with chain id',
      { txn_type: 0, chain_id: 143n, y_parity: true },
      { v: `0x${(35 + 2 * 143 + 1).toString(16)}`, chainId: '0x8f' },
      ['yParity'],
    ],
    [
      'EIP-2930',
      { txn_type: 1, chain_id: 1n, max_fee_per_gas: 9n },
      { type: '0x1', accessList: [], yParity: '0x0', v: '0x0', gasPrice: '0x9' },
      ['maxFeePerGas', 'authorizationList'],
    ],
    [
      'EIP-1559 below its maximum',
      { txn_type: 2, max_fee_per_gas: 150n, max_priority_fee_per_gas: 20n },
      { maxFeePerGas: '0x96', maxPriorityFeePerGas: '0x14', gasPrice: '0x78' },
      ['maxFeePerBlobGas'],
    ],
    [
      'EIP-1559 at its maximum',
      { txn_type: 2, max_fee_per_gas: 110n, max_priority_fee_per_gas: 20n },
      { gasPrice: '0x6e' },
      [],
    ],
    [
      'EIP-4844',
      { txn_type: 3, max_fee_per_blob_gas: 5n, blob_versioned_hashes: [slotOf(1), slotOf(2)], data: '0xabcd' },
      { maxFeePerBlobGas: '0x5', blobVersionedHashes: [slotOf(1), slotOf(2)], input: '0xabcd', accessList: [] },
      ['authorizationList'],
    ],
    ['EIP-7702', { txn_type: 4 }, { type: '0x4', authorizationList: [], accessList: [] }, ['blobVersionedHashes']],
    ['contract creation', { txn_type: 2, is_contract_creation: true }, { to: null }, []],
    ['a call', { txn_type: 2, to: addressOf(5) }, { to: addressOf(5) }, []],
  ]
  for (const [name, header, has, lacks] of table) {
    test(name, () => {
      const json = transactionOf(blockWith(header), 0)
      for (const [key, value] of Object.entries(has)) assert.deepEqual(json[key], value, key)
      for (const key of lacks) assert(!(key in json), key)
    })
  }

  test('access list and authorization list come from their own events', () => {
    const position = { ...at, txnIndex: 0 }
    const block = blockWith({ txn_type: 4, access_list_count: 1, auth_list_count: 1 }, (recorder) => {
      recorder.add('TXN_ACCESS_LIST_ENTRY', { address: addressOf(3), storage_keys: [slotOf(8)] }, position)
      recorder.add(
        'TXN_AUTH_LIST_ENTRY',
        { chain_id: 1n, address: addressOf(4), nonce: 6n, y_parity: true, r: 255n },
        position,
      )
    })
    const json = transactionOf(block, 0)
    assert.deepEqual(json['accessList'], [{ address: addressOf(3), storageKeys: [slotOf(8)] }])
    assert.deepEqual(json['authorizationList'], [
      { chainId: '0x1', address: addressOf(4), nonce: '0x6', yParity: '0x1', r: '0xff', s: '0x0' },
    ])
  })
})

test('the receipt of a contract creation has the new address', () => {
  const block = blockWith({ txn_type: 2, is_contract_creation: true, sender: addressOf(9), nonce: 3n })
  const json = receiptOf(block, 0)
  assert.deepEqual([json['to'], json['contractAddress']], [null, createdAddress(addressOf(9), 3n)])
})

test('withdrawalsRoot is present when it is not zero', () => {
  const block = blockWith({})
  assert(!('withdrawalsRoot' in headerJson(block)))
  const withRoot = { ...block, start: { ...block.start, withdrawals_root: slotOf(1) } }
  assert.equal(headerJson(withRoot)['withdrawalsRoot'], slotOf(1))
})

test('cumulative gas and log indexes follow the index order for any order of arrival', () => {
  const events = readEvents((recorder) => {
    recorder.add('BLOCK_START', { txn_count: 2n }, at)
    for (const txnIndex of [1, 0]) {
      recorder.add('TXN_HEADER_START', {}, { ...at, txnIndex })
      recorder.add('TXN_EVM_OUTPUT', { gas_used: BigInt(10 + txnIndex), log_count: 2 }, { ...at, txnIndex })
      for (const index of [0, 1]) recorder.add('TXN_LOG', { index, topics: [slotOf(index)] }, { ...at, txnIndex })
    }
    recorder.add('BLOCK_END', {}, at)
  })
  const block = assembleBlock(events) ?? assert.fail()
  const receipts = [0, 1].map((index) => receiptOf(block, index))
  assert.deepEqual(
    receipts.map((receipt) => receipt['cumulativeGasUsed']),
    ['0xa', '0x15'],
  )
  const logs = receipts.flatMap((receipt) => receipt['logs'] as { logIndex: string; topics: string[] }[])
  assert.deepEqual(
    logs.map(({ logIndex }) => logIndex),
    ['0x0', '0x1', '0x2', '0x3'],
  )
  const missing = ['BLOCK_START', 'BLOCK_END', 'TXN_HEADER_START', 'TXN_EVM_OUTPUT', 'TXN_LOG']
  for (const name of missing) {
    const at0 = events.findIndex((event) => event.name === name)
    assert.equal(assembleBlock(events.toSpliced(at0, 1)), undefined, `without one ${name}`)
  }
})
