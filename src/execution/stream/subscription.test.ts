import assert from 'node:assert/strict'
import { test } from 'node:test'
import { subscribeMessage } from '../../contract/schemas/stream.ts'
import { parseSubscribeMessage } from './subscription.ts'

const RULES = { itemsMax: 8, blocked: new Set<never>() }

test('a JSON-RPC message is refused with the place where JSON-RPC is served', () => {
  const call = { jsonrpc: '2.0', id: 1, method: 'eth_subscribe', params: ['newHeads'] }
  for (const message of [call, [call, call], { ...call, subscribe: ['TPS'] }]) {
    const parsed = parseSubscribeMessage(JSON.stringify(message), RULES)
    assert(!parsed.ok)
    assert.equal(parsed.error.code, 'invalid_subscribe')
    assert.match(parsed.error.message, /JSON-RPC .* POST \//)
  }
  for (const message of [[], [1], null, {}, { method: 'eth_subscribe' }]) {
    const parsed = parseSubscribeMessage(JSON.stringify(message), RULES)
    assert.doesNotMatch(parsed.ok ? '' : parsed.error.message, /JSON-RPC/)
  }
})

test('the documented schema of a message and the service agree about what is valid', () => {
  const address = `0x${'aB'.repeat(20)}`
  const topic = `0x${'01'.repeat(32)}`
  const filtered = (filter: object) => ({ events: ['TxnLog'], filters: [filter] })
  const cases: readonly (readonly [isValid: boolean, subscribe: unknown])[] = [
    [true, ['TPS', 'TPS']],
    [false, []],
    [false, ['tps']],
    [true, { events: ['TxnHeaderStart'], correlate: true, min_stage: 'Proposed' }],
    [false, { events: [] }],
    [false, { events: ['TPS'], min_stage: 'Finalized' }],
    [true, filtered({ events: ['TxnLog'], address, topics: [topic, null, [topic]], txn_index: { min: 0 } })],
    [true, filtered({})],
    [false, filtered({ events: [] })],
    [false, filtered({ txn_index: {} })],
    [false, filtered({ log_index: { min: -1 } })],
    [false, filtered({ log_index: { max: 2 ** 53 } })],
    [false, filtered({ address: '0x12' })],
    [false, filtered({ address: [] })],
    [true, filtered({ address: Array(64).fill(address) })],
    [false, filtered({ address: Array(65).fill(address) })],
    [false, filtered({ topics: [address] })],
    [true, filtered({ topics: Array(4).fill(null) })],
    [false, filtered({ topics: Array(5).fill(null) })],
    [true, { events: ['TxnLog'], filters: Array(16).fill({}) }],
    [false, { events: ['TxnLog'], filters: Array(17).fill({}) }],
    [false, { events: ['TxnLog'], filter: [] }],
  ]
  for (const [isValid, subscribe] of cases) {
    const shown = JSON.stringify(subscribe).slice(0, 200)
    assert.equal(parseSubscribeMessage(JSON.stringify({ subscribe }), RULES).ok, isValid, shown)
    assert.equal(subscribeMessage.safeParse({ subscribe }).success, isValid, shown)
  }
})
