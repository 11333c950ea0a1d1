import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { writeCall } from '../../solana/json/json-rpc.ts'
import { readFastPathCall } from './fast-path-call.ts'
import { isFastPathId, readRpcBody } from './request.ts'

const read = (text: string) => readFastPathCall(Buffer.from(text))

describe('readFastPathCall accepts', () => {
  const accepted = [
    '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
    '{"jsonrpc":"2.0","id":"a b","method":"getSlot","params":[]}',
    ' {\n"method" : "getBalance", "params" : [ "abc", { "commitment" : "processed", "a": [true, false, null, 0, 17] } ],\t"id":0,"jsonrpc":"2.0"} \r\n',
    '{"jsonrpc":"2.0","id":123456789012345,"method":"","params":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":[[],{},[{"a":{"b":[1]}}]]}',
  ]
  for (const text of accepted) test(text, () => assertSame(text, true))
})

describe('readFastPathCall leaves to readRpcBody', () => {
  const call = (id: string, params: string) => `{"jsonrpc":"2.0","id":${id},"method":"m","params":${params}}`
  const others = [
    '',
    '[]',
    '[{"jsonrpc":"2.0","id":1,"method":"m"}]',
    '{}',
    '{"jsonrpc":"2.0","id":1,"method":"m"',
    '{"jsonrpc":"2.0","id":1,"method":"m"}}',
    '{"jsonrpc":"2.0","id":1,"method":"m",}',
    '{"jsonrpc":"2.0","id":1,"method":"m"} x',
    '{"jsonrpc":"2.0","method":"m"}',
    '{"jsonrpc":"1.0","id":1,"method":"m"}',
    '{"id":1,"method":"m"}',
    '{"jsonrpc":"2.0","id":1}',
    '{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}',
    '{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}',
    '{"jsonrpc":"2.0","id":1,"method":"m","method":"m"}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":[],"params":[]}',
    '{"jsonrpc":"2.0","id":1,"method":"m","more":1}',
    '{"jsonrpc":"2.0","id":1,"method":"m\\u0061"}',
    '{"jsonrpc":"2.0","id":1,"method":"größe"}',
    ...[
      'null',
      '-1',
      '1.5',
      '01',
      '1e3',
      '1234567890123456',
      '"\\n"',
      '"ü"',
      '"a/b"',
      '"<"',
      `"${'a'.repeat(65)}"`,
      '[]',
      'true',
      '"a',
      '""1',
    ].map((id) => call(id, '[]')),
    ...[
      '1',
      '"a"',
      'null',
      '[1,]',
      '[,]',
      '{"a"}',
      '{"a":}',
      '{a:1}',
      '[01]',
      '[-1]',
      '[1.0]',
      '[tru]',
      '[nul',
      '{',
      '[',
    ].map((params) => call('1', params)),
    call('1', '['.repeat(9) + ']'.repeat(9)),
    call('1', '['.repeat(40) + ']'.repeat(40)),
    '{"jsonrpc":"2.0","id":1,"method":"a\u0000b"}',
  ]
  for (const text of others) test(text.slice(0, 90), () => assertSame(text, false))
})

/** Both readers give the same call for a body that the fast path accepts, and forward the same JSON. */
function assertSame(text: string, isFastPath: boolean | undefined): void {
  const found = read(text)
  if (isFastPath !== undefined) assert.equal(found !== undefined, isFastPath)
  if (found === undefined) return
  const complete = readRpcBody(text, { batchItems: 10 }, { requestId: '' })
  assert(complete.kind === 'calls' && !complete.batch)
  assert.deepEqual(complete.items, [{ call: found.call }])
  assert(isFastPathId(found.call.id))
  assert.equal(found.text, text.trim())
  assert.deepEqual(JSON.parse(found.text), JSON.parse(writeCall(found.call, found.call.id)))
}

/** Nearly valid bodies: members in any order, some twice, values and spaces of all kinds, up to two bytes changed. */
test('property: readRpcBody reads every accepted body in the same way', () => {
  const json = fc.oneof(
    fc.json({ maxDepth: 4 }),
    fc.constantFrom('0', '-1', '[]', '{}', '"2.0"', '"a"', '12', 'null', '[1,{"a":[]}]'),
  )
  const space = fc.constantFrom('', '', '', ' ', '\n', '\t \r')
  const member = fc.oneof(
    fc.constant('"jsonrpc":"2.0"'),
    fc.constant('"method":"getSlot"'),
    fc.constant('"id":7'),
    fc
      .tuple(fc.constantFrom('jsonrpc', 'id', 'method', 'params', 'x'), space, space, json)
      .map(([name, a, b, value]) => `"${name}"${a}:${b}${value}`),
  )
  const usual = fc.tuple(
    fc.shuffledSubarray(['"jsonrpc":"2.0"', '"method":"getSlot"', '"id":7'], { minLength: 3 }),
    fc.array(member, { maxLength: 2 }),
  )
  const body = fc
    .tuple(usual, space, space, fc.array(fc.tuple(fc.nat(), fc.integer({ min: 0, max: 255 })), { maxLength: 2 }))
    .map(([[first, more], before, between, changes]) => {
      const bytes = Buffer.from(`${before}{${[...first, ...more].join(`${between},${before}`)}}${between}`)
      for (const [at, byte] of changes) if (changes.length === 2) bytes[at % bytes.length] = byte
      return bytes.toString('utf8')
    })
  let accepted = 0
  fc.assert(
    fc.property(body, (text) => {
      if (read(text) !== undefined) accepted += 1
      assertSame(text, undefined)
    }),
    seedFor('fast path calls', 2000),
  )
  assert(accepted > 200, `${accepted} were accepted`)
})
