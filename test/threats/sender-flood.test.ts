import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { sendTransactionBody } from '../support/sender/load.ts'
import { manySigned, signatureOf, startTestSender, type TestSender, tipped, walletOf } from '../support/sender/start.ts'

const BLOCKHASH = encodeBase58(new Uint8Array(32).fill(3))
const [MANY, OTHER] = ['203.0.113.1', '203.0.113.2']
const LIMITS = {
  waitersMax: 4,
  waitersPerAddressMax: 2,
  pendingPerAddressMax: 5,
  pendingPerPayerMax: 3,
  perAddressPerSecond: 100,
  perAddressBurst: 100,
  signaturesPerAddressPerSecond: 40,
  readsPerAddressPerSecond: 20,
  // A check may take long on a busy machine.
  checkDelayMsMax: 1000,
}

/** The node accepts every transaction and none lands, so all stay pending. */
const RAW = { 'content-type': 'text/plain' }
/** Above `bodyBytesMax`. */
const LARGE = 'x'.repeat(9000)

describe('one address cannot exhaust shared resources', () => {
  let node: FakeNode
  let sender: TestSender
  before(async () => {
    node = await startFakeNode()
    sender = await startTestSender({
      nodes: [{ name: 'a', rpc: node.rpc }],
      limits: LIMITS,
      trustedProxies: ['127.0.0.1'],
    })
  })
  after(async () => {
    await sender[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  async function from(address: string, path: string, init: RequestInit = {}) {
    const headers = new Headers(init.headers)
    if (!headers.has('content-type')) headers.set('content-type', 'application/json')
    headers.set('x-forwarded-for', address)
    const response = await fetch(`${sender.url}${path}`, { ...init, headers })
    const text = await response.text()
    const body = (text.startsWith('{') ? JSON.parse(text) : {}) as {
      result?: string
      error?: { data: Record<string, unknown> }
      data?: Record<string, unknown>
    }
    const { limit, size } = body.error?.data ?? body.data ?? {}
    return { status: response.status, result: body.result, limit, size, text }
  }
  const post = (address: string, body: string) => from(address, '/', { method: 'POST', body })
  const send = (address: string, wire: Uint8Array) => post(address, sendTransactionBody(wire))

  test('transactions in flight are limited per payer and per address', async () => {
    const ofPayer = (payer: number, n: number) =>
      send(MANY, tipped(walletOf(payer), BLOCKHASH, `pending ${payer} ${n}`))
    for (let n = 0; n < LIMITS.pendingPerPayerMax; n++) assert.equal((await ofPayer(1, n)).status, 200)
    const { status, limit, size } = await ofPayer(1, 99)
    assert.deepEqual([status, limit, size], [429, 'pendingPerPayerMax', LIMITS.pendingPerPayerMax])
    for (let n = 0; n < 2; n++) assert.equal((await ofPayer(2, n)).status, 200)
    const full = await ofPayer(3, 0)
    assert.deepEqual([full.status, full.limit, full.size], [429, 'pendingPerAddressMax', LIMITS.pendingPerAddressMax])
    assert.equal((await send(OTHER, tipped(walletOf(3), BLOCKHASH, 'beside'))).status, 200)
  })

  test('waits for receipts are limited per address', async () => {
    const wire = tipped(walletOf(4), BLOCKHASH, 'waited for')
    assert.equal((await send(OTHER, wire)).status, 200)
    const path = (seconds: number) => `/v1/transactions/${signatureOf(wire)}?wait=${seconds}`
    const leaving = new AbortController()
    const held = Array.from({ length: LIMITS.waitersPerAddressMax }, () =>
      from(MANY, path(60), { signal: leaving.signal }).catch(() => undefined),
    )
    const outcomes: Awaited<ReturnType<typeof from>>[] = []
    await until('one too many waits', async () => {
      outcomes.push(await from(MANY, path(1)))
      return outcomes.at(-1)?.status === 429
    })
    assert.deepEqual(
      [outcomes.at(-1)?.limit, outcomes.at(-1)?.size],
      ['waitersPerAddressMax', LIMITS.waitersPerAddressMax],
    )
    assert.equal((await from(OTHER, path(1))).status, 200)
    leaving.abort()
    await Promise.all(held)
  })

  test('a flood of forged transactions with many signatures does not affect other addresses', async () => {
    const flood = Array.from({ length: 60 }, (_, n) => manySigned(10, BLOCKHASH, `forged ${n}`).fill(7, 1, 65))
    const outcomes = Promise.all(flood.map((wire) => send('203.0.113.3', wire)))
    const other = await send('203.0.113.4', tipped(walletOf(5), BLOCKHASH, 'in between'))
    assert.equal(other.status, 200, other.text)
    const limits = new Set((await outcomes).filter(({ status }) => status === 429).map(({ limit }) => limit))
    assert.ok(limits.has('signaturesPerAddressPerSecond'), [...limits].join())
  })

  test('calls other than sendTransaction are limited too', async () => {
    const health = '{"jsonrpc":"2.0","id":1,"method":"getHealth"}'
    const requests: [string, string, RequestInit][] = [
      ['getHealth', '/', { method: 'POST', body: health }],
      ['a batch', '/', { method: 'POST', body: `[${Array.from({ length: 10 }, () => health).join()}]` }],
      ['an unknown method', '/', { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"x"}' }],
      ['no JSON', '/', { method: 'POST', body: '{' }],
      ['no request', '/', { method: 'POST', body: '1' }],
      ['a bundle', '/api/v1/bundles', { method: 'POST', body: '{"jsonrpc":"2.0","id":1,"method":"sendBundle"}' }],
      ['bundleOnly', '/api/v1/transactions?bundleOnly=true', { method: 'POST', body: 'AA' }],
      ['no such response', '/api/v1/transactions?response=x', { method: 'POST', body: 'AA', headers: RAW }],
      [
        'no such type',
        '/api/v1/transactions',
        { method: 'POST', body: 'AA', headers: { 'content-type': 'image/png' } },
      ],
      ['JSON of no such type', '/', { method: 'POST', body: health, headers: { 'content-type': 'image/png' } }],
      ['too large', '/', { method: 'POST', body: LARGE }],
      ['a transaction that is too large', '/api/v1/transactions', { method: 'POST', body: LARGE, headers: RAW }],
      ['tips', '/tips', {}],
      ['ping', '/ping', {}],
      ['nowhere', '/nowhere', {}],
    ]
    for (const [at, [what, path, init]] of requests.entries()) {
      const address = `198.51.100.${at}`
      const outcomes = await Promise.all(Array.from({ length: 100 }, () => from(address, path, init)))
      const refused = outcomes.find(({ status }) => status === 429)
      assert.ok(refused !== undefined, what)
      if (what !== 'a batch') assert.deepEqual([refused.limit, refused.size], ['readsPerAddressPerSecond', 20], what)
    }
    assert.equal((await post(OTHER, health)).status, 200)
  })
})
