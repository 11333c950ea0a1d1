import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { accountRecord, shredsReport, usageReport, whoamiRecord } from '../../src/contract/schemas/customer.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { rawPost } from '../support/gateway/raw-post.ts'
import { type ServedGateway, startServedGateway } from '../support/gateway/served.ts'

const CALLS = { getBalance: 17, getSlot: 5 }
const WORKERS = 2

describe('the own usage of a customer, over two gateway threads', () => {
  const stack = new AsyncDisposableStack()
  let node: FakeNode
  let gateway: ServedGateway
  before(async () => {
    node = stack.use(await startFakeNode())
    gateway = stack.use(
      await startServedGateway([{ name: 'a', rpc: node.rpc }], {
        workers: WORKERS,
        env: { SLUICE_EXECUTION__SIMULATED: 'true' },
      }),
    )
  })
  after(() => stack.disposeAsync())

  async function run(...words: string[]): Promise<string> {
    const { code, stdout, stderr } = await gateway.sluice(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }
  const get = (path: string, token: string, headers = {}) =>
    fetch(`${gateway.url}${path}`, { headers: { 'x-token': token, ...headers } })

  async function subscribe(name: string, ...more: string[]): Promise<string> {
    const words = ['--customer', 'acme', '--plan', 'free', '--print-token', ...more]
    const token = /slc_[0-9A-Za-z]{38}/.exec(await run('sub', 'create', name, ...words))?.[0] ?? ''
    await until('the token is valid', async () => {
      const round = await Promise.all(Array.from({ length: 6 }, () => get('/v1/account', token)))
      for (const response of round) await response.arrayBuffer()
      return round.every(({ status }) => status === 200)
    })
    return token
  }
  /** Reports have a rate, which a test that waits for one reaches. */
  async function withinRate(ask: () => Promise<Response>): Promise<Response> {
    let response = await ask()
    await until('the rate allows it', async () => response.status !== 429 || (response = await ask()).status !== 429)
    return response
  }
  const usage = async (token: string, query = '') => {
    const response = await withinRate(() => get(`/v1/usage${query}`, token))
    const text = await response.text()
    assert.equal(response.status, 200, text)
    return usageReport.parse(JSON.parse(text))
  }
  /** On connections of their own, so that both threads count. */
  async function callAll(token: string): Promise<void> {
    for (const [method, count] of Object.entries(CALLS)) {
      const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: [] })
      const replies = await Promise.all(Array.from({ length: count }, () => rawPost(gateway.url, token, body).response))
      assert.ok(replies.every(({ status }) => status === 200))
    }
  }

  test('sums are those of the calls, in every grouping; another customer sees nothing of it', async () => {
    const [token, other] = [await subscribe('counted'), await subscribe('other')]
    await callAll(token)
    const total = CALLS.getBalance + CALLS.getSlot
    await until('everything is written', async () => (await usage(token, '?by=total')).totals.calls === total)
    for (const by of ['hour', 'day', 'total', 'method']) {
      const { bytes, ...totals } = (await usage(token, `?by=${by}`)).totals
      assert.deepEqual(totals, { calls: total, units: total, refused: 0 }, by)
      // Bytes are not counted by method.
      assert.equal(bytes === undefined, by === 'method', by)
    }
    const { lines } = await usage(token, '?by=method&since=1d')
    assert.deepEqual(
      lines.map(({ interface: name, method, calls }) => [name, method, calls]),
      [
        ['rpc', 'getBalance', CALLS.getBalance],
        ['rpc', 'getSlot', CALLS.getSlot],
      ],
    )
    assert.deepEqual((await usage(other, '?by=method')).lines, [])
    const csv = await withinRate(() => get('/v1/usage?by=method', token, { accept: 'text/csv' }))
    assert.deepEqual(
      [csv.headers.get('cache-control'), csv.headers.get('x-content-type-options')],
      ['no-store', 'nosniff'],
    )
    assert.match(csv.headers.get('content-type') ?? '', /^text\/csv/)
    assert.deepEqual((await csv.text()).trim().split('\n'), [
      'interface,method,calls,units,refused',
      `rpc,getBalance,${CALLS.getBalance},${CALLS.getBalance},0`,
      `rpc,getSlot,${CALLS.getSlot},${CALLS.getSlot},0`,
    ])
    await run('sub', 'suspend', 'counted', '--yes')
    await until('a suspended one is refused', async () => (await get('/v1/account', token)).status === 401)
    assert.equal((await get('/v1/usage', token)).status, 401)
    assert.equal((await get('/v1/usage', '')).status, 401)
  })

  test('a replaced token reads its account until it ends, and sees that it was replaced', async () => {
    const token = await subscribe('rotated')
    const rotated = await run('token', 'rotate', 'rotated', '--grace', '1h', '--print-token', '--yes')
    const fresh = /slc_[0-9A-Za-z]{38}/.exec(rotated)?.[0] ?? ''
    await until('the new one is valid', async () => (await get('/v1/account', fresh)).status === 200)
    const account = async (given: string) => accountRecord.parse(await (await get('/v1/account', given)).json())
    await until('the old one is retiring', async () => (await account(token)).token?.valid_until != null)
    const seen = await account(fresh)
    assert.deepEqual([seen.token, seen.customer], [{ last4: fresh.slice(-4), valid_until: null }, 'acme'])
    const old = seen.tokens?.find(({ state }) => state === 'retiring')
    assert.equal(old?.last4, token.slice(-4))
    assert.ok(Date.parse(old?.valid_until ?? '') > Date.now())
    assert.equal(seen.endpoints['rpc'], gateway.url)
    assert.doesNotMatch(JSON.stringify(seen), new RegExp(`${fresh}|${token}|sha256`))
    assert.equal((await usage(token)).totals.calls, 0)
    await run('token', 'revoke', 'rotated', '--yes')
    await until('both are refused', async () => (await get('/v1/usage', fresh)).status === 401)
  })

  test('customers of other products than RPC read their plan, account and usage; shreds are for those who have them', async () => {
    const token = await subscribe('raw', '--products', 'indexer,shreds-raw')
    assert.equal((await get('/v1/connections', token)).status, 401)
    const me = whoamiRecord.parse(await (await get('/v1/whoami', token)).json())
    assert.deepEqual(me.products, ['indexer', 'shreds-raw'])
    assert.deepEqual((await usage(token)).lines, [])
    const shreds = shredsReport.parse(await (await get('/v1/shreds', token)).json())
    assert.deepEqual([shreds.destination, shreds.pending], [null, null])
    assert.equal((await get('/v1/shreds', gateway.token)).status, 401)
  })

  test('refuses a wrong query with its reason, and one report costs several pages', async () => {
    const token = await subscribe('bounded')
    const refused = await get('/v1/usage?since=90d', token)
    const body = (await refused.json()) as Record<string, unknown>
    assert.deepEqual([refused.status, body['limit'], body['size']], [400, 'usagePeriodDays', 31])
    assert.equal((await get('/v1/usage?since=90d&by=total', token)).status, 200)
    const unknown = (await (await get('/v1/usage?form=csv', token)).json()) as { message: string }
    assert.match(unknown.message, /^"form" is not a parameter/)
    assert.equal(
      (await fetch(`${gateway.url}/v1/usage`, { method: 'POST', headers: { 'x-token': token } })).status,
      405,
    )
    const round = await Promise.all(Array.from({ length: 60 }, () => get('/v1/usage', token)))
    const limited = round.filter(({ status }) => status === 429)
    assert.ok(limited.length > 0, 'the rate of pages is reached')
    assert.match(await (limited[0] as Response).text(), /pagesPerSecond/)
    assert.ok(round.every(({ status }) => status === 200 || status === 429 || status === 503))
  })

  test('the page needs no token, loads only its own files, and is read-only', async () => {
    const page = await fetch(`${gateway.url}/account`)
    const html = await page.text()
    assert.equal(page.status, 200)
    const policy = page.headers.get('content-security-policy') ?? ''
    for (const rule of ["default-src 'none'", "script-src 'self'", "connect-src 'self'", "frame-ancestors 'none'"])
      assert.ok(policy.includes(rule), rule)
    assert.equal(page.headers.get('referrer-policy'), 'no-referrer')
    assert.equal(page.headers.get('access-control-allow-origin'), null)
    const files = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, path]) => path ?? '')
    assert.ok(files.length >= 4)
    for (const path of files) {
      const file = await fetch(new URL(path, `${gateway.url}/account`))
      assert.equal(file.status, 200, path)
      assert.match(file.headers.get('cache-control') ?? '', /immutable/)
    }
    assert.doesNotMatch(html, /<script(?![^>]*src=)/)
    assert.equal((await fetch(`${gateway.url}/account`, { method: 'HEAD' })).status, 200)
    const posted = await fetch(`${gateway.url}/account`, { method: 'POST' })
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD, OPTIONS'])
    assert.equal((await fetch(`${gateway.url}/account/../v1/whoami`)).status, 401)
    assert.equal((await fetch(`${gateway.url}/account/nothing.js`)).status, 404)
    const card = await run('sub', 'create', 'carded', '--customer', 'acme', '--plan', 'free', '--print-token')
    assert.match(card, /^ {2}page +https?:.*\/account /m)
    const { paths } = (await (await fetch(`${gateway.url}/nothing`)).json()) as { paths: string[] }
    assert.ok(paths.includes('/account') && paths.includes('/v1/usage'))
  })
})

test('bundle.accountPage = false turns the page off, and the endpoints stay', async () => {
  await using node = await startFakeNode()
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }], {
    workers: 1,
    env: { SLUICE_BUNDLE__ACCOUNT_PAGE: 'false', SLUICE_EXECUTION__SIMULATED: 'true' },
  })
  assert.equal((await fetch(`${gateway.url}/account`)).status, 404)
  const headers = { 'x-token': gateway.token }
  assert.equal((await fetch(`${gateway.url}/v1/usage`, { headers })).status, 200)
  const card = await gateway.sluice('sub', 'create', 'carded', '--customer', 'acme', '--plan', 'free', '--print-token')
  assert.match(card.stdout, /token +slc_/)
  assert.doesNotMatch(card.stdout, /\/account/)
})
