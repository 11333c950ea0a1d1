import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { createSolanaRpc } from '@solana/kit'
import { decodeBase58, encodeBase58 } from '../../src/solana/crypto/base58.ts'
import { buildLegacyMessage, signMessage } from '../../src/solana/transaction/build.ts'
import { openSenderLoad, sendTransactionBody } from '../support/sender/load.ts'
import {
  MIN_TIP,
  post,
  sign,
  signatureOf,
  startChainAndSender,
  startTestSender,
  TIP_ACCOUNTS,
  tipInstruction,
  tipped,
  walletOf,
} from '../support/sender/start.ts'

const RELAXED = { perAddressPerSecond: 1000, perAddressBurst: 1000, perPayerPerSecond: 1000, perPayerBurst: 1000 }

describe('refusals of the public endpoint', () => {
  let sluice: Awaited<ReturnType<typeof startChainAndSender>>
  before(async () => {
    sluice = await startChainAndSender({ limits: RELAXED })
  })
  after(() => sluice[Symbol.asyncDispose]())
  const base64 = (wire: Uint8Array) => Buffer.from(wire).toString('base64')
  const good = (memo: string) => tipped(walletOf(0), sluice.blockhash(), memo)

  test('tips: the error code, and data to correct the transaction', async () => {
    const small = await sluice.sender.send(tipped(walletOf(0), sluice.blockhash(), 'small', MIN_TIP - 1n))
    assert.equal(small.status, 200)
    assert.equal(small.error?.code, -32041)
    const { minTipLamports, foundLamports, tipAccounts, required, found, reason } = small.error?.data ?? {}
    assert.deepEqual(
      [minTipLamports, foundLamports, tipAccounts, required, found, reason],
      [1_000_000, 999_999, TIP_ACCOUNTS, 1_000_000, 999_999, 'below-minimum'],
    )
    const none = await sluice.sender.send(sign(walletOf(0), sluice.blockhash(), []))
    assert.deepEqual([none.error?.code, none.error?.data['reason']], [-32040, 'no-transfer'])
    assert.deepEqual(none.error?.data['tipAccounts'], TIP_ACCOUNTS)
  })

  test('a forged signature, a wrong signature count, invalid bytes', async () => {
    const forged = good('forged')
    forged[10] = (forged[10] as number) ^ 1
    assert.equal((await sluice.sender.send(forged)).error?.code, -32003)
    const count = good('count')
    count[0] = 2
    assert.equal((await sluice.sender.send(Uint8Array.of(...count, ...new Uint8Array(64)))).error?.code, -32013)
    for (const [params, reason] of [
      [['%%%'], 'base58'],
      [[base64(good('cut')).slice(0, 40), { encoding: 'base64' }], 'truncated'],
      [[base64(Uint8Array.of(...good('tail'), 0)), { encoding: 'base64' }], 'trailing-bytes'],
      [[base64(good('x')), { encoding: 'base32' }], 'encoding'],
      [[17], 'encoding'],
      [[], 'encoding'],
    ] as const) {
      const { error } = await sluice.sender.call('sendTransaction', ...params)
      assert.deepEqual([error?.code, error?.data['reason']], [-32602, reason])
    }
    assert.equal(sluice.sender.sender.stats().accepted, 0)
  })

  test('an unknown or expired blockhash', async () => {
    const { error } = await sluice.sender.send(tipped(walletOf(0), encodeBase58(new Uint8Array(32).fill(3)), 'old'))
    assert.equal(error?.code, -32043)
    assert.deepEqual(error?.data['tipAccounts'], TIP_ACCOUNTS)
    assert.equal(error?.data['foundLamports'], 1_000_000)
  })

  test('an address lookup table that does not exist', async () => {
    const payer = walletOf(0)
    const table = new Uint8Array(32).fill(77)
    const legacy = buildLegacyMessage({
      feePayer: payer.publicKey,
      recentBlockhash: decodeBase58(sluice.blockhash()),
      instructions: [tipInstruction(payer)],
    })
    const wire = signMessage(Uint8Array.of(0x80, ...legacy, 1, ...table, 1, 0, 0), [payer])
    const { error } = await sluice.sender.send(wire)
    assert.deepEqual(
      [error?.code, error?.data['reason'], error?.data['lookupTable']],
      [-32602, 'lookup-table-not-found', encodeBase58(table)],
    )
  })

  test('detects base64 and base58 when no encoding is given', async () => {
    for (const encode of [base64, encodeBase58]) {
      const wire = good(`plain ${encode.name}`)
      assert.equal((await sluice.sender.call('sendTransaction', encode(wire))).result, signatureOf(wire))
    }
    const wire = good('named')
    assert.equal(
      (await sluice.sender.call('sendTransaction', encodeBase58(wire), { encoding: 'base58' })).result,
      signatureOf(wire),
    )
  })

  test('framing: methods, batches, notifications, paths', async () => {
    const { url } = sluice.sender
    assert.deepEqual((await sluice.sender.call('getTipAccounts')).result, TIP_ACCOUNTS)
    assert.equal((await sluice.sender.call('getHealth')).result, 'ok')
    assert.match(
      JSON.stringify((await sluice.sender.call('getVersion')).result),
      /"solana-core":"\d+\.\d+\.\d+\+sluice\.test"/,
    )
    assert.equal((await sluice.sender.call('getSlot')).error?.code, -32601)
    assert.equal((await post(url, '{')).error?.code, -32700)
    assert.equal((await post(url, '[]')).error?.code, -32600)
    assert.equal((await post(url, { jsonrpc: '1.0', id: 1, method: 'getHealth' })).error?.code, -32600)
    const call = { jsonrpc: '2.0', id: 'x', method: 'getHealth' }
    const long = await post(
      url,
      Array.from({ length: 11 }, () => call),
    )
    assert.deepEqual([long.status, long.error?.code, long.error?.data['limit']], [413, -32413, 'batchItems'])
    const batch = await post(`${url}/fast`, [call, { ...call, id: 2, method: 'getSlot' }])
    assert.match(batch.text, /^\[\{"jsonrpc":"2.0","result":"ok","id":"x"\},\{.*-32601.*"id":2\}\]$/)
    assert.equal((await post(url, { jsonrpc: '2.0', method: 'getHealth' })).status, 204)

    const status = async (path: string, init: RequestInit = {}) => (await fetch(`${url}${path}`, init)).status
    assert.equal(await (await fetch(`${url}/ping`)).text(), 'ok')
    assert.deepEqual(await (await fetch(`${url}/tips`)).json(), {
      min_tip_lamports: 1_000_000,
      tip_accounts: TIP_ACCOUNTS,
    })
    assert.equal(await status('/', { method: 'GET' }), 405)
    assert.equal(await status('/ping', { method: 'POST', body: '' }), 405)
    assert.equal(await status('/nowhere'), 404)
    assert.equal(await status('/', { method: 'POST', body: '{}', headers: { 'content-type': 'text/xml' } }), 415)
    const large = await post(url, `"${'x'.repeat(8200)}"`)
    assert.deepEqual([large.status, large.error?.code], [413, -32413])
    const preflight = await fetch(url, { method: 'OPTIONS' })
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /authorization, \*$/)
    assert.deepEqual([preflight.status, preflight.headers.get('access-control-allow-origin')], [204, '*'])
  })

  test('the raw endpoint refuses with 400 and the same message', async () => {
    const response = await fetch(`${sluice.sender.url}/api/v1/transactions`, {
      method: 'POST',
      body: 'abc',
      headers: { 'content-type': 'text/plain' },
    })
    assert.equal(response.status, 400)
    const body = (await response.json()) as { error: string; code: number; data: object }
    assert.deepEqual([body.error, body.code], ['invalid-params', -32602])
  })

  test('receipts: unknown signature, invalid wait', async () => {
    const signature = encodeBase58(new Uint8Array(64).fill(5))
    assert.equal((await sluice.sender.receipt(signature)).status, 404)
    assert.equal((await sluice.sender.receipt(signature, '?wait=61')).status, 400)
    assert.equal((await sluice.sender.receipt(signature, '?wait=x')).status, 400)
    assert.equal((await fetch(`${sluice.sender.url}/v1/transactions/short`)).status, 404)
  })

  test('the same signature from two clients at once is sent once, and both get a response', async () => {
    const before = sluice.sender.sender.stats().accepted
    const wire = good('twice')
    const responses = await Promise.all(Array.from({ length: 8 }, () => sluice.sender.send(wire)))
    assert.deepEqual(new Set(responses.map(({ result }) => result)), new Set([signatureOf(wire)]))
    const { body } = await sluice.sender.receipt(signatureOf(wire), '?wait=20')
    assert.equal(body.state, 'landed')
    assert.deepEqual(
      body.attempts.map(({ times }) => times),
      [1],
    )
    assert.equal((await sluice.sender.send(wire)).result, signatureOf(wire), 'and again after it has landed')
    assert.equal(sluice.sender.sender.stats().accepted, before + 1)

    const changed = Uint8Array.from(wire)
    changed[changed.length - 1] = (changed.at(-1) as number) ^ 1
    assert.equal(
      (await sluice.sender.send(changed)).error?.code,
      -32003,
      'other bytes under a known signature are not let through',
    )
  })
})

