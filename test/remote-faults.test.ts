import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { type IncomingMessage, request, type ServerResponse } from 'node:http'
import { createServer as createTlsServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { setImmediate as nextTurn } from 'node:timers/promises'
import { createAdminToken } from '../src/access/token.ts'
import { openRemoteApi } from '../src/cli/remote/api.ts'
import { createManualClock } from '../src/core/clock.ts'
import { createSeededRandom } from '../src/core/random.ts'
import { Secret } from '../src/platform/config/secret-ref.ts'
import { makeTestCert } from '../src/platform/net/test-cert.ts'
import { secureRandom } from '../src/platform/process/random.ts'
import { sluiceHere } from './support/cli/in-process.ts'
import { sluice, temporaryFolder } from './support/cli/run.ts'
import { startHttpServer } from './support/machine/http-server.ts'
import { serve } from './support/process/serve.ts'

type Handler = (request: IncomingMessage, response: ServerResponse) => void
const TOKEN = createAdminToken(secureRandom).secret

const json = (response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) =>
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body))

describe('a remote command', () => {
  test('needs https, an address without credentials, and a token that is not an argument', async () => {
    const env = { SLUICE_ADMIN_TOKEN: TOKEN }
    const refused: [string, string[], Record<string, string>, RegExp][] = [
      [
        'http to another machine',
        ['--remote', 'http://10.1.2.3:9470', 'plan', 'list'],
        env,
        /not encrypted[\s\S]*ssh -L/,
      ],
      ['credentials', ['--remote', 'https://ana:secret1@h', 'plan', 'list'], env, /has credentials/],
      ['a path', ['--remote', 'https://h/v1', 'plan', 'list'], env, /has a path/],
      ['no URL', ['--remote', 'h:9470', 'plan', 'list'], env, /not an http or https URL/],
      ['no value', ['plan', 'list', '--remote'], env, /--remote needs a value/],
      ['twice', ['--remote', 'https://a', 'plan', 'list', '--remote', 'https://b'], env, /given twice/],
      ['no token', ['--remote', 'https://h', 'plan', 'list'], {}, /needs the token[\s\S]*SLUICE_ADMIN_TOKEN/],
      [
        'two tokens',
        ['plan', 'list'],
        { ...env, SLUICE_REMOTE: 'https://h', SLUICE_ADMIN_TOKEN_FILE: 'x' },
        /both set/,
      ],
      ['a state folder', ['--remote', 'https://h', 'plan', 'list', '--state', 'x'], env, /--state names files/],
      ['a file without a server', ['--remote-token-file', 'x', 'plan', 'list'], {}, /needs --remote/],
    ]
    for (const [name, words, given, message] of refused) {
      const { code, stderr } = await sluiceHere(words, given)
      assert.equal(code, 2, `${name}: ${stderr}`)
      assert.match(stderr, message, name)
      assert.ok(!stderr.includes('secret1') && !stderr.includes(TOKEN), name)
    }
    const customer = await sluiceHere(['--remote', 'https://h', 'plan', 'list'], {
      SLUICE_ADMIN_TOKEN: `slc_${'x'.repeat(38)}`,
    })
    assert.equal(customer.code, 78)
    assert.match(customer.stderr, /not one of an administrator/)
  })

  test('refuses a file that others can read', async () => {
    await using home = await temporaryFolder()
    writeFileSync(home.file('token'), TOKEN, { mode: 0o644 })
    const { code, stderr } = await sluiceHere([
      '--remote',
      'https://h',
      '--remote-token-file',
      home.file('token'),
      'plan',
      'list',
    ])
    assert.equal(code, 78, stderr)
    assert.ok(!stderr.includes(TOKEN))
  })

  test('reads a list on after pages without items', async () => {
    const lists: Record<string, object> = {
      '/v1/subscriptions': {
        ...{
          id: 'sub_1',
          name: 'the-one',
          customer: 'acme',
          customer_id: 'cus_1',
          plan: 'build',
          products: ['bundle'],
        },
        ...{ valid_until: null, created_at: '2026-10-01T00:00:00.000Z', state: 'expired' },
      },
      '/v1/customers': {
        ...{ id: 'cus_1', name: 'the-one', contact: '', state: 'active', revision: 1, subscriptions: 1 },
        ...{ created_at: '2026-10-01T00:00:00.000Z' },
      },
      '/v1/audit': {
        ...{ seq: 1, time: '2026-10-01T00:00:00.000Z', action: 'sub.create', subject_names: {} },
        ...{
          actor: { uid: 1, user: 'the-one', sudo_user: null, tty: null },
          subjects: ['sub_1'],
          before: null,
          after: null,
          version: '1',
          prev: '',
        },
      },
    }
    let requests = 0
    await using server = await startHttpServer((request, response) => {
      requests += 1
      const { pathname, searchParams } = new URL(request.url ?? '', 'http://h')
      const at = Number(searchParams.get('cursor') ?? 0)
      json(response, 200, { items: at === 3 ? [lists[pathname]] : [], next_cursor: at === 4 ? null : String(at + 1) })
    })
    for (const [words, count] of [
      [['sub', 'list', '--state-is', 'expired', '--json'], 5],
      [['customer', 'list', '--json'], 5],
      // Newest first: it has the line that it needs.
      [['audit', 'tail', '--lines', '1'], 4],
    ] as const) {
      requests = 0
      const { code, stdout, stderr } = await sluiceHere(['--remote', server.url, ...words], {
        SLUICE_ADMIN_TOKEN: TOKEN,
      })
      assert.equal(code, 0, stderr)
      assert.match(stdout, /the-one/, words.join(' '))
      assert.equal(requests, count, words.join(' '))
    }
  })

  test('does not take what is not a response of the admin API', async () => {
    let handler: Handler = () => {}
    let requests = 0
    await using server = await startHttpServer((request, response) => {
      requests += 1
      assert.equal(request.headers.authorization, `Bearer ${TOKEN}`)
      handler(request, response)
    })
    const run = () => sluiceHere(['--remote', server.url, 'customer', 'list', '--json'], { SLUICE_ADMIN_TOKEN: TOKEN })
    const cases: [string, Handler, RegExp][] = [
      [
        'a redirect',
        (_request, response) => response.writeHead(302, { location: `${server.url}/other` }).end(),
        /redirects are not followed/,
      ],
      [
        'a web page',
        (_request, response) => response.writeHead(200, { 'content-type': 'text/html' }).end('<html>'),
        /text\/html instead/,
      ],
      [
        'broken JSON',
        (_request, response) => response.writeHead(200, { 'content-type': 'application/json' }).end('{"items":['),
        /is not what/,
      ],
      [
        'another JSON',
        (_request, response) => json(response, 200, { items: [{ id: 7 }], next_cursor: null }),
        /is not what/,
      ],
      [
        'an error of somebody else',
        (_request, response) => response.writeHead(502).end('<html>bad gateway'),
        /status 502/,
      ],
      ['no content', (_request, response) => response.writeHead(204).end(), /status 204/],
      [
        'too much',
        (_request, response) => {
          response.writeHead(200, { 'content-type': 'application/json' })
          const piece = Buffer.alloc(1024 * 1024, ' ')
          for (let at = 0; at < 40; at += 1) response.write(piece)
          response.end('{}')
        },
        /larger than 33554432 bytes/,
      ],
      [
        'a list without end',
        (_request, response) => json(response, 200, { items: [], next_cursor: 'YQ' }),
        /more than 1000 pages/,
      ],
    ]
    for (const [name, respond, message] of cases) {
      handler = respond
      requests = 0
      const { code, stdout, stderr } = await run()
      assert.equal(code, 1, `${name}: ${stderr}`)
      assert.equal(stdout, '')
      const error = JSON.parse(stderr) as { code: string; message: string; fix: string }
      assert.deepEqual([error.code, requests], ['remote-response', name === 'a list without end' ? 1000 : 1], name)
      assert.match(error.message, message)
      assert.match(error.fix, /Check the address/)
    }
  })

  test('shows an error without control characters, and waits as the server asks', async () => {
    let requests = 0
    await using server = await startHttpServer((_request, response) => {
      requests += 1
      const error = { code: 'too-many-requests', message: 'slow\u001b[2Jdown', fix: 'Wait.', request_id: 'r-1' }
      if (requests < 3) json(response, 429, { error }, { 'retry-after': '0' })
      else json(response, 404, { error: { ...error, code: 'not-found' } })
    })
    const { code, stderr } = await sluiceHere(['--remote', server.url, 'customer', 'show', 'x'], {
      SLUICE_ADMIN_TOKEN: TOKEN,
    })
    assert.deepEqual([code, requests], [1, 3])
    assert.match(stderr, /error: slow·\[2Jdown\n {2}fix: Wait\.\n {2}see: .*#not-found\n {2}request: r-1\n/)
  })

  test('ends when no process listens, with exit code 69', async () => {
    const { code, stderr } = await sluiceHere(['--remote', 'http://127.0.0.1:1', 'status'], {
      SLUICE_ADMIN_TOKEN: TOKEN,
    })
    assert.equal(code, 69)
    assert.match(stderr, /no response from http:\/\/127\.0\.0\.1:1/)
  })

  test('gives a silent server 30 seconds, three times, and tells that a change may have been made', async () => {
    const keys: unknown[] = []
    await using server = await startHttpServer((request) => void keys.push(request.headers['idempotency-key']))
    const clock = createManualClock()
    using api = openRemoteApi(
      { url: new URL(server.url), token: new Secret(TOKEN), isDryRun: false },
      { clock, random: createSeededRandom(1) },
    )
    let ended: Error | undefined
    const change = api.call('customerAdd', { body: { name: 'a' } }).catch((error: Error) => (ended = error))
    for (let made = 1; made <= 3; made += 1) {
      while (keys.length < made) await nextTurn()
      clock.advance(29_999)
      await nextTurn()
      assert.equal(ended, undefined, `attempt ${made} has not ended`)
      clock.advance(1)
      while (made < 3 && clock.pendingTimers() === 0) await nextTurn()
      clock.advance(500)
    }
    await change
    assert.match(String(ended?.message), /nothing within 30 s; the change may have been made/)
    assert.equal(new Set(keys).size, 1)
    assert.match(String(keys[0]), /^[0-9a-f]{32}$/)
  })

  test('trusts the authorities of the system and of NODE_EXTRA_CA_CERTS', async () => {
    using cert = makeTestCert()
    const server = createTlsServer(
      { key: readFileSync(cert.key), cert: readFileSync(cert.cert) },
      (_request, response) => {
        json(response, 200, { items: [{ name: 'p', limits: { units_per_second: 5 }, price: null }], next_cursor: null })
      },
    ).listen(0, '127.0.0.1')
    await once(server, 'listening')
    try {
      const words = [
        '--remote',
        `https://localhost:${(server.address() as AddressInfo).port}`,
        'plan',
        'list',
        '--json',
      ]
      const env = { SLUICE_ADMIN_TOKEN: TOKEN }
      const unknown = await sluice(words, { env })
      assert.equal(unknown.code, 69)
      assert.match(unknown.stderr, /self-signed certificate|unable to verify/)
      const trusted = await sluice(words, { env: { ...env, NODE_EXTRA_CA_CERTS: cert.cert } })
      assert.equal(trusted.code, 0, trusted.stderr)
      assert.equal((JSON.parse(trusted.stdout) as { name: string }[])[0]?.name, 'p')
    } finally {
      server.closeAllConnections()
      server.close()
    }
  })
})

describe('a remote command whose response is lost', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let running: ReturnType<typeof serve>
  let target: URL
  before(async () => {
    home = await temporaryFolder()
    running = serve({ cwd: home.path, args: ['--no-demo'], env: { SLUICE_SENDER__ENABLED: 'false' } })
    await running.line(/"msg":"started"/)
    target = new URL(`http://${await running.address('admin')}`)
    const { code, stderr } = await here('admin', 'add', 'ana', '--role', 'owner', '--out', home.file('ana.token'))
    assert.equal(code, 0, stderr)
  })
  after(async () => {
    await running[Symbol.asyncDispose]()
    await home[Symbol.asyncDispose]()
  })
  const here = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })

  /** Forwards to the process. The response of the first change is read, and its connection is cut in its place. */
  const losing = () => {
    let isLost = false
    return startHttpServer((incoming, response) => {
      const { method, url, headers } = incoming
      const forwarded = request(new URL(url ?? '/', target), { method, headers }, (reply) => {
        if (method === 'GET' || isLost) return void reply.pipe(response.writeHead(reply.statusCode ?? 0, reply.headers))
        isLost = true
        reply.resume().on('end', () => incoming.socket.destroy())
      })
      incoming.pipe(forwarded)
    })
  }
  const through = (url: string, ...words: string[]) =>
    sluiceHere(['--remote', url, '--remote-token-file', home.file('ana.token'), ...words])

  test('is sent again and makes one change', async () => {
    await using proxy = await losing()
    const { code, stderr } = await through(proxy.url, 'customer', 'add', 'acme')
    assert.equal(code, 0, stderr)
    assert.match(stderr, /customer acme added/)
    const log = (await here('audit', 'tail')).stdout
    assert.equal(log.match(/customer\.add/g)?.length, 1)
  })

  test('makes a secret once, and tells to rotate it', async () => {
    await using proxy = await losing()
    const { code, stdout, stderr } = await through(
      proxy.url,
      'sub',
      'create',
      'one',
      '--customer',
      'acme',
      '--print-token',
    )
    assert.equal(code, 1, stderr)
    assert.equal(stdout, '')
    assert.match(stderr, /succeeded \(id sub_\w+, name one\), and its secret was shown once[\s\S]*rotate it/)
    assert.equal((await here('audit', 'tail')).stdout.match(/sub\.create/g)?.length, 1)
    const rotated = await through(target.origin, 'token', 'rotate', 'one', '--yes', '--print-token')
    assert.equal(rotated.code, 0, rotated.stderr)
    assert.match(rotated.stdout, /^slc_\w{38}\n$/)
  })

  test('a wrong token is exit code 77 and stays out of the log', async () => {
    const { code, stderr } = await sluiceHere(['--remote', target.origin, 'status'], { SLUICE_ADMIN_TOKEN: TOKEN })
    assert.equal(code, 77)
    assert.match(stderr, /request: \S+/)
    assert.ok(!`${running.stdout()}${running.stderr()}${stderr}`.includes(TOKEN))
  })
})
