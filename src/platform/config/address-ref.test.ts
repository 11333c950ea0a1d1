import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isAddressRef, resolveAddress } from './address-ref.ts'

const HTTP = ['http:', 'https:']
const resolve = (given: string, env: Record<string, string> = {}, mayHaveQuery = true) =>
  resolveAddress({ what: 'node a', given, protocols: HTTP, mayHaveQuery }, { env })

test('an address is a reference when it names a variable or a file, and not when it is a URL', () => {
  for (const text of ['env:RPC', 'file:rpc', 'file:/etc/sluice/rpc']) assert.ok(isAddressRef(text), text)
  for (const text of ['http://a', 'file:///etc/passwd', 'env:', 'env:A B', '']) assert.ok(!isAddressRef(text), text)
})

test('resolves a reference to an address with a query, and returns a literal one as it is', async () => {
  assert.equal(await resolve('http://a:1'), 'http://a:1')
  assert.equal(await resolve('env:RPC', { RPC: 'https://a/v1?api-key=k' }), 'https://a/v1?api-key=k')
})

test('refuses what is no usable address, without quoting it', async () => {
  const refused = (given: string, env: Record<string, string>, mayHaveQuery?: boolean) =>
    assert.rejects(resolve(given, env, mayHaveQuery), (error: Error & { code?: string; fix?: string }) => {
      assert.ok(!`${error.message} ${error.fix}`.includes('canary'))
      return error.code === 'secret-invalid'
    })
  for (const text of ['canary', 'ws://canary', 'http://canary:p@a', 'http://a/#canary', 'http://a canary']) {
    await refused('env:RPC', { RPC: text })
  }
  await refused('env:RPC', {})
  await refused('env:RPC', { RPC: 'http://a/?canary=1' }, false)
})
