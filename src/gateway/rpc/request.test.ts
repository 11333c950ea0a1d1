import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ERRORS } from '../../contract/errors.ts'
import { type RpcCall, writeCall } from '../../solana/json/json-rpc.ts'
import { isFastPathId, readRpcBody } from './request.ts'

const REQUEST = { requestId: 'req', docsUrl: (code: string) => `https://rpc.example.net/docs/errors/${code}` }
const read = (text: string) => readRpcBody(text, { batchItems: 3 }, REQUEST)

/** What a customer can act on: the way out, the id to report and the page of the error. */
function refusal(code: 'parse-error' | 'invalid-request', id: string): string {
  const { jsonRpc, sentence, fix } = ERRORS[code]
  const data = { fix, request_id: 'req', docs_url: `https://rpc.example.net/docs/errors/${code}` }
  return `{"jsonrpc":"2.0","error":${JSON.stringify({ code: jsonRpc, message: sentence, data })},"id":${id}}`
}

function callOf(text: string): RpcCall {
  const body = read(text)
  assert.equal(body.kind, 'calls')
  const [item] = body.kind === 'calls' ? body.items : []
  assert.ok(item !== undefined && 'call' in item, JSON.stringify(item))
  return item.call
}

test('keeps the text of id and params', () => {
  for (const id of ['18446744073709551615', '"0"', '1e3', '-1', '1.5', 'null', '"\\u0041"', '0']) {
    assert.equal(callOf(`{"jsonrpc":"2.0","id":${id},"method":"getSlot"}`).id, id)
  }
  const call = callOf(
    '{"id": 1, "params" : [ 18446744073709551615, {"a": 1.0} ], "jsonrpc":"2.0","method":"x", "extra":[]}',
  )
  assert.equal(call.paramsText, '[ 18446744073709551615, {"a": 1.0} ]')
  assert.equal(
    writeCall(call, '7'),
    '{"jsonrpc":"2.0","id":7,"method":"x","params":[ 18446744073709551615, {"a": 1.0} ]}',
  )
  assert.equal(callOf('{"jsonrpc":"2.0","method":"notify"}').id, undefined)
})

test('refuses an invalid item with -32600 and its id where that is valid', () => {
  const cases: [string, string][] = [
    ['{}', 'null'],
    ['{"jsonrpc":"2.0","id":5}', '5'],
    ['{"jsonrpc":"1.0","method":"a","id":"x"}', '"x"'],
    ['{"method":"a","id":1}', '1'],
    ['{"jsonrpc":"2.0","method":1,"id":1}', '1'],
    ['{"jsonrpc":"2.0","method":"a","params":"bar","id":1}', '1'],
    ['{"jsonrpc":"2.0","method":"a","id":{}}', 'null'],
    ['{"jsonrpc":"2.0","method":"a","id":[1]}', 'null'],
    ['{"jsonrpc":"2.0","method":"a","id":true}', 'null'],
    ['{"jsonrpc":"2.0","method":"a","method":"b","id":1}', '1'],
    ['{"jsonrpc":"2.0","method":"a","id":1,"id":2}', 'null'],
    ['1', 'null'],
  ]
  for (const [text, id] of cases) {
    const body = read(text)
    assert.deepEqual(
      body,
      { kind: 'calls', batch: false, items: [{ refusal: refusal('invalid-request', id), id }] },
      text,
    )
  }
})

test('refuses malformed bodies with -32700, an empty batch with -32600, and a batch over batchItems', () => {
  for (const text of [
    '',
    '{',
    '{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]',
    `${'['.repeat(33)}${']'.repeat(33)}`,
  ]) {
    assert.deepEqual(read(text), { kind: 'refused', response: refusal('parse-error', 'null') }, text)
  }
  assert.deepEqual(read('[]'), { kind: 'refused', response: refusal('invalid-request', 'null') })
  assert.deepEqual(read('[1,2,3,4]'), { kind: 'too-many', limit: 3 })
  const mixed = read('[1, {"jsonrpc":"2.0","method":"a","id":9}, {"jsonrpc":"2.0","method":"b"}]')
  assert.ok(mixed.kind === 'calls' && mixed.batch)
  assert.deepEqual(
    mixed.items.map((item) => ('call' in item ? item.call.method : 'refused')),
    ['refused', 'a', 'b'],
  )
})

test('isFastPathId accepts ids that every node returns byte for byte', () => {
  for (const id of ['"x"', '""', '0', '123456789012345', '"3f2a-77 a.b:c"']) assert.ok(isFastPathId(id), id)
  for (const id of ['-1', '1.5', '1e3', 'null', '01', '1234567890123456', '18446744073709551615'])
    assert.ok(!isFastPathId(id), id)
  for (const id of ['"\\u0041"', '"a/b"', '"<"', '"é"', `"${'x'.repeat(65)}"`]) assert.ok(!isFastPathId(id), id)
})
