import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { startChainAndSender, tipped, walletOf } from '../support/sender/start.ts'

type Reply = { result?: unknown; error?: { code: number; message: string; data?: Record<string, unknown> } }

/** Requests as the public libraries for block engines send them: JSON-RPC under /api/v1, an id of 1, some with `?uuid=`. */
describe('the sender as block engine libraries call it', () => {
  let sluice: Awaited<ReturnType<typeof startChainAndSender>>
  before(async () => {
    sluice = await startChainAndSender()
  })
  after(() => sluice[Symbol.asyncDispose]())

  async function post(path: string, method: string, params: unknown[]): Promise<{ status: number; reply: Reply }> {
    const response = await fetch(`${sluice.sender.url}/api/v1${path}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-jito-auth': 'a-uuid' },
      body: JSON.stringify({ id: 1, jsonrpc: '2.0', method, params }),
    })
    return { status: response.status, reply: (await response.json()) as Reply }
  }

  it('sendTransaction in base64 and base58 is sent and lands', async () => {
    const [a, b] = ['a', 'b'].map((memo) => tipped(walletOf(0), sluice.blockhash(), memo)) as [Uint8Array, Uint8Array]
    const first = await post('/transactions', 'sendTransaction', [
      Buffer.from(a).toString('base64'),
      { encoding: 'base64' },
    ])
    const second = await post('/transactions?uuid=a-uuid&bundleOnly=false', 'sendTransaction', [encodeBase58(b)])
    for (const [{ status, reply }, wire] of [
      [first, a],
      [second, b],
    ] as const) {
      assert.deepEqual([status, reply.result], [200, encodeBase58(wire.subarray(1, 65))])
      const { body } = await sluice.sender.receipt(String(reply.result), '?wait=20')
      assert.equal(body.state, 'landed')
    }
  })

  it('getTipAccounts works on the bundle path and on its own', async () => {
    const { result } = await sluice.sender.call('getTipAccounts')
    for (const path of ['/bundles', '/getTipAccounts', '/bundles?uuid=a-uuid'])
      assert.deepEqual((await post(path, 'getTipAccounts', [])).reply.result, result, path)
  })

  it('bundle methods are refused by name, and nothing is sent', async () => {
    const before = sluice.sender.sender.stats().accepted
    for (const [path, method] of [
      ['/bundles', 'sendBundle'],
      ['/bundles', 'simulateBundle'],
      ['/bundles', 'getBundleStatuses'],
      ['/getBundleStatuses', 'getBundleStatuses'],
      ['/getInflightBundleStatuses', 'getInflightBundleStatuses'],
    ] as const) {
      const { status, reply } = await post(path, method, [
        [encodeBase58(tipped(walletOf(0), sluice.blockhash(), method))],
      ])
      assert.deepEqual([status, reply.error?.code], [200, -32601], method)
      assert.match(reply.error?.message ?? '', new RegExp(`^${method} is not offered: .*sendTransaction`))
    }
    assert.equal(sluice.sender.sender.stats().accepted, before)
  })

  it('bundleOnly is refused by name, and nothing is sent', async () => {
    const before = sluice.sender.sender.stats().accepted
    const wire = Buffer.from(tipped(walletOf(0), sluice.blockhash(), 'only')).toString('base64')
    const { status, reply } = await post('/transactions?bundleOnly=true', 'sendTransaction', [
      wire,
      { encoding: 'base64' },
    ])
    assert.equal(status, 400)
    assert.match(JSON.stringify(reply), /bundleOnly is not offered/)
    assert.equal(sluice.sender.sender.stats().accepted, before)
  })
})
