import assert from 'node:assert/strict'
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http'
import { after, before, beforeEach, describe, test } from 'node:test'
import { ClickHouseError } from '@clickhouse/client'
import { createClickHouseProxy } from '../../src/indexer/clickhouse/proxy.ts'
import { startIndexerServer } from '../../src/indexer/http.ts'
import { indexerMetrics } from '../../src/indexer/metrics.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { secureRandom } from '../../src/platform/process/random.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { createLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { AMPLE_HELD_BYTES } from '../support/gateway/held-bytes.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { clientOf } from '../support/indexer/clients.ts'
import { subscribeIndexer } from '../support/indexer/start.ts'

type Seen = { readonly url: URL; readonly headers: IncomingHttpHeaders; readonly body: string }

/** A fake server that sends what current servers send and Debian's old one does not. */
describe('the proxy in front of a current ClickHouse', () => {
  let fake: Server
  let gateway: Gateway
  let url: string
  let account: Awaited<ReturnType<typeof subscribeIndexer>>
  let seen: Seen[] = []
  let kills = 0
  const lines: string[] = []
  const accounts = { isRestorable: false, ensured: 0 }
  let respond: (response: ServerResponse) => void
  const closing = new AsyncDisposableStack()
  before(async () => {
    fake = createServer((request, response) => {
      const pieces: Buffer[] = []
      request.on('data', (piece: Buffer) => pieces.push(piece))
      request.on('end', () => {
        const body = Buffer.concat(pieces).toString('utf8')
        // The proxy checks the server once a second.
        if (request.url !== '/ping')
          seen.push({ url: new URL(request.url ?? '/', 'http://fake'), headers: request.headers, body })
        if (body.startsWith('KILL')) {
          kills++
          response.end()
        } else respond(response)
      })
    })
    fake.listen(0, '127.0.0.1')
    await new Promise((resolve) => fake.once('listening', resolve))
    closing.defer(() => {
      fake.closeAllConnections()
      fake.close()
    })
    gateway = closing.use(await startGateway([{ name: 'none', rpc: 'http://127.0.0.1:9' }]))
    const metrics = indexerMetrics(createMetricsRegistry())
    const limits = { secondsMax: 30, rowsMax: 1000, bytesMax: 1_000_000 }
    const common = {
      clock: systemClock,
      random: secureRandom,
      log: createLogger({ level: 'warn', destination: { write: (line: string) => lines.push(line) } }),
      metrics,
    }
    const proxy = closing.use(
      createClickHouseProxy(
        {
          url: `http://127.0.0.1:${(fake.address() as { port: number }).port}`,
          user: 'gateway',
          password: 'secret of the gateway',
          database: 'chain_pro',
          limits,
          concurrent: 4,
          concurrentPerSubscription: 4,
          waitingMax: 0,
          waitSecondsMax: 0,
        },
        {
          ...common,
          accounts: {
            async ensure() {
              accounts.ensured += 1
            },
            prepareRecreation: () => accounts.isRestorable,
            [Symbol.dispose]() {},
          },
        },
      ),
    )
    const server = closing.use(
      await startIndexerServer(
        { listen: { host: '127.0.0.1', port: 0 }, limits, readSecondsMax: 60, displayName: 'test' },
        {
          ...common,
          access: gateway.access,
          engine: { proxy },
          coverageSlot: () => 77,
          heldBytes: AMPLE_HELD_BYTES,
          onRefused() {},
          onNotAfter() {},
        },
      ),
    )
    url = `http://127.0.0.1:${server.address.port}`
    account = await subscribeIndexer(gateway, 'reader')
  })
  after(() => closing.disposeAsync())
  beforeEach(() => {
    seen = []
    respond = (response) => response.end('ok\n')
  })

  const ask = (fields: string, body = 'SELECT 1', headers: Record<string, string> = {}) =>
    fetch(`${url}/?${fields}`, { method: 'POST', headers: { ...account.headers, ...headers }, body })

  test('a query that the server refuses because it has lost the account is repeated once, with the account created again', async () => {
    for (const { isRestorable, refusals, sends } of [
      { isRestorable: true, refusals: 1, sends: 2 },
      { isRestorable: true, refusals: 9, sends: 2 },
      { isRestorable: false, refusals: 9, sends: 1 },
    ]) {
      seen = []
      accounts.isRestorable = isRestorable
      accounts.ensured = 0
      let left = refusals
      respond = (response) => {
        if (left-- <= 0) return response.end('ok\n')
        response.writeHead(403, { 'x-clickhouse-exception-code': '516' })
        return response.end('Code: 516. DB::Exception: u_a: Authentication failed. (AUTHENTICATION_FAILED)')
      }
      const text = await (await ask('', 'SELECT 1')).text()
      assert.match(text, refusals === 1 ? /^ok$/m : /Ask the operator to grant it again/)
      assert.deepEqual([seen.length, accounts.ensured], [sends, sends])
    }
    accounts.isRestorable = false
    assert.equal(lines.filter((line) => line.includes('refuses the login')).length, 1)
  })

  test('forwards the database login of the customer, and neither the token nor other headers', async () => {
    await (
      await ask('query_id=mine&param_x=a%09b&max_execution_time=7', 'SELECT {x:String}', {
        cookie: 'c=1',
        'x-forwarded-for': '10.0.0.9',
      })
    ).text()
    const [{ url: asked, headers, body }] = seen as [Seen]
    assert.equal(body, 'SELECT {x:String}')
    assert.equal(headers.authorization, account.headers['authorization'])
    assert.deepEqual(
      Object.keys(headers).filter(
        (name) => !['authorization', 'host', 'connection', 'content-length', 'accept-encoding'].includes(name),
      ),
      [],
    )
    assert.ok(!JSON.stringify([headers, asked.href]).includes(account.token))
    const fields = Object.fromEntries(asked.searchParams)
    assert.match(fields['query_id'] ?? '', /^sub_\w+-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/)
    assert.deepEqual(
      { ...fields, query_id: '' },
      {
        query_id: '',
        database: 'chain_pro',
        default_format: 'TabSeparated',
        max_execution_time: '7',
        max_result_rows: '1000',
        max_result_bytes: '1000000',
        result_overflow_mode: 'throw',
        output_format_json_quote_64bit_integers: '1',
        wait_end_of_query: '1',
        param_x: 'a\tb',
      },
    )
  })

  test('forwards long parameters in the body, since neither the server nor a proxy takes a URL of that length', async () => {
    const form = new FormData()
    const ids = `['${"x', '".repeat(30_000)}']`
    form.set('query', 'SELECT {ids:Array(String)}')
    form.set('param_ids', ids)
    const response = await fetch(`${url}/?param_x=a`, { method: 'POST', headers: account.headers, body: form })
    assert.equal(await response.text(), 'ok\n')
    const [{ url: asked, headers, body }] = seen as [Seen]
    assert.ok(asked.href.length < 1000)
    assert.equal(headers.authorization, account.headers['authorization'])
    const forwarded = await new Response(body, {
      headers: { 'content-type': headers['content-type'] ?? '' },
    }).formData()
    assert.deepEqual(Object.fromEntries(forwarded), {
      query: 'SELECT {ids:Array(String)}',
      param_x: 'a',
      param_ids: ids,
    })
  })

  test('limits settings to the plan, and refuses unsupported fields without a request to the server', async () => {
    await (
      await ask('max_execution_time=3600&max_result_rows=999999&buffer_size=99999999999&wait_end_of_query=1')
    ).text()
    const fields = Object.fromEntries((seen[0] as Seen).url.searchParams)
    assert.deepEqual(
      [fields['max_execution_time'], fields['max_result_rows'], fields['buffer_size'], fields['wait_end_of_query']],
      ['30', '1000', String(16 * 1024 * 1024), '1'],
    )
    seen = []
    for (const field of [
      'session_id=a&session_timeout=9999',
      'session_id=a&session_check=1',
      'compress=x',
      'decompress=1',
      'role=admin',
      'quota_key=b',
      'user=x',
      'password=y',
      'readonly_=0',
      'max_memory_usage=1',
      'database=system',
      'max_execution_time=0x',
    ]) {
      const refused = await ask(field)
      await refused.text()
      assert.ok(refused.status >= 400 && refused.status < 500, `${field}: ${refused.status}`)
    }
    assert.deepEqual(seen, [])
    // 0 means no limit of its own: the limit of the plan holds.
    await (await ask('max_execution_time=0&max_result_rows=0')).text()
    assert.equal((seen[0] as Seen | undefined)?.url.searchParams.get('max_execution_time'), '30')
  })

  test('a result may be cut at the number of rows that the client sets, and not at that of the plan', async () => {
    for (const [rows, expected] of [
      ['&max_result_rows=10', ['10', '10']],
      ['&max_result_rows=1001', [null, '1000']],
      ['', [null, '1000']],
    ] as const) {
      await (await ask(`result_overflow_mode=break${rows}`)).text()
      const fields = (seen.at(-1) as Seen).url.searchParams
      assert.equal(fields.get('result_overflow_mode'), 'throw')
      assert.deepEqual([fields.get('limit'), fields.get('max_result_rows')], expected, rows)
    }
  })

  test('sessions are held by the gateway: the server gets their settings, within the limits, and not their names', async () => {
    const last = (): Seen => seen.at(-1) as Seen
    const set = await ask(
      'session_id=a',
      "SET max_result_rows = 7, date_time_output_format = 'iso', join_use_nulls = 0",
    )
    assert.deepEqual([set.status, await set.text()], [200, ''])
    assert.deepEqual(seen, [])
    await (await ask('session_id=a&compress=1')).text()
    const fields = Object.fromEntries(last().url.searchParams)
    assert.deepEqual(
      [fields['max_result_rows'], fields['date_time_output_format'], fields['compress'], fields['session_id']],
      ['7', 'iso', '1', undefined],
    )
    assert.equal(fields['join_use_nulls'], '0')
    await (await ask('session_id=b')).text()
    assert.equal(last().url.searchParams.get('max_result_rows'), '1000')
  })

  test('forwards the response unchanged, with the query id of the client, the summary and the coverage slot', async () => {
    const bytes = Buffer.from([0, 255, 10, 13, 10, 200])
    respond = (response) => {
      response.writeHead(200, {
        'content-type': 'application/octet-stream',
        'x-clickhouse-summary': '{"read_rows":"5","result_rows":"2"}',
        'x-clickhouse-query-id': 'of the server',
        'x-clickhouse-server-display-name': 'internal-name-7',
        'x-inside': 'secret',
      })
      response.write(bytes.subarray(0, 3))
      response.end(bytes.subarray(3))
    }
    const got = await ask('query_id=mine')
    assert.deepEqual(Buffer.from(await got.arrayBuffer()), bytes)
    const reported = Object.fromEntries(got.headers)
    assert.equal(reported['x-clickhouse-query-id'], 'mine')
    assert.equal(reported['x-clickhouse-summary'], '{"read_rows":"5","result_rows":"2"}')
    assert.equal(reported['x-sluice-coverage-slot'], '77')
    assert.ok(!JSON.stringify(reported).includes('internal-name') && reported['x-inside'] === undefined)
  })

  for (const rows of [2, 20_000])
    test(`an error after ${rows} rows reaches the client as a typed error, and no row is lost before it`, async () => {
      const message =
        'Code: 395. DB::Exception: Value passed to throwIf is non-zero. (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO)\n'
      const trailer = `\r\n__exception__\r\nabcdefghijklmnop\r\n${message}${message.length} abcdefghijklmnop\r\n__exception__\r\n`
      const sent = '{"x":1}\n'.repeat(rows)
      respond = (response) => {
        response.writeHead(200, {
          'content-type': 'application/x-ndjson',
          'x-clickhouse-exception-tag': 'abcdefghijklmnop',
        })
        response.write(sent)
        // In two chunks, as a network may split it: the client must get it in one. The body has no end.
        response.write(trailer.slice(0, 40))
        setImmediate(() => response.write(trailer.slice(40), () => response.socket?.destroySoon()))
      }
      let text = ''
      await assert.rejects(async () => {
        const { body } = await ask('default_format=JSONEachRow')
        for await (const part of body as ReadableStream<Uint8Array>) text += Buffer.from(part).toString('latin1')
      })
      assert.ok(text === sent + trailer, `${text.length} bytes, ending with ${text.slice(-200)}`)
      const client = clientOf({ url }, account)
      const result = await client.query({ query: 'SELECT x', format: 'JSONEachRow' })
      await assert.rejects(result.json(), (error: unknown) => {
        assert.ok(error instanceof ClickHouseError, String(error))
        assert.equal(error.code, '395')
        return true
      })
      await client.close()
    })

  test('a result is complete before its first byte, unless the server is known to mark an error after the first rows', async () => {
    const steps: [fields: string, hasTag: boolean, wait: string | null][] = [
      ['', false, '1'],
      ['wait_end_of_query=0', false, '1'],
      ['', true, '1'],
      ['', true, null],
      ['wait_end_of_query=1', true, '1'],
      ['', false, null],
      ['', false, '1'],
    ]
    await (await ask('')).text()
    for (const [fields, hasTag, wait] of steps) {
      respond = (response) => {
        if (hasTag) response.setHeader('x-clickhouse-exception-tag', 'abcdefghijklmnop')
        response.end('ok\n')
      }
      await (await ask(fields)).text()
      assert.equal((seen.at(-1) as Seen).url.searchParams.get('wait_end_of_query'), wait)
    }
  })

  test('a response that breaks off at the server breaks off at the client', async () => {
    respond = (response) => {
      response.writeHead(200, { 'content-length': '1000' })
      response.write('half')
      setImmediate(() => response.destroy())
    }
    await assert.rejects((async () => (await ask('')).text())())
  })

  test('forwards refusals of the server with their code; a login that the server refuses is 401', async () => {
    respond = (response) => {
      response.writeHead(403, { 'x-clickhouse-exception-code': '497' })
      response.end('Code: 497. DB::Exception: Not enough privileges. (ACCESS_DENIED)\n')
    }
    const denied = await ask('')
    assert.deepEqual([denied.status, denied.headers.get('x-clickhouse-exception-code')], [403, '497'])
    assert.match(await denied.text(), /ACCESS_DENIED/)
    respond = (response) => {
      response.writeHead(403, { 'x-clickhouse-exception-code': '516' })
      response.end('Code: 516. DB::Exception: u_internal: Authentication failed. (AUTHENTICATION_FAILED)\n')
    }
    const unknown = await ask('')
    assert.equal(unknown.status, 401)
    assert.doesNotMatch(await unknown.text(), /u_internal/)
  })

  test('kills the query at the server with the account of the gateway when the client disconnects', async () => {
    let isGone = false
    respond = (response) => void response.on('close', () => (isGone = true))
    const controller = new AbortController()
    const pending = fetch(`${url}/`, {
      method: 'POST',
      headers: account.headers,
      body: 'SELECT 2',
      signal: controller.signal,
    })
    await until('the server has it', () => seen.length === 1)
    controller.abort()
    await assert.rejects(pending)
    await until('the query is killed', () => seen.some(({ body }) => body.startsWith('KILL')))
    await until('the connection is closed', () => isGone)
    const [query, kill] = seen as [Seen, Seen]
    // None for a query that ended by itself; possibly one for the response that broke off.
    assert.ok(kills <= 2, `${kills} kills`)
    assert.equal(kill.body, `KILL QUERY WHERE query_id = '${query.url.searchParams.get('query_id')}' ASYNC`)
    assert.equal(kill.headers.authorization, `Basic ${Buffer.from('gateway:secret of the gateway').toString('base64')}`)
  })
})
