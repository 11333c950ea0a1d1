import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { zstdCompressSync } from 'node:zlib'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { MEMO_PROGRAM } from '../chain/addresses.ts'
import { Engine } from '../engine/engine.ts'
import { startTestChain } from '../test-chain.ts'
import { parseAccountFile, readFixtures } from './fixtures.ts'

const KEY = '4Nd1mBQtrMJVYVfKf2PJy9NZUZdTAsp7D4xWLs4gDB4T'
const OWNER = 'TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA'
const fileOf = (data: string, lamports = '18446744073709551615') =>
  `{"pubkey":"${KEY}","account":{"lamports":${lamports},"data":${data},"owner":"${OWNER}","executable":false,"rentEpoch":18446744073709551615,"space":3}}`

test('parses every encoding of account data that a node writes', () => {
  const zstd = Buffer.from(zstdCompressSync(Buffer.from([1, 2, 3]))).toString('base64')
  for (const data of ['["AQID","base64"]', '["Ldp","base58"]', '"Ldp"', `["${zstd}","base64+zstd"]`]) {
    const [address, account] = parseAccountFile(fileOf(data), 'x.json')
    assert.equal(address, KEY)
    assert.deepEqual(account.data, Uint8Array.of(1, 2, 3))
    assert.equal(account.lamports, 18446744073709551615n)
    assert.equal(account.rentEpoch, 18446744073709551615n)
    assert.equal(account.owner, OWNER)
  }
})

test('an error names the invalid file and the reason', () => {
  const wrong: [string, RegExp][] = [
    ['{', /x\.json: it is not JSON/],
    ['null', /"pubkey" is no address/],
    ['{"pubkey":"short"}', /"pubkey" is no address/],
    [`{"pubkey":"${KEY}"}`, /"account" is missing/],
    [fileOf('["AQID","base64"]', '-1'), /"lamports" is no u64/],
    [fileOf('["AQID","base64"]', '1.5'), /"lamports" is no u64/],
    [fileOf('["AQID","base65"]'), /"data" is not/],
    [fileOf('["0OIl","base58"]'), /"data" is not/],
    [fileOf('7'), /"data" is not/],
  ]
  for (const [text, message] of wrong) assert.throws(() => parseAccountFile(text, 'x.json'), message)
  assert.throws(() => readFixtures('/does/not/exist'), /account file .does.not.exist/)
})

test('loads accounts and programs of a folder into the first slot', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'fixtures-'))
  try {
    const dump = new Engine().handle({ op: 'dump' })
    assert(dump && 'accounts' in dump)
    const memo = dump.accounts.find(([address]) => Buffer.compare(address, decodeBase58(MEMO_PROGRAM)) === 0)
    const program = '8qbHbw2BbbTHBW1sbeqakYXVKRQM8Ne7pLK7m6CVfeR'
    writeFileSync(join(dir, `${program}.so`), memo?.[1].data as Uint8Array)
    writeFileSync(join(dir, 'account.json'), fileOf('["AQID","base64"]', '1000000000'))
    writeFileSync(join(dir, 'notes.txt'), 'not an account')
    const fixtures = readFixtures(dir)
    assert.deepEqual(fixtures.map(([address]) => address).sort(), [KEY, program].sort())

    await using host = await startTestChain({}, { fixtures })
    const { chain } = host
    assert.deepEqual(chain.account(KEY, 'finalized')?.data, Uint8Array.of(1, 2, 3))
    assert.equal(chain.account(program, 'finalized')?.executable, true)
    assert.deepEqual([...chain.accountsOwnedBy(OWNER, 'processed')].map(([address]) => address).includes(KEY), true)
  } finally {
    rmSync(dir, { recursive: true })
  }
})
