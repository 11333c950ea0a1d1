import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ethBlock, txnHashOf } from '../../../test/support/execution/eth-blocks.ts'
import { DESCRIPTOR, DESCRIPTOR_BYTES } from '../../evm/ring/layout.ts'
import { addressOf } from '../../evm/test-block.ts'
import { BlockStore } from './block-store.ts'
import { callMethod, testMethods } from './test-rpc.ts'

test('the content of a block with lost events is an error: null would mean that there is no such block', () => {
  const { block } = ethBlock({ number: 1, txns: 2, logsPerTxn: 1 })
  const words = new Uint32Array(block.descriptors.buffer, block.descriptors.byteOffset)
  // The third event is the output of the first transaction; the block has two.
  words[(2 * DESCRIPTOR_BYTES + DESCRIPTOR.txnId) / 4] = 9
  const store = new BlockStore({ blocksMax: 8, bytesMax: 2 ** 30 }, { stageOf: () => undefined })
  store.add(block)
  const methods = testMethods(store)
  const { hash } = block
  for (const [method, params] of [
    ['eth_getBlockByNumber', ['latest']],
    ['eth_getBlockByNumber', ['0x1', true]],
    ['eth_getBlockByHash', [hash]],
    ['eth_getBlockReceipts', ['0x1']],
    ['eth_getTransactionByHash', [txnHashOf(1, 0)]],
    ['eth_getTransactionByBlockNumberAndIndex', ['0x1', '0x0']],
    ['eth_getTransactionByBlockHashAndIndex', [hash, '0x0']],
    ['eth_getTransactionReceipt', [txnHashOf(1, 0)]],
    ['eth_getLogs', [{ fromBlock: '0x1', toBlock: '0x1', address: addressOf(7) }]],
  ] as const)
    assert.throws(() => callMethod(methods[method], params), { code: -32000, message: /events of block 1/ }, method)
  assert.equal(callMethod(methods.eth_getBlockByNumber, ['0x2']), null)
  assert.equal(callMethod(methods.eth_getTransactionReceipt, [txnHashOf(2, 0)]), null)
})
