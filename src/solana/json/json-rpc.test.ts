import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { checkProperty } from '../../../test/support/process/property.ts'
import { idKind, readCalls, readRequestBody, writeCall, writeError, writeResult } from './json-rpc.ts'

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

  it('decodes escaped member names and method names', () => {
    const [item] = items('{"\\u006dethod":"get\\u0053lot","id":"\\u0041"}')
    assert.equal(item?.methodName, 'getSlot')
    assert.equal(item?.id, '"\\u0041"')
  })

  it('splits a batch and marks items that are no object', () => {
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

  it('reports duplicate and unknown members', () => {
    assert.equal(items('{"method":"a","method":"b"}')[0]?.duplicate, 'method')
    assert.equal(items('{"method":"a","\\u006dethod":"b"}')[0]?.methodName, 'b')
    assert.equal(items('{"id":1,"id":2,"method":"a","method":"b"}')[0]?.duplicate, 'id')
    assert.equal(items('{"id":1,"extra":{"id":3}}')[0]?.hasUnknownMember, true)
    assert.equal(items('{"method":5}')[0]?.methodName, undefined)
    assert.equal(items('{"method":5}')[0]?.method, '5')
  })

  it('refuses a batch over batchItemsMax without reading its rest', () => {
    assert.deepEqual(read('[1,2,3,4,5'), { ok: false, reason: 'batch-too-long' })
    assert.equal(read('[1,2,3,4]').ok, true)
  })

  it('accepts nesting at the limit and refuses it beyond', () => {
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

describe('readCalls', () => {
  const item = (text: string, anyParams = false) => {
    const body = readCalls(text, { ...LIMITS, anyParams })
    assert.ok(body.kind === 'calls' && !body.batch, text)
    return body.items[0]
  }

  it('accepts every kind of id, array and object params, and notifications', () => {
    for (const id of ['null', '"x"', '1', '-1.5', '18446744073709551616']) {
      assert.deepEqual(item(`{"jsonrpc":"2.0","id":${id},"method":"m","params":[1]}`), {
        call: { method: 'm', paramsText: '[1]', id },
      })
    }
    assert.deepEqual(item('{"jsonrpc":"2.0","method":"m","params":{}}'), {
      call: { method: 'm', paramsText: '{}', id: undefined },
    })
  })

  it('refuses other params unless anyParams is set', () => {
    const textOf = (params: string) => `{"jsonrpc":"2.0","id":7,"method":"m","params":${params}}`
    assert.deepEqual(item(textOf('null')), { call: { method: 'm', paramsText: undefined, id: '7' } })
    assert.deepEqual(item(textOf('null'), true), { call: { method: 'm', paramsText: 'null', id: '7' } })
    for (const params of ['"x"', '1', 'true']) {
      const text = textOf(params)
      assert.deepEqual(item(text), { invalidId: '7' })
      assert.deepEqual(item(text, true), { call: { method: 'm', paramsText: params, id: '7' } })
    }
  })

  it('refuses an invalid item under its id, or under null where the id is invalid or duplicate', () => {
    for (const [text, invalidId] of [
      ['1', 'null'],
      ['{"jsonrpc":"2.0","id":7}', '7'],
      ['{"jsonrpc":"2.0","id":7,"method":1}', '7'],
      ['{"id":7,"method":"m"}', '7'],
      ['{"jsonrpc":2.0,"id":7,"method":"m"}', '7'],
      ['{"jsonrpc":"2.0","id":7,"method":"m","method":"m"}', '7'],
      ['{"jsonrpc":"2.0","id":{},"method":"m"}', 'null'],
      ['{"jsonrpc":"2.0","id":7,"id":7,"method":"m"}', 'null'],
    ] as const) {
      assert.deepEqual(item(text), { invalidId }, text)
    }
  })

  it('reports a body that is no JSON or too deep, an empty batch, and a batch that is too long', () => {
    for (const [text, kind] of [
      ['{', 'parse-error'],
      ['['.repeat(33) + ']'.repeat(33), 'parse-error'],
      ['[]', 'invalid-request'],
      ['[1,2,3,4,5]', 'batch-too-long'],
    ] as const) {
      assert.deepEqual(readCalls(text, LIMITS), { kind }, text)
    }
  })

  it('writeCall writes known members only, the method without needless escapes', () => {
    const call = { method: 'a"b', paramsText: '[ 1.0 ]' }
    assert.equal(writeCall(call, '"x"'), '{"jsonrpc":"2.0","id":"x","method":"a\\"b","params":[ 1.0 ]}')
    assert.equal(writeCall({ method: 'm', paramsText: undefined }, undefined), '{"jsonrpc":"2.0","method":"m"}')
  })
})

describe('ids and responses', () => {
  it('classifies ids', () => {
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
