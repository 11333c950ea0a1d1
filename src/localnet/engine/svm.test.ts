import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeBase58, encodeBase58 } from '../../solana/crypto/base58.ts'
import { SYSTEM_PROGRAM, TOKEN_2022_PROGRAM } from '../chain/addresses.ts'
import { createSvm } from './svm.ts'

test('a new engine has no wallet and no mint that the genesis does not list', () => {
  const svm = createSvm()
  const genesis = new Set(svm.genesisAccounts().map(([address]) => encodeBase58(address)))
  assert.ok(genesis.size > 20)
  for (const owner of [SYSTEM_PROGRAM, TOKEN_2022_PROGRAM]) {
    const held = svm.native.getProgramAccounts(decodeBase58(owner)).map(({ address }) => encodeBase58(address))
    assert.deepEqual(
      held.filter((address) => !genesis.has(address)),
      [],
      owner,
    )
  }
})
