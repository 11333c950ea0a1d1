import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { ethBlock } from '../../../test/support/execution/eth-blocks.ts'
import { checkProperty } from '../../../test/support/process/property.ts'
import { DESCRIPTOR, DESCRIPTOR_BYTES } from '../../evm/ring/layout.ts'
import { addressOf, slotOf } from '../../evm/test-block.ts'
import { BlockStore } from './block-store.ts'
import { HeldBlock } from './held-block.ts'
import { callMethod, countingMeter, testMethods } from './test-rpc.ts'

type Log = { address: string; topics: string[] }

function storeOf(...messages: ReturnType<typeof ethBlock>[]): BlockStore {
  const store = new BlockStore({ blocksMax: 64, bytesMax: 2 ** 30 }, { stageOf: () => undefined })
  for (const { block } of messages) store.add(block)
  return store
}

describe('eth_getLogs', () => {
  const blocks = [1, 2, 3, 4, 5].map((number) =>
    ethBlock({ number, txns: 2, logsPerTxn: number === 4 ? 0 : 2, contract: number, hasNoBloom: number === 5 }),
  )
  const methods = testMethods(storeOf(...blocks))
  const all = [1, 2, 3, 4, 5].flatMap((number) => {
    const receipts = callMethod(methods.eth_getBlockReceipts, [`0x${number}`]) as { logs: Log[] }[]
    return receipts.flatMap(({ logs }) => logs)
  })

  test('finds the same logs as a search through every receipt, with and without a bloom', (t) => {
    const contract = fc.integer({ min: 1, max: 7 })
    const choice = (of: (value: number) => string) =>
      fc.oneof(fc.constant(undefined), contract.map(of), fc.array(contract.map(of), { minLength: 1, maxLength: 3 }))
    const topics = fc.array(
      choice(slotOf).map((value) => value ?? null),
      { maxLength: 4 },
    )
    const range = fc.tuple(fc.integer({ min: 1, max: 5 }), fc.integer({ min: 1, max: 5 }))
    checkProperty(
      t,
      fc.property(choice(addressOf), topics, range, (address, wanted, ends) => {
        const [first, last] = ends.toSorted()
        const filter = { fromBlock: `0x${first}`, toBlock: `0x${last}`, address, topics: wanted }
        const fits = (given: string | string[] | null | undefined, value: string | undefined) =>
          given === undefined || given === null || [given].flat().includes(value ?? '')
        const expected = all.filter(
          (log) =>
            Number((log as unknown as { blockNumber: string }).blockNumber) >= (first as number) &&
            Number((log as unknown as { blockNumber: string }).blockNumber) <= (last as number) &&
            fits(address, log.address) &&
            log.topics.length >= wanted.length &&
            wanted.every((topic, at) => fits(topic, log.topics[at])),
        )
        assert.deepEqual(callMethod(methods.eth_getLogs, [filter]), expected)
      }),
      200,
      3000,
    )
  })

  test('does not read a block whose bloom excludes the filter', () => {
    const large = ethBlock({ number: 1, txns: 100, logsPerTxn: 30 })
    const filter = { fromBlock: '0x1', toBlock: '0x1', address: addressOf(99) }
    const price = (message: typeof large) => {
      const meter = countingMeter()
      callMethod(testMethods(storeOf(message)).eth_getLogs, [filter], meter)
      return meter.units
    }
    assert.equal(price(large), 2, 'one block, and the values of the filter')
    assert.equal(
      price(ethBlock({ number: 1, txns: 100, logsPerTxn: 30, hasNoBloom: true })),
      2 + Math.floor(3000 / 256),
    )
  })
})

test('blocks and receipts are rendered once and cached within the limit, per recorded block', () => {
  const store = storeOf(ethBlock({ number: 1, txns: 5, logsPerTxn: 1 }))
  const methods = testMethods(store)
  const read = () => callMethod(methods.eth_getBlockReceipts, ['0x1']) as { logs: Log[] }[]
  const first = read()
  assert.deepEqual(read(), first)
  assert.equal(first[0]?.logs[0]?.address, addressOf(7))
  // The same id with other content: the text of the old one is not shown.
  store.add(ethBlock({ number: 1, txns: 5, logsPerTxn: 1, contract: 8 }).block)
  assert.equal(read()[0]?.logs[0]?.address, addressOf(8))
})

test('ignores an impossible transaction index in the hashes of a block', () => {
  const { block } = ethBlock({ number: 1, txns: 2, logsPerTxn: 0 })
  const words = new Uint32Array(block.descriptors.buffer, block.descriptors.byteOffset)
  // The second event is the header of the first transaction.
  words[(DESCRIPTOR_BYTES + DESCRIPTOR.txnId) / 4] = 2 ** 32 - 1
  const held = new HeldBlock(block, 1)
  assert.equal(held.txnHashes.length, 2)
  assert.equal(held.txnHashes[0], '0x')
})
