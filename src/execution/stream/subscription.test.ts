import assert from 'node:assert/strict'
import { test } from 'node:test'
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
