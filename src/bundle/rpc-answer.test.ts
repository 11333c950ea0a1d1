import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { splitAnswer, splitBatch } from './rpc-answer.ts'

test('only the id of an answer is replaced, whatever stands around it', () => {
  const cases = [
    '{"jsonrpc":"2.0","result":{"id":5,"rentEpoch":18446744073709551615},"id":1}',
    '{"id":1,"jsonrpc":"2.0","result":"\\"id\\":1"}',
    ' { "result" : [1.0, {"id":null}] , "id" : 1 , "jsonrpc":"2.0"} \n',
  ]
  for (const text of cases) {
    const answer = splitAnswer(text)
    assert.equal(answer?.id, '1')
    assert.equal(
      answer?.withId('"own"'),
      text.trim().replace(/"id"(\s*):(\s*)1(?=[\s,}])(?!.*"id"\s*:\s*1[\s,}])/, '"id"$1:$2"own"'),
    )
  }
})

test('an answer without an id, or no object, is not taken apart', () => {
  for (const text of ['', '[]', '1', '{"result":1}', '{"id":1', '{"id":1}x', '"id"'])
    assert.equal(splitAnswer(text), undefined, text)
})

test('a batch comes apart into its answers, byte for byte', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.json(), fc.nat()), { maxLength: 20 }), (answers) => {
      const texts = answers.map(([result, id]) => `{"jsonrpc":"2.0","result":${result},"id":${id}}`)
      const bytes = Buffer.from(`[${texts.join(',')}]`).toString('latin1')
      const split = splitBatch(bytes)
      assert.deepEqual(
        split?.map(({ id }) => Number(id)),
        answers.map(([, id]) => id),
      )
      assert.deepEqual(
        split?.map((answer) => Buffer.from(answer.withId(answer.id), 'latin1').toString()),
        texts,
      )
    }),
    { seed: Number(process.env['SLUICE_SEED'] ?? 1) },
  )
  assert.equal(splitBatch('{"id":1}'), undefined)
  assert.equal(splitBatch('[1]'), undefined)
  assert.equal(splitBatch('[{"id":1},'), undefined)
})
