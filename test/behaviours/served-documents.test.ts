import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { gunzipSync } from 'node:zlib'
import { WebSocket } from 'ws'
import { ERRORS, TOKEN_REFUSALS } from '../../src/contract/errors.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { startChromium } from '../support/machine/chromium.ts'
import { type Served, serve } from '../support/process/serve.ts'

/** `/docs` on 8899 and 8443 of a whole `sluice serve`: the documents that errors and cards point to, without a token. */

const ROOT = join(import.meta.dirname, '../..')

type Got = { status: number; headers: Record<string, string | string[] | undefined>; body: Buffer }

/** The path as it is, without the normalization of `fetch`. */
function get(
  base: string,
  path: string,
  options: { method?: string; headers?: Record<string, string> } = {},
): Promise<Got> {
  return new Promise((resolve, reject) => {
    const { hostname, port } = new URL(base)
    const call = request({ hostname, port, path, ...options }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, headers: response.headers, body: Buffer.concat(chunks) }),
      )
    })
    call.on('error', reject)
    call.end()
  })
}

describe('the served documents', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let running: Served
  const bases: string[] = []

  before(async () => {
    home = await temporaryFolder()
    running = serve({
      cwd: home.path,
      args: ['--no-demo'],
      env: {
        SLUICE_EXECUTION__ENABLED: 'true',
        // Low enough that this test reaches the limit, high enough for the others.
        SLUICE_EXECUTION__WORK__UNITS_PER_SECOND: '50',
        SLUICE_EXECUTION__WORK__BURST_UNITS: '1000',
      },
    })
    await running.line(/"msg":"started"/)
    for (const server of ['rpc', 'execution']) bases.push(`http://${await running.address(server)}`)
  })
  after(async () => {
    await running[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })

  /** Waits where the budget of this address is used up, as a crawler should. */
  async function polite(base: string, path: string): Promise<Got> {
    let got = await get(base, path)
    await until(`${path} is within the budget`, async () => {
      if (got.status === 429) got = await get(base, path)
      return got.status !== 429
    })
    return got
  }

  test('every link of every page leads to a page, and every anchor exists', async () => {
    for (const base of bases) {
      const pages = new Map<string, string>()
      const open = ['/docs', '/docs/']
      const links: { from: string; path: string; anchor: string }[] = []
      for (let path = open.pop(); path !== undefined; path = open.pop()) {
        if (pages.has(path)) continue
        const { status, headers, body } = await polite(base, path)
        assert.equal(status, 200, `${base}${path}`)
        const isPage = headers['content-type'] === 'text/html; charset=utf-8'
        const html = isPage ? body.toString() : ''
        pages.set(path, html)
        for (const [, href = ''] of html.matchAll(/<a href="([^"]+)"/g)) {
          const url = new URL(href.replaceAll('&amp;', '&'), `${base}${path}`)
          if (url.origin !== base) continue
          links.push({ from: path, path: url.pathname, anchor: url.hash.slice(1) })
          open.push(url.pathname)
        }
      }
      assert.ok(pages.size >= 35, `${pages.size} pages`)
      const dead = links.filter(({ path, anchor }) => anchor !== '' && !pages.get(path)?.includes(`id="${anchor}"`))
      assert.deepEqual(dead, [])
      for (const path of ['/docs/customers/', '/docs/errors', '/docs/openapi/bundle.json', '/docs/proto/geyser.proto'])
        assert.ok(pages.has(path), path)
    }
  })

  test('every error and every reason of a refused token has its page', async () => {
    for (const base of bases) {
      for (const name of [...Object.keys(ERRORS), ...TOKEN_REFUSALS]) {
        const { status, body } = await polite(base, `/docs/errors/${name}`)
        assert.equal(status, 200, `${base}: ${name}`)
        assert.match(body.toString(), new RegExp(`<h1 id="${name}">${name}</h1>`))
      }
    }
  })

  test('the docs_url of real errors is a page, whatever Host the request has', async () => {
    const [rpc = ''] = bases
    const sender = `http://${await running.address('sender')}`
    const call = (method: string, params: unknown[] = []) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params })
    const post = async (url: string, body: string, headers: Record<string, string> = {}) =>
      (await fetch(url, { method: 'POST', headers: { 'content-type': 'application/json', ...headers }, body })).text()
    const found = [
      await post(rpc, call('getSlot')),
      await post(rpc, call('getSlot'), { 'x-token': 'slc_wrong' }),
      await post(sender, call('noSuchMethod')),
      await post(sender, call('sendTransaction', ['AAAA', { encoding: 'base64' }])),
      await post(sender, 'x'.repeat(9000)),
      await post(`${sender}/api/v1/transactions`, 'AAAA', { 'content-type': 'text/plain' }),
      await refusedHandshake(`ws://${await running.address('ws')}`),
    ].map((body) => [body, ...(/"docs_url":"([^"]*)"/.exec(body) ?? [])][2] ?? `none in ${body}`)
    for (const url of found) {
      assert.ok(url.startsWith(`${rpc}/docs/errors/`), url)
      const response = await fetch(url)
      assert.equal(response.status, 200, url)
      await response.body?.cancel()
    }
    assert.ok(new Set(found).size >= 4, found.join('\n'))
    const injected = await get(rpc, '/v1/whoami', { headers: { host: 'evil.example' } })
    assert.equal(injected.status, 401)
    assert.match(injected.body.toString(), new RegExp(`"docs_url":"${rpc}/docs/errors/unauthorized"`))
    assert.doesNotMatch(injected.body.toString(), /evil/)
  })

  test('files are cacheable: ETag, Cache-Control, 304, HEAD, gzip; nothing runs in them', async () => {
    for (const base of bases) {
      const plain = await get(base, '/docs/errors')
      const { etag, ...headers } = plain.headers
      assert.match(String(etag), /^"[\w-]{22}"$/)
      assert.equal(headers['cache-control'], 'public, max-age=300')
      assert.equal(headers['x-content-type-options'], 'nosniff')
      assert.equal(headers['access-control-allow-origin'], '*')
      assert.match(
        String(headers['content-security-policy']),
        /^default-src 'none'; style-src 'sha256-[^']+'; base-uri 'none'/,
      )
      for (const held of [String(etag), `"other", W/${String(etag)}`, '*']) {
        const again = await get(base, '/docs/errors', { headers: { 'if-none-match': held } })
        assert.equal(again.status, 304, held)
        assert.equal(again.body.length, 0)
        assert.equal(again.headers['etag'], etag)
      }
      const other = await get(base, '/docs/errors', { headers: { 'if-none-match': '"other"' } })
      assert.equal(other.status, 200)
      const head = await get(base, '/docs/errors', { method: 'HEAD' })
      assert.equal(head.status, 200)
      assert.equal(head.body.length, 0)
      assert.equal(head.headers['content-length'], String(plain.body.length))
      const packed = await get(base, '/docs/errors', { headers: { 'accept-encoding': 'gzip' } })
      assert.equal(packed.headers['content-encoding'], 'gzip')
      assert.notEqual(packed.headers['etag'], etag)
      assert.deepEqual(gunzipSync(packed.body), plain.body)
      const posted = await get(base, '/docs/errors', { method: 'POST' })
      const { error, methods } = JSON.parse(posted.body.toString()) as Record<string, unknown>
      assert.deepEqual([posted.status, error, methods], [405, 'method-not-allowed', ['GET']])
      assert.equal(posted.headers['allow'], 'GET, HEAD, OPTIONS')
    }
  })

  test('only the documents are served', async () => {
    for (const base of bases) {
      for (const path of [
        '/docs/../package.json',
        '/docs/..%2fpackage.json',
        '/docs/%2e%2e/package.json',
        '/docs/customers/../../src/cli/main.ts',
        '/docs//etc/passwd',
        '/docs/decisions/0001-node-26-from-source',
        '/docs/nothing',
        '/docs/errors/nothing',
        '/docs/__proto__',
        '/docs/errors?x=1/../../package.json',
      ]) {
        const { status, body } = await get(base, path)
        assert.equal(status, path.includes('?') ? 200 : 404, `${base}${path}: ${body.toString().slice(0, 80)}`)
      }
    }
  })

  test('pages have the addresses of this service, and files their content', async () => {
    const [rpc = '', execution = ''] = bases
    const customers = (await get(rpc, '/docs/customers/')).body.toString()
    assert.ok(customers.includes(`export SLUICE_RPC=${rpc} `), 'the address of RPC')
    assert.ok(customers.includes(`export SLUICE_WS=ws://${await running.address('ws')} `))
    assert.ok(customers.includes(`export SLUICE_STREAM=${execution} `))
    assert.ok(!customers.includes('127.0.0.1:8899'), 'no address that is not listened on')
    assert.match(customers, /export SLUICE_SQL=… /, 'the indexer does not run here')
    const openapi = JSON.parse((await get(rpc, '/docs/openapi/bundle.json')).body.toString()) as { servers: object }
    assert.deepEqual(openapi.servers, [{ url: rpc }])
    const raw = await get(rpc, '/docs/errors.md')
    assert.equal(raw.headers['content-type'], 'text/markdown; charset=utf-8')
    assert.equal(raw.body.toString(), readFileSync(join(ROOT, 'docs/errors.md'), 'utf8'))
    const { body } = await get(execution, '/docs/proto.tar.gz')
    const geyser = execFileSync('tar', ['-xzO', 'proto/geyser.proto'], { input: body, encoding: 'utf8' })
    assert.equal(geyser, readFileSync(join(ROOT, 'proto/geyser.proto'), 'utf8'))
  })

  test('a browser shows a page with its style and reports nothing refused', async () => {
    await using browser = await startChromium()
    const { page, errors } = await browser.open(`${bases[0]}/docs/customers/bundle`)
    assert.match(await page.title(), /RPC, WebSocket and gRPC/)
    const border = await page.evaluate<string>('getComputedStyle(document.querySelector("pre")).borderTopWidth')
    assert.equal(border, '1px')
    assert.deepEqual(errors, [])
  })

  // Last: it uses up the budget of this address.
  test('an address has a budget, and the refusal names it', async () => {
    const [rpc = '', execution = ''] = bases
    for (const [base, limit] of [
      [rpc, 'documentsPerSecond'],
      [execution, 'unitsPerSecond'],
    ] as const) {
      let refused: Got | undefined
      for (let calls = 0; refused === undefined && calls < 20_000; calls += 200) {
        const round = await Promise.all(Array.from({ length: 200 }, () => get(base, '/docs/commands')))
        refused = round.find(({ status }) => status === 429)
      }
      assert.ok(refused !== undefined, `${base} never refused`)
      assert.match(String(refused.headers['retry-after']), /^[1-9]\d*$/)
      assert.equal((JSON.parse(refused.body.toString()) as { limit: string }).limit, limit)
    }
  })
})

/** The body of the refusal of a handshake without a token. */
function refusedHandshake(url: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(url)
    socket.on('unexpected-response', (_, response) => {
      let body = ''
      response.on('data', (chunk: Buffer) => (body += chunk.toString()))
      response.on('end', () => resolve(body))
    })
    socket.on('open', () => reject(new Error('the handshake was accepted')))
  })
}
