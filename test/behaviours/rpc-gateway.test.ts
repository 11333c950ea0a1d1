import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, before, beforeEach, describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { createDefaultRpcTransport, createSolanaRpcFromTransport } from '@solana/kit'
import { Connection } from '@solana/web3.js'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type Gateway, startGateway } from '../support/gateway/start.ts'
import { endSocket } from '../support/gateway/web3js.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

const TINY = { ...BUILT_IN_PLANS.starter, unitsPerSecond: 1, sendsPerSecond: 1, batchItems: 10 }

/** The gateway's own errors also carry `data`, for people. */
const withoutData = (text: string) => text.replaceAll(/,"data":\{"fix":"[^}]*\}/g, '')

describe('the RPC server', () => {
  let node: FakeNode
  let gateway: Gateway
  let token: string

  before(async () => {
    node = await startFakeNode()
    gateway = await startGateway([{ name: 'fake', rpc: node.rpc }], { ...BUILT_IN_PLANS, tiny: TINY })
  })
  beforeEach(async () => {
    token = (await gateway.subscribe({})).token
    node.respond = () => ({ result: '"ok"' })
  })
  after(async () => {
    await gateway[Symbol.asyncDispose]()
    await node[Symbol.asyncDispose]()
  })

  const post = (body: string, own = token) =>
    fetch(gateway.url, { method: 'POST', body, headers: { 'content-type': 'application/json', 'x-token': own } })
  const text = async (body: string) => (await post(body)).text()

  it('responds to the examples of the JSON-RPC 2.0 specification', async () => {
    const parse = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}'
    const invalid = '{"jsonrpc":"2.0","error":{"code":-32600,"message":"Invalid request"},"id":null}'
    const cases: [string, string | RegExp][] = [
      ['{"jsonrpc": "2.0", "method": "subtract", "params": [42, 23], "id": 1}', /"id":1\}?/],
      ['{"jsonrpc": "2.0", "method": "subtract", "params": {"minuend": 42}, "id": 3}', /"id":3/],
      ['{"jsonrpc": "2.0", "method": "update", "params": [1,2,3,4,5]}', ''],
      ['{"jsonrpc": "2.0", "method": "foobar, "params": "bar", "baz]', parse],
      ['{"jsonrpc": "2.0", "method": 1, "params": "bar"}', invalid],
      ['[{"jsonrpc": "2.0", "method": "sum", "params": [1,2,4], "id": "1"},{"jsonrpc": "2.0", "method"]', parse],
      ['[]', invalid],
      ['[1]', `[${invalid}]`],
      ['[1,2,3]', `[${invalid},${invalid},${invalid}]`],
      [
        '[{"jsonrpc": "2.0", "method": "notify_sum", "params": [1,2,4]},{"jsonrpc": "2.0", "method": "notify_hello", "params": [7]}]',
        '',
      ],
    ]
    for (const [body, expected] of cases) {
      const response = withoutData(await text(body))
      if (typeof expected === 'string') assert.equal(response.trim(), expected, body)
      else assert.match(response, expected, body)
    }
  })

  it('refuses a body that is not UTF-8 with -32700 and forwards nothing, compressed or not', async () => {
    const body = (name: number[]) =>
      Buffer.concat([
        Buffer.from('{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["'),
        Buffer.from(name),
        Buffer.from('"]}'),
      ])
    const postBytes = async (bytes: Buffer<ArrayBuffer>, encoding?: string) => {
      const headers = { 'content-type': 'application/json', 'x-token': token }
      const encoded = encoding === undefined ? headers : { ...headers, 'content-encoding': encoding }
      return (await fetch(gateway.url, { method: 'POST', body: bytes, headers: encoded })).text()
    }
    const parseError = '{"jsonrpc":"2.0","error":{"code":-32700,"message":"Parse error"},"id":null}'
    const before = node.calls.length
    for (const bytes of [[0xff], [0xc3], [0xed, 0xa0, 0x80], [0xc0, 0xaf]]) {
      assert.equal(withoutData(await postBytes(body(bytes))), parseError)
      assert.equal(withoutData(await postBytes(gzipSync(body(bytes)), 'gzip')), parseError)
    }
    assert.equal(node.calls.length, before, 'nothing was forwarded')
    assert.match(await postBytes(body([...Buffer.from('é')])), /"result"/)
  })

  it('sends the budget in headers, refuses over a limit, and neither forwards nor charges what it refuses', async () => {
    const { token: own, id } = await gateway.subscribe({ plan: 'tiny' })
    const before = node.calls.length
    const call = '{"jsonrpc":"2.0","id":1,"method":"getBalance"}'
    const first = await post(call, own)
    assert.equal(first.headers.get('x-ratelimit-cost'), '1')
    const limit = Number(first.headers.get('x-ratelimit-limit'))
    assert.equal(Number(first.headers.get('x-ratelimit-remaining')), limit - 1)
    let refused: Response | undefined
    let admitted = 1
    for (let calls = 0; calls < limit * 3 && refused === undefined; calls++) {
      const response = await post(call, own)
      if (response.status === 429) refused = response
      else admitted += 1
    }
    assert.ok(refused, 'the limit is never reached')
    assert.match(refused.headers.get('retry-after') ?? '', /^\d{1,3}$/)
    const { error, id: echoed } = (await refused.json()) as {
      error: { code: number; data: Record<string, unknown> }
      id: number
    }
    assert.equal(error.code, -32429)
    assert.equal(echoed, 1)
    assert.equal(error.data['limit'], 'unitsPerSecond')
    assert.equal(error.data['cost'], 1)
    assert.equal(node.calls.length - before, admitted, 'forwarded calls equal admitted calls')
    await gateway.access.usage.flush()
    const [row] = await gateway.on.store.usage({ subscriptionId: id })
    assert.equal(row?.units, admitted, 'charged units equal admitted calls')
  })

  it('refuses bodies and batches over the limit by name, and counts each', async () => {
    const refused = (limit: string) =>
      gateway.registry.value('sluice_bundle_refused_total', { interface: 'rpc', limit }) ?? 0
    const before = { requestBytes: refused('requestBytes'), batchItems: refused('batchItems') }
    const large = await post(`{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["${'x'.repeat(70_000)}"]}`)
    assert.equal(large.status, 413)
    assert.match(await large.text(), /"limit":"requestBytes"/)
    const long = await post(
      `[${Array.from({ length: 101 }, (_, id) => `{"jsonrpc":"2.0","id":${id},"method":"getSlot"}`).join(',')}]`,
    )
    assert.equal(long.status, 413)
    assert.match(await long.text(), /"limit":"batchItems","size":100/)
    assert.equal(refused('requestBytes') - before.requestBytes, 1)
    assert.equal(refused('batchItems') - before.batchItems, 1)
    assert.match(await text('['.repeat(40) + ']'.repeat(40)), /-32700/)
  })

  it('refuses an endless body at the limit, without waiting for the rest', async () => {
    const { port, hostname } = new URL(gateway.url)
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    await once(socket, 'connect')
    const head = `POST / HTTP/1.1\r\nhost: x\r\nx-token: ${token}\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n`
    socket.write(`${head}${(70_000).toString(16)}\r\n${'x'.repeat(70_000)}\r\n`)
    const [response] = (await once(socket, 'data')) as [Buffer]
    assert.match(response.toString(), /^HTTP\/1\.1 413 /)
    socket.destroy()
  })

  it('refunds the charge when no node accepted the call', async () => {
    const { token: own, id } = await gateway.subscribe({})
    node.fault = 'reset'
    try {
      const statuses = new Set<number>()
      for (let calls = 0; calls < 12; calls++) {
        const response = await post('{"jsonrpc":"2.0","id":"q","method":"getBalance"}', own)
        statuses.add(response.status)
        assert.match(await response.text(), /"code":-32503.*"id":"q"/)
      }
      assert.deepEqual([...statuses], [503])
    } finally {
      node.fault = undefined
    }
    // The breaker of the node is open; later tests need it closed.
    const deadline = performance.now() + 10_000
    while ((await (await fetch(`${gateway.url}/health`)).text()) !== 'ok') assert.ok(performance.now() < deadline)
    await gateway.access.usage.flush()
    const [row] = await gateway.on.store.usage({ subscriptionId: id })
    assert.ok((row?.units ?? 0) < 12, 'calls that never left were not charged')
  })

  it('streams a large response without holding it', async () => {
    const size = 50 * 1024 * 1024
    node.respond = () => ({ status: 200, body: `{"jsonrpc":"2.0","result":"${'x'.repeat(size)}","id":1}` })
    const before = process.memoryUsage().rss
    const response = await post('{"jsonrpc":"2.0","id":1,"method":"getProgramAccounts"}')
    let bytes = 0
    for await (const chunk of response.body as unknown as AsyncIterable<Uint8Array>) bytes += chunk.length
    assert.ok(bytes > size)
    assert.ok(
      process.memoryUsage().rss - before < 400 * 1024 * 1024,
      'the node of this test holds the body itself, the gateway must not',
    )
  })

  it('serves health, whoami, tickets and CORS, and nothing else', async () => {
    const get = (path: string, headers: Record<string, string> = {}) => fetch(`${gateway.url}${path}`, { headers })
    assert.match(await (await get('/health')).text(), /^(ok|behind|unknown)$/)
    assert.equal((await get('/v1/whoami')).status, 401)
    const me = (await (await get('/v1/whoami', { 'x-token': token })).json()) as {
      plan: string
      budget: { remaining: number }
    }
    assert.equal(me.plan, 'professional')
    assert.ok(!JSON.stringify(me).includes('slc_'))
    const ticket = await fetch(`${gateway.url}/v1/ws-ticket`, { method: 'POST', headers: { 'x-token': token } })
    assert.match(((await ticket.json()) as { ticket: string }).ticket, /^wst_/)
    const { headers } = await fetch(gateway.url, { method: 'OPTIONS' })
    assert.equal(headers.get('access-control-allow-origin'), '*')
    assert.match(
      headers.get('access-control-allow-headers') ?? '',
      /authorization.*, \*$/,
      'headers of tracing libraries',
    )
    assert.equal((await get('/nowhere')).status, 404)
    assert.equal((await get('/')).status, 405)
    const plain = await fetch(gateway.url, { method: 'POST', body: '{}', headers: { 'x-token': token } })
    assert.equal(plain.status, 415)
  })
})

