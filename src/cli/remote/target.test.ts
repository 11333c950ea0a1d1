import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { createAdminToken } from '../../access/token.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { secureRandom } from '../../platform/process/random.ts'
import { parseRemoteUrl, readRemote, readRemoteToken } from './target.ts'

test('the address has scheme, host and port only, and http is for loopback hosts', () => {
  for (const text of ['https://h', 'https://h:9470/', 'http://localhost:1', 'http://127.0.0.1', 'http://[::1]:1'])
    assert.equal(parseRemoteUrl(text).href, new URL(text).href)
  for (const [text, message] of [
    ['https://h/?x=1', /has a path/],
    ['https://h/#x', /has a path/],
    ['https://h/v1', /has a path/],
    ['https://ana@h', /has credentials/],
    ['https://:secret1@h', /has credentials/],
    ['http://127.0.0.1.example.net', /not encrypted/],
    ['http://localhost.example.net', /not encrypted/],
    ['http://0.0.0.0', /not encrypted/],
    ['ftp://h', /not an http or https URL/],
  ] as const)
    assert.throws(
      () => parseRemoteUrl(text),
      (error: Error) => {
        assert.match(error.message, message, text)
        return !error.message.includes('secret1')
      },
    )
})

test('what follows two dashes is no flag of ours, and a flag is no value', () => {
  const words = ['indexer', 'query', '--', '--remote', 'https://h']
  assert.deepEqual(readRemote(words, {}), { words, remote: undefined })
  assert.throws(() => readRemote(['plan', 'list', '--remote', '--json'], {}), /--remote needs a value/)
  assert.throws(() => readRemote(['plan', 'list', '--remote='], {}), /--remote needs a value/)
  assert.deepEqual(readRemote(['plan', '--remote=https://h', 'list', '--remote-token-file', 'f'], {}), {
    words: ['plan', 'list'],
    remote: { url: 'https://h', tokenFile: 'f' },
  })
})

test('a file that is named by the flag counts more than a token of the environment', async () => {
  using folder = makeTestFolder()
  const [inFile, inEnv] = [createAdminToken(secureRandom).secret, createAdminToken(secureRandom).secret]
  writeFileSync(folder.file('token'), inFile, { mode: 0o600 })
  const read = async (tokenFile: string | undefined, env: Record<string, string>) =>
    (await readRemoteToken({ url: 'https://h', tokenFile }, env)).reveal()
  const env = { SLUICE_ADMIN_TOKEN: inEnv }
  assert.equal(await read(folder.file('token'), env), inFile)
  assert.equal(await read(undefined, env), inEnv)
  assert.equal(await read(undefined, { SLUICE_ADMIN_TOKEN_FILE: folder.file('token') }), inFile)
  await assert.rejects(read(undefined, { ...env, SLUICE_ADMIN_TOKEN_FILE: folder.file('token') }), /both set/)
  await assert.rejects(read(undefined, {}), /needs the token of an administrator/)
})
