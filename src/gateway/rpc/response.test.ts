import assert from 'node:assert/strict'
import { test } from 'node:test'
import { splitResponse } from './response.ts'

test('only the id of an answer is replaced, whatever stands around it', () => {
  const cases = [
    '{"jsonrpc":"2.0","result":{"id":5,"rentEpoch":18446744073709551615},"id":1}',
    '{"id":1,"jsonrpc":"2.0","result":"\\"id\\":1"}',
    ' { "result" : [1.0, {"id":null}] , "id" : 1 , "jsonrpc":"2.0"} \n',
  ]
  for (const text of cases) {
    const response = splitResponse(text)
    assert.equal(response?.id, '1')
    assert.equal(
      response?.withId('"own"'),
      text.trim().replace(/"id"(\s*):(\s*)1(?=[\s,}])(?!.*"id"\s*:\s*1[\s,}])/, '"id"$1:$2"own"'),
    )
  }
})

test('an answer without an id, or no object, is not taken apart', () => {
  for (const text of ['', '[]', '1', '{"result":1}', '{"id":1', '{"id":1}x', '"id"'])
    assert.equal(splitResponse(text), undefined, text)
})
