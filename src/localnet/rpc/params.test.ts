import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { RpcError } from './errors.ts'
import {
  boolean,
  defaulted,
  listOf,
  oneOf,
  optional,
  readArguments,
  required,
  string,
  struct,
  u8,
  u64,
} from './params.ts'
import { accountConfig, blockConfig, commitment, signatureStatusConfig, tokenAccountsFilter } from './request-shapes.ts'
import { refusal } from './test-refusal.ts'

const maybeString = optional(string)
const numbers = listOf(u64)
const strict = struct('Config', {
  flag: defaulted(boolean, false),
  level: required('level', oneOf('a', 'b')),
  small: optional(u8),
})

describe('readArguments', () => {
  it('counts arguments as jsonrpc-derive does', () => {
    assert.equal(
      refusal(() => readArguments(undefined, [string], [maybeString])),
      '`params` should have at least 1 argument(s)',
    )
    assert.equal(
      refusal(() => readArguments('{"a":1}', [string], [maybeString])),
      '`params` should be an array',
    )
    assert.equal(
      refusal(() => readArguments('["a","b","c"]', [string], [maybeString])),
      'Invalid parameters: Expected from 1 to 2 parameters.',
    )
    assert.equal(
      refusal(() => readArguments(undefined, [u64])),
      'Invalid params: invalid type: null, expected a tuple of size 1.',
    )
    assert.equal(
      refusal(() => readArguments('{}', [u64])),
      'Invalid params: invalid type: map, expected a tuple of size 1.',
    )
    assert.equal(
      refusal(() => readArguments('[1]', [u64, u64])),
      'Invalid params: invalid length 1, expected a tuple of size 2.',
    )
    assert.equal(
      refusal(() => readArguments('[1,2,3]', [u64, u64])),
      'Invalid params: invalid length 3, expected fewer elements in array.',
    )
    assert.equal(
      refusal(() => readArguments('[1]', [])),
      'Invalid parameters: No parameters were expected',
    )
    assert.deepEqual(readArguments('[]', []), [])
    assert.deepEqual(readArguments('["a",null]', [string], [maybeString]), ['a', undefined])
    assert.deepEqual(readArguments('["a"]', [string], [maybeString]), ['a'])
  })

  it('includes unexpected params in the error data', () => {
    assert.throws(
      () => readArguments('[1,"x",{"a":[null,true]}]', []),
      (error: RpcError) => error.data === 'Array([Number(1), String("x"), Object {"a": Array [Null, Bool(true)]}])',
    )
    assert.throws(
      () => readArguments('{"a":1}', []),
      (error: RpcError) => error.data === 'Map({"a": Number(1)})',
    )
    assert.throws(
      () => readArguments('[1,2,3]', [u64], [numbers]),
      (error: RpcError) => error.data === '"Got: 3"',
    )
  })

  it("reports errors with serde's messages", () => {
    const cases: [() => unknown, string][] = [
      [() => readArguments('[1]', [string]), 'invalid type: integer `1`, expected a string'],
      [() => readArguments('["a"]', [u64]), 'invalid type: string "a", expected u64'],
      [() => readArguments('[-1]', [u64]), 'invalid value: integer `-1`, expected u64'],
      [() => readArguments('[1.5]', [u64]), 'invalid type: floating point `1.5`, expected u64'],
      [() => readArguments('[1.0]', [u64]), 'invalid type: floating point `1.0`, expected u64'],
      [
        () => readArguments('[18446744073709551616]', [u64]),
        'invalid type: floating point `18446744073709552000.0`, expected u64',
      ],
      [() => readArguments('[256]', [u8]), 'invalid value: integer `256`, expected u8'],
      [() => readArguments('[true]', [numbers]), 'invalid type: boolean `true`, expected a sequence'],
      [() => readArguments('[[null]]', [numbers]), 'invalid type: null, expected u64'],
      [() => readArguments('[[]]', [strict]), 'invalid type: sequence, expected struct Config'],
      [() => readArguments('[{}]', [strict]), 'missing field `level`'],
      [() => readArguments('[{"level":"c"}]', [strict]), 'unknown variant `c`, expected `a` or `b`'],
      [() => readArguments('[{"level":"a","flag":null}]', [strict]), 'invalid type: null, expected a boolean'],
      [
        () => readArguments('["x"]', [commitment]),
        'unknown variant `x`, expected one of `processed`, `confirmed`, `finalized`',
      ],
      [
        () => readArguments('[1]', [blockConfig]),
        'data did not match any variant of untagged enum RpcEncodingConfigWrapper',
      ],
      [() => readArguments('[{}]', [signatureStatusConfig]), 'missing field `searchTransactionHistory`'],
      [
        () => readArguments('[{"foo":"x"}]', [tokenAccountsFilter]),
        'unknown variant `foo`, expected `mint` or `programId`',
      ],
    ]
    for (const [run, message] of cases) assert.equal(refusal(run), `Invalid params: ${message}.`)
  })

  it('ignores unknown members and an invalid commitment', () => {
    const [config] = readArguments('[{"commitment":"soon","encoding":"base64","extra":1}]', [], [accountConfig])
    assert.equal(config?.commitment, undefined)
    assert.equal(config?.encoding, 'base64')
    assert.equal(readArguments('["jsonParsed"]', [], [blockConfig])[0]?.encoding, 'jsonParsed')
    assert.equal(
      readArguments('[{"minContextSlot":18446744073709551615}]', [], [accountConfig])[0]?.minContextSlot,
      18446744073709551615n,
    )
  })
})