it('forwards ids, numbers and batches byte for byte', async () => {
  await using chain = await startQuickLocalnet({ slotMs: 5000 })
  const direct = `http://127.0.0.1:${chain.rpc.port}`
  await using gateway = await startGateway([{ name: 'localnet', rpc: direct }])
  const { token } = await gateway.subscribe({})
  const ask = async (url: string, body: string) => {
    const headers = { 'content-type': 'application/json', 'x-token': token }
    return (await (await fetch(url, { method: 'POST', body, headers })).text()).trim()
  }
  const account = (id: string) =>
    `{"jsonrpc":"2.0","id":${id},"method":"getAccountInfo","params":["${chain.chain.faucet}",{"encoding":"base64"}]}`
  for (const id of ['18446744073709551615', '"0"', '"\\u0041"', '0']) {
    const response = await ask(gateway.url, account(id))
    assert.equal(response, await ask(direct, account(id)), id)
    assert.ok(response.includes('"rentEpoch":18446744073709551615'), response)
  }
  // Ids that a node does not accept: the response is that of the node except for the id.
  for (const id of ['1e3', '-1', '1.5', 'null', '99999999999999999999999']) {
    assert.equal(
      await ask(gateway.url, account(id)),
      (await ask(direct, account('7'))).replace(/"id":7\}$/, `"id":${id}}`),
      id,
    )
  }
  const call = (method: string, id: string) => `{"jsonrpc":"2.0","method":"${method}"${id === '' ? '' : `,"id":${id}`}}`
  const batch = `[${call('getHealth', '7')},${call('getSlot', '')},5,${call('nonsense', '7')},${call('getGenesisHash', '"x"')}]`
  const responses = JSON.parse(await ask(gateway.url, batch)) as {
    id: unknown
    result?: string
    error?: { code: number }
  }[]
  assert.deepEqual(
    responses.map(({ id, result, error }) => [id, result ?? error?.code]),
    [
      [7, 'ok'],
      [null, -32600],
      [7, -32601],
      ['x', chain.chain.genesisHash],
    ],
  )
})

it('kit and web3.js work through the gateway, unmodified', async () => {
  await using chain = await startQuickLocalnet()
  await using gateway = await startGateway([{ name: 'localnet', rpc: `http://127.0.0.1:${chain.rpc.port}` }])
  const { token } = await gateway.subscribe({})
  const rpc = createSolanaRpcFromTransport(
    createDefaultRpcTransport({ url: gateway.url, headers: { 'x-token': token } }),
  )
  assert.equal(await rpc.getGenesisHash().send(), chain.chain.genesisHash)
  const { value } = await rpc.getAccountInfo(chain.chain.faucet as never, { encoding: 'base64' }).send()
  assert.equal(value?.executable, false)
  const connection = new Connection(gateway.url, { httpHeaders: { 'x-token': token } })
  try {
    assert.ok((await connection.getSlot('processed')) >= 0)
    assert.equal((await connection.getVersion())['solana-core'].split('.').length, 3)
  } finally {
    endSocket(connection)
  }
})