test('refuses with 429 at the limits of one address and one fee payer; the payer is charged only for valid signatures', async () => {
  const payerBurst = 2
  const [forgeries, tries] = [3, 8]
  await using sluice = await startChainAndSender({
    limits: {
      perAddressPerSecond: 1,
      perAddressBurst: forgeries + tries,
      perPayerPerSecond: 1,
      perPayerBurst: payerBurst,
    },
  })
  const { sender } = sluice
  const startedMs = performance.now()
  /** What a limit of one per second allows in addition on a slow machine. */
  const added = () => Math.ceil((performance.now() - startedMs) / 1000)
  const wires = Array.from({ length: tries }, (_, n) => tipped(walletOf(0), sluice.blockhash(), `${n}`))
  const forged = wires.slice(0, forgeries).map((wire) => Uint8Array.from(wire).fill(1, 1, 65))
  for (const wire of forged) assert.equal((await sender.send(wire)).error?.code, -32003)

  const responses = await Promise.all(wires.map((wire) => sender.send(wire)))
  const taken = responses.filter(({ status }) => status === 200).length
  assert.ok(taken >= payerBurst && taken <= payerBurst + added(), `${taken} taken`)
  assert.equal(sender.sender.stats().accepted, taken)
  const again = await Promise.all(wires.map(() => sender.send(wires[0] as Uint8Array)))
  const over = again.filter(({ status }) => status === 429)
  assert.ok(over.length >= tries - added(), `${over.length} refused`)
  for (const [limit, limited] of [
    ['perPayerPerSecond', responses.filter(({ status }) => status !== 200)],
    ['perAddressPerSecond', over],
  ] as const) {
    for (const { status, error, headers } of limited) {
      assert.deepEqual([status, error?.code, error?.data['limit'], error?.data['size']], [429, -32429, limit, 1])
      assert.match(headers.get('retry-after') ?? '', /^\d{1,3}$/)
    }
  }
})

