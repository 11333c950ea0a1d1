import assert from 'node:assert/strict'
import { test } from 'node:test'
import { contextSlotOf, errorCodeOf, isJsonRpcBody, slotResultOf } from './extract-slot.ts'

test('contextSlotOf reads the slot of a response with context, and of nothing else', () => {
  const slotOf = (text: string) => contextSlotOf(Buffer.from(text))
  assert.equal(
    slotOf('{"jsonrpc":"2.0","result":{"context":{"apiVersion":"4.2.1","slot":123},"value":null},"id":1}'),
    123,
  )
  assert.equal(
    slotOf('{"jsonrpc":"2.0","result":{"context":{"slot":9007199254740991},"value":1},"id":1}'),
    9007199254740991,
  )
  assert.equal(slotOf('{"jsonrpc":"2.0","result":{"context":{"slot":9907199254740993},"value":1},"id":1}'), undefined)
  assert.equal(slotOf('{"jsonrpc":"2.0","result":5,"id":1}'), undefined)
  assert.equal(slotOf(''), undefined)
  // A string in a response, here the echoed id, is not taken for a slot.
  assert.equal(
    slotOf(`{"id":${JSON.stringify('"result":{"context":{"slot":999}')},"jsonrpc":"2.0","result":1}`),
    undefined,
  )
  const deep = `{"jsonrpc":"2.0","result":{"value":"${'x'.repeat(300)}","a":{"result":{"context":{"slot":7}}}},"id":1}`
  assert.equal(slotOf(deep), undefined)
})

test('slotResultOf reads the result of getSlot', () => {
  assert.equal(slotResultOf(Buffer.from('{"jsonrpc":"2.0","result":123,"id":1}\n')), 123)
  assert.equal(slotResultOf(Buffer.from('{"id":1,"jsonrpc":"2.0","result":123}')), 123)
  assert.equal(slotResultOf(Buffer.from('{"jsonrpc":"2.0","result":"ok","id":1}')), undefined)
  assert.equal(slotResultOf(Buffer.from('{"jsonrpc":"2.0","result":1.5,"id":1}')), undefined)
})

test('errorCodeOf reads the error code in any order of members', () => {
  const codeOf = (text: string) => errorCodeOf(Buffer.from(text))
  assert.equal(codeOf('{"jsonrpc":"2.0","error":{"code":-32005,"message":"Node is behind"},"id":1}'), -32005)
  assert.equal(codeOf('{"id":1,"error":{"message":"m","data":{},"code":-32016},"jsonrpc":"2.0"}'), -32016)
  assert.equal(codeOf('{"jsonrpc":"2.0","result":{"error":{"code":-32005}},"id":1}'), undefined)
  assert.equal(codeOf('[{"jsonrpc":"2.0","error":{"code":-32005},"id":1}]'), undefined)
  assert.equal(codeOf('{"error":null}'), undefined)
  assert.equal(codeOf('"error"'), undefined)
  assert.equal(codeOf('<html>"error"'), undefined)
})

test('isJsonRpcBody accepts JSON-RPC, and no error page of a proxy', () => {
  assert.equal(isJsonRpcBody(Buffer.from('{"jsonrpc":"2.0","error":{},"id":null}')), true)
  assert.equal(isJsonRpcBody(Buffer.from('{"message":"too many requests"}')), false)
  assert.equal(isJsonRpcBody(Buffer.from('<html>')), false)
  assert.equal(isJsonRpcBody(Buffer.from('[]')), false)
})
