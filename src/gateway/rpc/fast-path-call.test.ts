import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import fc from 'fast-check'
import { seedFor } from '../../core/test-seed.ts'
import { readFastPathCall } from './fast-path-call.ts'
import { isFastPathId, readRpcBody, writeCall } from './request.ts'

const read = (text: string) => readFastPathCall(Buffer.from(text))

describe('a call in the plain form', () => {
  const plain = [
    '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
    '{"jsonrpc":"2.0","id":"a b","method":"getSlot","params":[]}',
    ' {\n"method" : "getBalance", "params" : [ "abc", { "commitment" : "processed", "a": [true, false, null, 0, 17] } ],\t"id":0,"jsonrpc":"2.0"} \r\n',
    '{"jsonrpc":"2.0","id":123456789012345,"method":"","params":{}}',
    '{"jsonrpc":"2.0","id":1,"method":"m","params":[[],{},[{"a":{"b":[1]}}]]}',
  ]
  for (const text of plain) test(text, () => assertSame(text, true))
})

describe('what is left to the complete reader', () => {
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

/** Both readers agree on what the quick one takes, and what it passes on says the same as what the other would. */
function assertSame(text: string, isPlain: boolean | undefined): void {
  const found = read(text)
  if (isPlain !== undefined) assert.equal(found !== undefined, isPlain)
  if (found === undefined) return
  const complete = readRpcBody(text, { batchItems: 10 })
  assert(complete.kind === 'calls' && !complete.batch)
  assert.deepEqual(complete.items, [{ call: found.call }])
  assert(isFastPathId(found.call.id))
  assert.equal(found.text, text.trim())
  assert.deepEqual(JSON.parse(found.text), JSON.parse(writeCall(found.call, found.call.id)))
}

/** Bodies that are nearly right: members in any order, now and then twice, with values and spaces of all kinds, then a byte or two changed. */
test('property: whatever it takes, the complete reader reads in the same way', () => {
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
  let taken = 0
  fc.assert(
    fc.property(body, (text) => {
      if (read(text) !== undefined) taken += 1
      assertSame(text, undefined)
    }),
    seedFor('plain calls', 2000),
  )
  assert(taken > 200, `${taken} were plain`)
})
