import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { Hex } from '../../../evm/hex.ts'
import { JsonRpcFailure } from '../../../platform/http/client/json-rpc.ts'
import { EvmNodeClient } from './client.ts'

const hash = (digit: string): Hex => `0x${digit.repeat(64)}`
const address = (digit: string): Hex => `0x${digit.repeat(40)}`
const touched = { [address('b')]: { storage: { '0x1': '0x2' } } }
const changed = { pre: touched, post: { [address('b')]: { storage: { '0x1': '0x3' } } } }
const structLogs = { structLogs: [{ depth: 1, op: 'SSTORE', stack: ['0x9', '0x1'] }] }

type Responses = Record<string, (params: readonly unknown[]) => unknown>

/** A node with one block of two transactions; `answers` sets how it traces. */
function createNode(responses: Responses): { client: EvmNodeClient; asked: string[] } {
  const asked: string[] = []
  const txns = ['1', '2'].map((digit) => ({ hash: hash(digit), from: address('a'), to: address('b') }))
  const block = { number: '0x5', hash: hash('f'), parentHash: hash('e'), miner: address('c'), transactions: txns }
  const receipt = { blockHash: hash('f'), status: '0x1', logs: [], gasUsed: '0x1', contractAddress: null }
  const known: Responses = {
    eth_getBlockByNumber: () => block,
    eth_getTransactionReceipt: () => receipt,
    ...responses,
  }
  const call = (method: string, params: readonly unknown[]): Promise<unknown> => {
    asked.push(method)
    const response = known[method]
    if (response === undefined) return Promise.reject(new JsonRpcFailure(method, -32_601, 'not there'))
    return new Promise((resolve) => resolve(response(params)))
  }
  return { client: new EvmNodeClient({ call }), asked }
}

const isDifferences = (params: readonly unknown[]): boolean => JSON.stringify(params).includes('diffMode')
const hasTracer = (params: readonly unknown[]): boolean => JSON.stringify(params).includes('prestateTracer')

async function slotsOf(client: EvmNodeClient): Promise<(string | undefined)[]> {
  const block = await client.block(5)
  return (block?.txns ?? []).map(({ accesses }) =>
    accesses?.flatMap(({ storage }) => storage.map(({ start, end }) => `${start}>${end}`)).join(),
  )
}

describe('an EVM node is asked for what it has:', () => {
  test('the prestate tracer for whole blocks', async () => {
    const { client, asked } = createNode({
      debug_traceBlockByHash: (params) => [1, 2].map(() => ({ result: isDifferences(params) ? changed : touched })),
    })
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    assert.equal(client.traceForm, 'prestate')
    assert(!asked.includes('debug_traceTransaction'))
  })

  test('the prestate tracer for transactions', async () => {
    const { client, asked } = createNode({
      debug_traceTransaction: (params) => (isDifferences(params) ? changed : touched),
    })
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    assert.equal(client.traceForm, 'prestate')
    await client.block(5)
    assert.equal(asked.filter((method) => method === 'debug_traceBlockByHash').length, 1, 'asked once, then known')
    assert.equal(asked.filter((method) => method === 'eth_getBlockReceipts').length, 1)
  })

  for (const [how, tracer] of [
    ['where the tracer is ignored', () => structLogs],
    [
      'where the tracer is refused',
      () => {
        throw new JsonRpcFailure('debug_traceTransaction', -32_602, 'no such tracer')
      },
    ],
  ] as const) {
    test(`struct logs, ${how}`, async () => {
      const { client } = createNode({
        debug_traceTransaction: (params) => (hasTracer(params) ? tracer() : structLogs),
      })
      assert.deepEqual(await slotsOf(client), ['0>9', '0>9'])
      assert.equal(client.traceForm, 'struct-logs')
    })
  }

  test('nothing, where it does not trace', async () => {
    const { client, asked } = createNode({})
    assert.deepEqual(await slotsOf(client), [undefined, undefined])
    assert.equal(client.traceForm, 'none')
    const before = asked.length
    await client.block(5)
    assert(!asked.slice(before).some((method) => method.startsWith('debug_')), 'and it is not asked again')
  })

  test('receipts of another block are refused: the node changed its mind', async () => {
    const { client } = createNode({ eth_getTransactionReceipt: () => ({ blockHash: hash('0') }) })
    await assert.rejects(client.block(5), /belong to another block/)
  })

  test('a tag that the node does not know is no block', async () => {
    const { client } = createNode({
      eth_getBlockByNumber: () => {
        throw new JsonRpcFailure('eth_getBlockByNumber', -32_602, 'what tag')
      },
    })
    assert.equal(await client.headOf('finalized'), undefined)
    await assert.rejects(client.headOf(7), JsonRpcFailure)
  })
})
