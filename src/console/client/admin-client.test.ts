import assert from 'node:assert/strict'
import type { IncomingHttpHeaders } from 'node:http'
import { text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, test } from 'node:test'
import { startHttpServer, type TestHttpServer } from '../../../test/support/machine/http-server.ts'
import { createAdminClient } from './admin-client.ts'

type Seen = {
  readonly method: string
  readonly url: string
  readonly headers: IncomingHttpHeaders
  readonly body: string
}

describe('the client of the console', () => {
  const seen: Seen[] = []
  type Reply = { status: number; body: string; headers?: Record<string, string> }
  let reply: Reply = { status: 200, body: '{}' }
  let replyTo: (url: string) => Reply = () => reply
  let server: TestHttpServer
  let signedOut = 0
  before(async () => {
    server = await startHttpServer((request, response) => {
      const { method = '', url = '', headers } = request
      void text(request).then((body) => {
        seen.push({ method, url, headers, body })
        const { status, headers: more, body: sent } = replyTo(url)
        response.writeHead(status, { 'content-type': 'application/json', ...more }).end(sent)
      })
    })
  })
  after(() => server[Symbol.asyncDispose]())
  beforeEach(() => {
    seen.length = 0
    signedOut = 0
    reply = { status: 200, body: '{}' }
    replyTo = () => reply
  })
  const open = (address = new URL(server.url)) => {
    let count = 0
    return createAdminClient({
      base: address,
      fetch,
      newKey: () => `key-${(count += 1)}`,
      onSignedOut: () => (signedOut += 1),
    })
  }

  test('a session that could not be ended is still there: its changes are authorized as before', async () => {
    const client = open()
    reply = { status: 200, body: JSON.stringify({ csrf_token: 'of-the-session', role: 'owner' }) }
    assert.ok((await client.session()).ok)
    reply = { status: 503, body: JSON.stringify({ error: { code: 'store-unavailable', message: 'not now' } }) }
    const failed = await client.signOut()
    assert.ok(!failed.ok && failed.error.message === 'not now')
    reply = { status: 200, body: '{}' }
    await client.call('customerAdd', { body: { name: 'acme' } })
    assert.equal(seen.at(-1)?.headers['x-csrf-token'], 'of-the-session')
    assert.ok((await client.signOut()).ok)
    await client.call('customerAdd', { body: { name: 'acme' } })
    assert.equal(seen.at(-1)?.headers['x-csrf-token'], undefined)
  })

  test('a page without items is passed over while more follow; one with items, and the end, are not', async () => {
    const client = open()
    const page = (items: object[], next_cursor: string | null) => JSON.stringify({ items, next_cursor })
    const pages: Record<string, string> = {
      '/v1/subscriptions?state=expired': page([], 'a'),
      '/v1/subscriptions?state=expired&cursor=a': page([], 'b'),
      '/v1/subscriptions?state=expired&cursor=b': page([{ name: 'one' }], 'c'),
      '/v1/subscriptions?state=expired&cursor=c': page([], null),
    }
    replyTo = (url) => ({ status: 200, body: pages[url] ?? '{}' })
    const first = await client.call('subList', { query: { state: 'expired' } })
    assert.deepEqual(first.ok && first.value, { items: [{ name: 'one' }], next_cursor: 'c' })
    assert.equal(seen.length, 3)
    const last = await client.call('subList', { query: { state: 'expired', cursor: 'c' } })
    assert.deepEqual(last.ok && last.value, { items: [], next_cursor: null })
    assert.equal(seen.length, 4)
  })

  test('pages without items are followed up to a limit, which the error names, and no longer than the view is open', async () => {
    const client = open()
    replyTo = () => ({ status: 200, body: '{"items":[],"next_cursor":"more"}' })
    const result = await client.call('audit', { query: { subject: 'acme' } })
    assert.deepEqual([result.ok, !result.ok && result.error.code, seen.length], [false, 'search-too-long', 200])
    assert.match(result.ok ? '' : result.error.message, /limit: emptyPages/)
    seen.length = 0
    const leave = new AbortController()
    replyTo = () => {
      if (seen.length === 3) leave.abort()
      return { status: 200, body: '{"items":[],"next_cursor":"more"}' }
    }
    assert.equal((await client.call('audit', { signal: leave.signal })).ok, false)
    assert.ok(seen.length <= 4, `${seen.length} requests`)
  })

  test('sends the CSRF token, one idempotency key and If-Match with a change, and none of them with a read', async () => {
    const client = open()
    reply = { status: 201, body: JSON.stringify({ csrf_token: 'csrf', name: 'ann', role: 'owner', id: 'adm_1' }) }
    await client.signIn('sla_secret')
    reply = { status: 200, body: '{"name":"a/b"}', headers: { etag: '"7"' } }
    const result = await client.call('customerChange', {
      params: { customer: 'a/b?c' },
      body: { contact: 'x' },
      ifRevision: 6,
      key: 'mine',
    })
    assert.deepEqual(result, { ok: true, status: 200, value: { name: 'a/b' }, revision: 7 })
    await client.call('customerList', { query: { search: 'a&b', state: '', cursor: undefined } })
    const [signIn, change, read] = seen
    assert.equal(signIn?.url, '/v1/session')
    assert.deepEqual([change?.method, change?.url], ['PATCH', '/v1/customers/a%2Fb%3Fc'])
    assert.deepEqual(
      ['x-csrf-token', 'idempotency-key', 'if-match'].map((name) => change?.headers[name]),
      ['csrf', 'mine', '"6"'],
    )
    assert.equal(read?.url, '/v1/customers?search=a%26b')
    for (const name of ['x-csrf-token', 'idempotency-key', 'if-match', 'authorization'])
      assert.equal(read?.headers[name], undefined, name)
    for (const { url, headers } of [change, read] as Seen[])
      assert.ok(!`${url} ${JSON.stringify(headers)}`.includes('sla_secret'))
  })

  test('an error has its message and its fix, and 401 ends the session', async () => {
    const client = open()
    const error = { code: 'forbidden', message: 'no', fix: 'Ask an owner.', request_id: 'r1' }
    reply = { status: 403, body: JSON.stringify({ error }) }
    const refused = await client.call('customerAdd', { body: { name: 'a' } })
    assert.deepEqual(refused, {
      ok: false,
      status: 403,
      error: { code: 'forbidden', message: 'no', fix: 'Ask an owner.', requestId: 'r1' },
    })
    assert.equal(signedOut, 0)
    reply = { status: 401, body: 'not JSON' }
    const ended = await client.call('me')
    assert.ok(!ended.ok && ended.error.code === 'http-401')
    assert.equal(signedOut, 1)
  })

  test('a process that cannot be reached is an error with a fix', async () => {
    const result = await open(new URL('http://127.0.0.1:1/')).call('me')
    assert.ok(!result.ok && result.error.code === 'not-reachable' && result.error.fix !== undefined)
  })
})
