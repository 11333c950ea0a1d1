import assert from 'node:assert/strict'
import { chmodSync, readdirSync, readFileSync, statSync } from 'node:fs'
import { test } from 'node:test'
import { Keypair } from '@solana/web3.js'
import { mockSync } from '../../../test/support/process/mock-sync.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { openKeyFile, parseKeyFile } from './key-files.ts'

test('a key is created once, in the format of solana-keygen', async () => {
  using folder = makeTestFolder()
  const random = createSeededRandom(1)
  const key = await openKeyFile(folder.path, 'faucet', random)
  assert.equal(statSync(folder.file('faucet.json')).mode & 0o777, 0o600)
  const numbers = JSON.parse(readFileSync(folder.file('faucet.json'), 'utf8')) as number[]
  assert.deepEqual(Keypair.fromSecretKey(Uint8Array.from(numbers)).publicKey.toBytes(), key.publicKey)
  assert.deepEqual((await openKeyFile(folder.path, 'faucet', random)).publicKey, key.publicKey)
})

test('a disk that is full leaves no file, and the key is made when there is space', async (t) => {
  using folder = makeTestFolder()
  const full = Object.assign(new Error('no space left on device'), { code: 'ENOSPC' })
  const sync = await mockSync(t, folder.file('any'), () => Promise.reject(full))
  await assert.rejects(openKeyFile(folder.path, 'tip-3', createSeededRandom(1)), { code: 'disk-full' })
  assert.deepEqual(readdirSync(folder.path), ['any'])
  sync.mock.restore()
  const key = await openKeyFile(folder.path, 'tip-3', createSeededRandom(1))
  assert.deepEqual((await openKeyFile(folder.path, 'tip-3', createSeededRandom(2))).publicKey, key.publicKey)
})

test('a key file readable by other users is refused', async () => {
  using folder = makeTestFolder()
  await openKeyFile(folder.path, 'faucet', createSeededRandom(1))
  chmodSync(folder.file('faucet.json'), 0o644)
  await assert.rejects(openKeyFile(folder.path, 'faucet', createSeededRandom(1)), { code: 'file-mode' })
})

test('an invalid key file is refused without quoting its text', () => {
  for (const text of [
    '',
    '[]',
    '[1,2,3]',
    `[${new Uint8Array(64).fill(7).join()}]`,
    `[${new Uint16Array(64).fill(300).join()}]`,
    '"seed words here"',
  ]) {
    assert.throws(
      () => parseKeyFile(text, 'k.json'),
      (error: Error) => /k\.json is not a keypair file/.test(error.message) && !error.message.includes('seed words'),
    )
  }
})
