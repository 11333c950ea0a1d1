import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/property.ts'
import { idKind, readRequestBody, writeError, writeResult } from './json-rpc.ts'

const LIMITS = { depthMax: 32, batchItemsMax: 4 }
const read = (text: string, limits = LIMITS) => readRequestBody(text, limits)
const items = (text: string) => {
  const body = read(text)
  assert(body.ok, text)
  return body.items
}

describe('readRequestBody', () => {
  it('keeps id and params as the client wrote them', () => {
    const [item] = items(
      ' {"jsonrpc":"2.0", "id" : 18446744073709551615 ,"method":"getSlot","params": [ {"a":1e3} ] } \n',
    )
    assert.equal(item?.id, '18446744073709551615')
    assert.equal(item?.params, '[ {"a":1e3} ]')
    assert.equal(item?.methodName, 'getSlot')
    assert.equal(item?.jsonrpc, '"2.0"')
    assert.equal(item?.hasUnknownMember, false)
    assert.equal(item?.duplicate, undefined)
  })

  it('reads escaped member names and method names as what they mean', () => {
    const [item] = items('{"\\u006dethod":"get\\u0053lot","id":"\\u0041"}')
    assert.equal(item?.methodName, 'getSlot')
    assert.equal(item?.id, '"\\u0041"')
  })

  it('splits a batch and marks what is no object', () => {
    const body = read('[{"id":1},2,[],"x"]')
    assert(body.ok && body.batch)
    assert.deepEqual(
      body.items.map((item) => [item.isObject, item.id]),
      [
        [true, '1'],
        [false, undefined],
        [false, undefined],
        [false, undefined],
      ],
    )
    const empty = read('[]')
    assert(empty.ok && empty.batch)
    assert.equal(empty.items.length, 0)
  })

  it('tells duplicates and unknown members', () => {
    assert.equal(items('{"method":"a","method":"b"}')[0]?.duplicate, 'method')
    assert.equal(items('{"method":"a","\\u006dethod":"b"}')[0]?.methodName, 'b')
    assert.equal(items('{"id":1,"id":2,"method":"a","method":"b"}')[0]?.duplicate, 'id')
    assert.equal(items('{"id":1,"extra":{"id":3}}')[0]?.hasUnknownMember, true)
    assert.equal(items('{"method":5}')[0]?.methodName, undefined)
    assert.equal(items('{"method":5}')[0]?.method, '5')
  })

  it('refuses a batch that is too long, before reading it to its end', () => {
    assert.deepEqual(read('[1,2,3,4,5'), { ok: false, reason: 'batch-too-long' })
    assert.equal(read('[1,2,3,4]').ok, true)
  })

  it('refuses nesting beyond the limit and takes what is at it', () => {
    const nested = (depth: number) => `${'['.repeat(depth)}${']'.repeat(depth)}`
    assert.equal(read(nested(32)).ok, true)
    assert.deepEqual(read(nested(33)), { ok: false, reason: 'too-deep' })
    assert.deepEqual(read('['.repeat(100_000)), { ok: false, reason: 'too-deep' })
    assert.deepEqual(read(`{"params":${nested(32)}}`), { ok: false, reason: 'too-deep' })
  })

  it('refuses what is not JSON', () => {
    const broken = [
      '',
      ' ',
      '{',
      '[',
      '{]',
      '[1,]',
      '{"a":1,}',
      "{'a':1}",
      '{"a" 1}',
      '01',
      '1.',
      '-',
      '.5',
      '+1',
      'nul',
      '"a',
      '"\n"',
      '"\\x"',
    ]
    broken.push(
      '"\\ud800"',
      '"\\udc00\\ud800"',
      '"\\ud800\\u0041"',
      '1e999',
      '1 2',
      '[1]]',
      '{"a":1}x',
      '\ufeff{}',
      'NaN',
      '"\\u12g4"',
    )
    for (const text of broken) assert.deepEqual(read(text), { ok: false, reason: 'not-json' }, text)
  })

  it('accepts what JSON.stringify writes, and nothing JSON.parse refuses', (t) => {
    const limits = { depthMax: 100, batchItemsMax: 1_000_000 }
    const noise = fc.string({ maxLength: 2, unit: 'grapheme' })
    const property = fc.property(fc.json({ maxDepth: 10 }), fc.nat(), noise, (json, position, piece) => {
      // Unpaired surrogates, which JSON.stringify writes as escapes, are refused.
      if (/\\ud[89a-f]/i.test(json)) return
      assert.equal(readRequestBody(json, limits).ok, true, json)
      const cut = position % (json.length + 1)
      const changed = json.slice(0, cut) + piece + json.slice(cut + 1)
      if (readRequestBody(changed, limits).ok) JSON.parse(changed)
    })
    checkProperty(t, property, 2000, 100_000)
  })
})

describe('ids and answers', () => {
  it('tells the kinds of ids apart', () => {
    const kinds = [
      'null',
      '"0"',
      '0',
      '18446744073709551615',
      '18446744073709551616',
      '-1',
      '1.5',
      '1e3',
      '{}',
      '[]',
      'true',
    ].map(idKind)
    assert.deepEqual(kinds, [
      'null',
      'string',
      'u64',
      'u64',
      'number',
      'number',
      'number',
      'number',
      'other',
      'other',
      'other',
    ])
  })

  it('writes members in the order a node does', () => {
    assert.equal(writeResult('1e3', '[1]'), '{"jsonrpc":"2.0","result":[1],"id":1e3}')
    const error = { code: -32602, message: 'a "b"', data: '{"c":1}' }
    assert.equal(
      writeError('"x"', error),
      '{"jsonrpc":"2.0","error":{"code":-32602,"message":"a \\"b\\"","data":{"c":1}},"id":"x"}',
    )
  })
})