test('accepts nothing without an open path and does not charge the payer', async () => {
  await using sender = await startTestSender({})
  const wire = sign(walletOf(0), encodeBase58(new Uint8Array(32).fill(3)), [tipInstruction(walletOf(0))])
  const { status, error } = await sender.send(wire)
  assert.deepEqual([status, error?.code], [200, -32503])
  assert.equal((await sender.call('getHealth')).error?.code, -32503)
  assert.equal(decodeBase58(signatureOf(wire)).length, 64)
})

test('kit does not report a sender without a path as a node that is behind', async () => {
  await using sender = await startTestSender({})
  const { NODE_ENV } = process.env
  // Otherwise kit looks up its own text for the code, and has one for Solana's codes only.
  process.env['NODE_ENV'] = 'production'
  try {
    await assert.rejects(createSolanaRpc(sender.url).getHealth().send(), /^SolanaError: Solana error #-32503;/)
  } finally {
    if (NODE_ENV === undefined) delete process.env['NODE_ENV']
    else process.env['NODE_ENV'] = NODE_ENV
  }
})

for (const [what, trustedProxies, statuses] of [
  [
    'limits each x-forwarded-for address of a trusted proxy by itself, on one connection',
    ['127.0.0.1'],
    [200, 200, 429],
  ],
  ['ignores x-forwarded-for of an untrusted client', [], [200, 429, 429]],
] as const) {
  test(what, async () => {
    await using sender = await startTestSender({
      trustedProxies: [...trustedProxies],
      limits: { perAddressPerSecond: 1, perAddressBurst: 1 },
    })
    using load = openSenderLoad(sender.url, 1)
    const body = sendTransactionBody(tipped(walletOf(0), encodeBase58(new Uint8Array(32).fill(3)), 'behind a proxy'))
    const got: number[] = []
    for (const address of ['203.0.113.1', '203.0.113.2', '203.0.113.2'])
      got.push((await load.post(body, `x-forwarded-for: ${address}\r\n`)).status)
    // Without an open path every call is refused; only the limit is a 429.
    assert.deepEqual(got, statuses)
  })
}
