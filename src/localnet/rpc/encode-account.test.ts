import assert from 'node:assert/strict'
import { Buffer } from 'node:buffer'
import { describe, it } from 'node:test'
import { zstdDecompressSync } from 'node:zlib'
import { account, encode, KEY_A } from '../../../test/support/solana/account-bytes.ts'
import { encodeAccount, isTooLongForBase58 } from './encode-account.ts'
import { writeJson } from './json.ts'

const text = Buffer.from('test data')

describe('encodeAccount', () => {
  it('writes exact integers in every encoding', () => {
    const json = writeJson(encodeAccount(KEY_A, account(text), { encoding: 'binary', readAccount: () => null }))
    assert.equal(
      json,
      '{"data":"2Uw1bpnsXxu3e","executable":false,"lamports":5000000,"owner":"11111111111111111111111111111111","rentEpoch":18446744073709551615,"space":9}',
    )
    assert.deepEqual(encode(account(text), { encoding: 'base58' }).data, ['2Uw1bpnsXxu3e', 'base58'])
    assert.deepEqual(encode(account(text), {}).data, ['dGVzdCBkYXRh', 'base64'])
    assert.deepEqual(encode(account(text), { encoding: 'jsonParsed' }).data, ['dGVzdCBkYXRh', 'base64'])
  })

  it('writes the same zstd frames as Agave', () => {
    assert.deepEqual(encode(account(text), { encoding: 'base64+zstd' }).data, [
      'KLUv/QBYSQAAdGVzdCBkYXRh',
      'base64+zstd',
    ])
    for (const length of [0, 1, 165, 255, 256, 131_072, 131_073, 3_000_000]) {
      const data = Buffer.alloc(length, 'solana').map((byte, index) => (byte * index) & 0xff)
      const [frame] = encode(account(data), { encoding: 'base64+zstd' }).data as [string]
      assert.deepEqual(zstdDecompressSync(Buffer.from(frame, 'base64')), data)
    }
  })

  it('slices data and still reports its full length', () => {
    const slice = (offset: number, length: number) => encode(account(text), { dataSlice: { offset, length } })
    assert.deepEqual(slice(0, 5), { ...encode(account(text), {}), data: ['dGVzdCA=', 'base64'] })
    assert.deepEqual(slice(5, 100).data, [Buffer.from('data').toString('base64'), 'base64'])
    assert.deepEqual(slice(9, 1).data, ['', 'base64'])
    assert.deepEqual(slice(1e19, 1e19).data, ['', 'base64'])
    assert.equal(slice(9, 1).space, 9)
  })

  it('encodes only short data as base58', () => {
    const long = account(new Uint8Array(129))
    assert.equal(isTooLongForBase58(long, { encoding: 'base58' }), true)
    assert.equal(isTooLongForBase58(long, { encoding: 'binary', dataSlice: { offset: 1, length: 200 } }), false)
    assert.equal(isTooLongForBase58(long, { encoding: 'base64' }), false)
    assert.equal(encode(long, { encoding: 'binary' }).data, 'error: data too large for bs58 encoding')
  })
})
