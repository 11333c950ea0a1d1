import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { createManualClock, type ManualClock } from '../../../core/clock.ts'
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
function createNode(responses: Responses): { client: EvmNodeClient; asked: string[]; clock: ManualClock } {
  const clock = createManualClock()
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
  return { client: new EvmNodeClient({ call }, clock), asked, clock }
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
      debug_traceBlockByHash: (params) => {
        assert(JSON.stringify(params).includes('"disableCode":true'), 'the code of contracts is not used')
        return [1, 2].map(() => ({ result: isDifferences(params) ? changed : touched }))
      },
    })
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    assert.equal(client.traceForm, 'prestate')
    assert(!asked.includes('debug_traceTransaction'))
  })

  test('a form that works is kept where something else is asked for again: one bad transaction does not end all traces', async () => {
    let isBad = false
    const { client, clock } = createNode({
      debug_traceTransaction(params) {
        if (isBad && params[0] === hash('1')) throw new JsonRpcFailure('debug_traceTransaction', -32_602, 'bad')
        return isDifferences(params) ? changed : touched
      },
    })
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    clock.advance(600_000)
    isBad = true
    assert.deepEqual(await slotsOf(client), [undefined, '2>3'])
    assert.equal(client.traceForm, 'prestate')
  })

  test('what it did not support, again after ten minutes', async () => {
    let isSupported = false
    const { client, asked, clock } = createNode({
      debug_traceBlockByHash(params) {
        if (!isSupported) throw new JsonRpcFailure('debug_traceBlockByHash', -32_601, 'not there')
        return [1, 2].map(() => ({ result: isDifferences(params) ? changed : touched }))
      },
    })
    assert.deepEqual(await slotsOf(client), [undefined, undefined])
    assert.equal(client.traceForm, 'none')
    isSupported = true
    asked.length = 0
    clock.advance(599_999)
    await client.block(5)
    assert.deepEqual(
      asked.filter((method) => method.startsWith('debug_') || method === 'eth_getBlockReceipts'),
      [],
    )
    clock.advance(1)
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    assert.equal(client.traceForm, 'prestate')
    assert.equal(asked.filter((method) => method === 'eth_getBlockReceipts').length, 1)
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

describe('an error of an EVM node', () => {
  const overloaded = (method: string) => new JsonRpcFailure(method, -32_005, 'limit exceeded')

  test('that may pass is retried, and the form of tracing stays', async () => {
    let failing = 2
    const { client, asked } = createNode({
      eth_getBlockReceipts: () => [1, 2].map(() => ({ blockHash: hash('f'), status: '0x1', logs: [], gasUsed: '0x1' })),
      debug_traceBlockByHash: (params) => {
        if (failing-- > 0) throw overloaded('debug_traceBlockByHash')
        return [1, 2].map(() => ({ result: isDifferences(params) ? changed : touched }))
      },
    })
    for (let attempt = 0; attempt < 2; attempt++) await assert.rejects(client.block(5), JsonRpcFailure)
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    assert.equal(client.traceForm, 'prestate')
    assert(!asked.includes('debug_traceTransaction'))
    assert(!asked.includes('eth_getTransactionReceipt'))
  })

  test('that does not pass soon costs the block its accesses, not the later ones', async () => {
    let isDown = true
    const { client } = createNode({
      debug_traceTransaction: (params) => {
        if (isDown) throw overloaded('debug_traceTransaction')
        return isDifferences(params) ? changed : touched
      },
    })
    let rejections = 0
    let slots: (string | undefined)[] | undefined
    while (slots === undefined && rejections < 10) slots = await slotsOf(client).catch(() => void (rejections += 1))
    assert.deepEqual([slots, rejections > 0], [[undefined, undefined], true])
    assert.deepEqual(await slotsOf(client), [undefined, undefined], 'without further attempts')
    assert.equal(client.traceForm, undefined)
    isDown = false
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    isDown = true
    await assert.rejects(client.block(5), JsonRpcFailure, 'a later error is retried again')
  })

  test('of one transaction only costs that one its accesses, in the fourth attempt', async () => {
    const { client } = createNode({
      debug_traceTransaction(params) {
        if (params[0] === hash('2')) throw new JsonRpcFailure('debug_traceTransaction', -32_000, 'execution timeout')
        return isDifferences(params) ? changed : touched
      },
    })
    for (let attempt = 1; attempt < 4; attempt++) await assert.rejects(client.block(5), /execution timeout/)
    assert.deepEqual(await slotsOf(client), ['2>3', undefined])
    assert.deepEqual(await slotsOf(client), ['2>3', undefined], 'the next block has one attempt')
  })

  test('in the trace of a block costs only its transaction the accesses, in the fourth attempt', async () => {
    let isTimeout = true
    const { client } = createNode({
      debug_traceBlockByHash: (params) => {
        const good = { result: isDifferences(params) ? changed : touched }
        return [good, isTimeout ? { txHash: hash('2'), error: 'execution timeout' } : good]
      },
    })
    for (let attempt = 1; attempt < 4; attempt++) await assert.rejects(client.block(5), /execution timeout/)
    assert.deepEqual(await slotsOf(client), ['2>3', undefined])
    assert.deepEqual(await slotsOf(client), ['2>3', undefined], 'the next block has one attempt')
    isTimeout = false
    assert.deepEqual(await slotsOf(client), ['2>3', '2>3'])
    isTimeout = true
    await assert.rejects(client.block(5), /execution timeout/, 'a later error is retried again')
  })

  for (const [how, trace] of [
    ['without a JSON-RPC error', () => Promise.reject(new Error('no response within 30000 ms'))],
    ['that is no list of traces', () => null],
    ['with a trace that is none', () => [null, 'none']],
  ] as const)
    test(`${how} costs a block its accesses in the fourth attempt`, async () => {
      const { client } = createNode({ debug_traceBlockByHash: trace })
      for (let attempt = 1; attempt < 4; attempt++) await assert.rejects(client.block(5))
      assert.deepEqual(await slotsOf(client), [undefined, undefined])
      assert.equal(client.traceForm, undefined)
    })

  test('of one transaction without a JSON-RPC error costs only that one its accesses, in the fourth attempt', async () => {
    const { client } = createNode({
      debug_traceTransaction(params) {
        if (params[0] === hash('2')) throw new Error('debug_traceTransaction: the response is larger than 9 bytes')
        return hasTracer(params) ? { structLogs: [] } : structLogs
      },
    })
    for (let attempt = 1; attempt < 4; attempt++) await assert.rejects(client.block(5), /larger than/)
    assert.deepEqual(await slotsOf(client), ['0>9', undefined])
    assert.equal(client.traceForm, 'struct-logs')
  })

  test('of many transactions ends the traces of a block: each may take until its timeout', async () => {
    const { client, asked } = createNode({
      eth_getBlockByNumber: () => ({
        ...{ number: '0x5', hash: hash('f'), parentHash: hash('e'), miner: address('c') },
        transactions: Array.from({ length: 100 }, () => ({ hash: hash('1'), from: address('a'), to: address('b') })),
      }),
      debug_traceTransaction: () => Promise.reject(new Error('no response within 30000 ms')),
    })
    for (let attempt = 1; attempt < 4; attempt++) await assert.rejects(client.block(5), /no response/)
    const before = asked.length
    assert.deepEqual(new Set(await slotsOf(client)), new Set([undefined]))
    assert.equal(asked.slice(before).filter((method) => method === 'debug_traceTransaction').length, 4)
  })

  test('in the receipts of a block without a JSON-RPC error leads to those of each transaction, in the fourth attempt', async () => {
    const { client } = createNode({ eth_getBlockReceipts: () => null })
    for (let attempt = 1; attempt < 4; attempt++) await assert.rejects(client.block(5), /receipts is not a list/)
    assert.equal((await client.block(5))?.txns.length, 2)
  })

  test('that may pass does not turn off the receipts of a block', async () => {
    let isDown = true
    const receipts = [1, 2].map(() => ({ blockHash: hash('f'), status: '0x1', logs: [], gasUsed: '0x1' }))
    const { client, asked } = createNode({
      eth_getBlockReceipts: () => {
        if (isDown) throw overloaded('eth_getBlockReceipts')
        return receipts
      },
    })
    await assert.rejects(client.block(5), JsonRpcFailure)
    isDown = false
    await client.block(5)
    assert(!asked.includes('eth_getTransactionReceipt'))
  })

  for (const [code, message] of [
    [-32_601, 'the method debug_traceTransaction does not exist'],
    [-32_004, 'Method debug_traceTransaction is not supported'],
    [-32_600, 'debug_traceTransaction is not available on the Free tier - upgrade'],
    [-32_000, 'ReferenceError: prestateTracer is not defined'],
  ] as const) {
    test(`means that it does not trace: ${message}`, async () => {
      const refuse = () => {
        throw new JsonRpcFailure('debug_traceTransaction', code, message)
      }
      const { client } = createNode({ debug_traceTransaction: refuse, debug_traceBlockByHash: refuse })
      assert.deepEqual(await slotsOf(client), [undefined, undefined])
      assert.equal(client.traceForm, 'none')
    })
  }

  for (const message of ['header not found', 'historical state is not available', 'execution timeout'])
    test(`does not mean that it does not trace: ${message}`, async () => {
      const { client } = createNode({
        debug_traceTransaction: () => {
          throw new JsonRpcFailure('debug_traceTransaction', -32_000, message)
        },
      })
      await assert.rejects(client.block(5), JsonRpcFailure)
      assert.equal(client.traceForm, undefined)
    })
})
