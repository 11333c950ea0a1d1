import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { Account } from '../chain/model.ts'
import { RpcError } from './errors.ts'
import { accountFilter, createMatcher } from './filters.ts'
import { readArguments } from './params.ts'

const account = (...data: number[]): Account => ({
  lamports: 1n,
  owner: 'x',
  data: Uint8Array.from(data),
  executable: false,
  rentEpoch: 0n,
})
const read = (json: string) => readArguments(`[${json}]`, [accountFilter])[0]
const matcher = (...filters: string[]) => createMatcher(filters.map(read))
const refused = (run: () => unknown) => {
  try {
    run()
  } catch (error) {
    assert(error instanceof RpcError)
    return error.message
  }
  return assert.fail('was not refused')
}

describe('account filters', () => {
  it('match size and bytes, in all three encodings', () => {
    assert.equal(matcher('{"dataSize":3}')(account(1, 2, 3)), true)
    assert.equal(matcher('{"dataSize":3}')(account(1, 2)), false)
    const base58 = encodeBase58(Uint8Array.of(2, 3))
    for (const bytes of [`"${base58}"`, '"AgM=","encoding":"base64"', '[2,3]']) {
      const matches = matcher(`{"memcmp":{"offset":1,"bytes":${bytes}}}`)
      assert.equal(matches(account(1, 2, 3)), true, bytes)
      assert.equal(matches(account(1, 2, 4)), false, bytes)
      assert.equal(matches(account(1, 2)), false, bytes)
    }
    assert.equal(matcher('{"memcmp":{"offset":3,"bytes":""}}')(account(1, 2, 3)), true)
    assert.equal(matcher('{"memcmp":{"offset":4,"bytes":""}}')(account(1, 2, 3)), false)
    assert.equal(matcher('{"memcmp":{"offset":18446744073709551615,"bytes":[1]}}')(account(1)), false)
    assert.equal(matcher('"tokenAccountState"')(account(1, 2, 3)), false)
    assert.equal(matcher('{"dataSize":3}', '{"memcmp":{"offset":0,"bytes":[9]}}')(account(1, 2, 3)), false)
  })

  it('refuse what Agave refuses', () => {
    const five = Array.from({ length: 5 }, () => '{"dataSize":1}')
    assert.equal(
      refused(() => matcher(...five)),
      'Too many filters provided; max 4',
    )
    assert.equal(
      refused(() => matcher('{"memcmp":{"offset":0,"bytes":"10"}}')),
      "Invalid param: Base58DecodeError(InvalidCharacter { character: '0', index: 1 })",
    )
    assert.equal(
      refused(() => matcher(`{"memcmp":{"offset":0,"bytes":"${'2'.repeat(176)}"}}`)),
      'Invalid param: DataTooLarge',
    )
    assert.equal(
      refused(() => matcher(`{"memcmp":{"offset":0,"bytes":[${Array(129).fill(0).join()}]}}`)),
      'Invalid param: DataTooLarge',
    )
    assert.equal(
      refused(() => matcher('{"memcmp":{"offset":0,"bytes":"A=A=","encoding":"base64"}}')),
      'Invalid param: Base64DecodeError(InvalidByte(1, 61))',
    )
    assert.equal(
      refused(() => matcher('{"mem":{}}')),
      'Invalid params: unknown variant `mem`, expected one of `dataSize`, `memcmp`, `tokenAccountState`.',
    )
    assert.equal(
      refused(() => matcher('{"memcmp":{"bytes":""}}')),
      'Invalid params: missing field `offset`.',
    )
  })
})
