import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import type { LifecycleRecord, RecentBlocks } from '../../src/contract/execution-routes.ts'
import type { ConflictData, ContentionData, Lifecycle } from '../../src/contract/stream-events.ts'
import type { SourceMessage } from '../../src/execution/source/message.ts'
import { startTestExecution, type TestExecution } from '../support/execution/start.ts'
import { openStream } from '../support/execution/stream-reader.ts'

/** The specification's metrics service as a table: every endpoint, field, type and status; nothing missing and nothing extra. */

const address = (n: number) => `0x${n.toString(16).padStart(40, '0')}` as const
const word = (n: number) => `0x${n.toString(16).padStart(64, '0')}` as const

const CONTENTION: ContentionData = {
  block_number: 12,
  block_id: word(12),
  block_wall_time_ns: 1000,
  total_tx_time_ns: 4000,
  parallel_efficiency_pct: 75,
  total_unique_slots: 4,
  contended_slot_count: 1,
  contention_ratio: 0.25,
  total_txn_count: 3,
  top_contended_slots: [{ address: address(1), slot: word(2), txn_count: 2, access_count: 2 }],
  top_contended_contracts: [
    { address: address(1), total_slots: 4, contended_slots: 1, total_accesses: 5, contention_score: 0.25 },
  ],
  contract_edges: [{ contract_a: address(1), contract_b: address(2), shared_txn_count: 1 }],
}
const CONFLICTS: ConflictData = {
  block_number: 12,
  block_id: word(12),
  contended_with_writer: 1,
  evm_time_ns: 900,
  commit_time_ns: 100,
  depth: 2,
  waves: [2, 1],
  factor: 1.5,
  score: 33,
  conflict_share: 1 / 3,
}
const CHANGE: Lifecycle = {
  block_hash: word(12),
  block_number: 12,
  from_stage: 'Proposed',
  to_stage: 'Voted',
  time_in_previous_stage_ms: 400,
  block_age_ms: 400,
  txn_count: 3,
  gas_used: 63_000,
}
const RECORD: LifecycleRecord = {
  ...CHANGE,
  current_stage: 'Voted',
  eth_block_hash: word(0xe12),
  stage_timings_ms: { Proposed: 0, Voted: 400 },
  execution_time_ms: 5,
  total_age_ms: 400,
}
const PROPOSED: Lifecycle = {
  ...CHANGE,
  from_stage: null,
  to_stage: 'Proposed',
  time_in_previous_stage_ms: null,
  block_age_ms: 0,
  gas_used: null,
}
const STORY: SourceMessage[] = [
  {
    kind: 'lifecycle',
    change: PROPOSED,
    record: { ...PROPOSED, current_stage: 'Proposed', stage_timings_ms: { Proposed: 0 }, total_age_ms: 0 },
  },
  { kind: 'tps', tps: 172, blockNumber: 12 },
  { kind: 'contention', data: CONTENTION, conflicts: CONFLICTS },
  { kind: 'lifecycle', change: CHANGE, record: RECORD },
  {
    kind: 'top-accesses',
    data: { account: [{ key: address(9), count: 4 }], storage: [{ key: [address(9), word(1)], count: 3 }] },
  },
]

async function get(service: TestExecution, path: string, init: RequestInit = {}) {
  const response = await fetch(`${service.http}${path}`, init)
  const text = await response.text()
  return { status: response.status, headers: response.headers, text, json: () => JSON.parse(text) as unknown }
}

/** Names and types of a record's fields, in order. */
function shapeOf(value: unknown): Record<string, string> {
  assert(typeof value === 'object' && value !== null)
  const typeOf = (field: unknown): string => {
    if (Array.isArray(field)) return 'array'
    return Number.isInteger(field) ? 'integer' : typeof field
  }
  return Object.fromEntries(Object.entries(value).map(([name, field]) => [name, typeOf(field)]))
}

async function rpc(service: TestExecution, body: unknown) {
  const response = await get(service, '/', {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  })
  return { status: response.status, json: response.text === '' ? undefined : response.json() }
}

describe('the metrics service of the specification', () => {
  test('GET routes: status, fields and types', async () => {
    await using service = await startTestExecution()
    service.source.report(...STORY)
    service.source.beat()
    await using client = await openStream(`${service.ws}/v1/ws`)
    await client.until(1)

    const tps = await get(service, '/v1/tps')
    assert.deepEqual([tps.status, tps.json()], [200, { tps: 172 }])

    const contention = await get(service, '/v1/contention')
    assert.deepEqual([contention.status, contention.json()], [200, CONTENTION])
    assert.deepEqual(shapeOf(contention.json()), {
      block_number: 'integer',
      // In addition to the specification.
      block_id: 'string',
      block_wall_time_ns: 'integer',
      total_tx_time_ns: 'integer',
      parallel_efficiency_pct: 'integer',
      total_unique_slots: 'integer',
      contended_slot_count: 'integer',
      contention_ratio: 'number',
      total_txn_count: 'integer',
      top_contended_slots: 'array',
      top_contended_contracts: 'array',
      contract_edges: 'array',
    })

    const status = await get(service, '/v1/status')
    assert.equal(status.status, 200)
    assert.deepEqual(shapeOf(status.json()), {
      status: 'string',
      block_number: 'integer',
      connected_clients: 'integer',
      uptime_secs: 'integer',
      last_event_age_secs: 'integer',
      ring_seqno: 'integer',
      oldest_seqno: 'integer',
      newest_seqno: 'integer',
    })
    const record = status.json() as Record<string, number | string>
    assert.deepEqual(
      [record['status'], record['block_number'], record['connected_clients'], record['ring_seqno']],
      ['healthy', 12, 1, 1],
    )
    assert.equal((record['newest_seqno'] as number) - (record['oldest_seqno'] as number), 5)

    const health = await get(service, '/health')
    assert.deepEqual(
      [health.status, health.json()],
      [200, { jsonrpc: '2.0', result: { healthy: true, number: 12, last_event_age_secs: 0 } }],
    )

    const all = await get(service, '/v1/blocks/lifecycle')
    assert.deepEqual([all.status, all.json()], [200, [RECORD]])
    const one = await get(service, '/v1/blocks/12/lifecycle')
    assert.deepEqual([one.status, one.json()], [200, RECORD])
    // The REST record has every field of the latest frame of that block.
    for (const [name, value] of Object.entries(CHANGE))
      assert.deepEqual((one.json() as Record<string, unknown>)[name], value)

    const metrics = await get(service, '/metrics')
    assert.equal(metrics.status, 200)
    assert.match(metrics.headers.get('content-type') ?? '', /^text\/plain; version=0\.0\.4/)
    assert.match(metrics.text, /^# TYPE sluice_execution_ws_connections gauge$/m)
  })

  test('additions to the specification: conflicts, accesses, figures of past blocks', async () => {
    await using service = await startTestExecution()
    service.source.report(...STORY)
    assert.deepEqual((await get(service, '/v1/conflicts')).json(), CONFLICTS)
    assert.deepEqual((await get(service, '/v1/top-accesses')).json(), {
      account: [{ key: address(9), count: 4 }],
      storage: [{ key: [address(9), word(1)], count: 3 }],
    })
    assert.deepEqual((await get(service, '/v1/blocks/12/contention')).json(), CONTENTION)
    const { top_contended_slots: _a, top_contended_contracts: _b, contract_edges: _c, ...figures } = CONTENTION
    assert.deepEqual((await get(service, '/v1/blocks?count=5')).json(), {
      blocks: [{ block_number: 12, tps: 172, contention: figures, conflicts: CONFLICTS }],
      held: [],
    })
    for (const count of ['0', '513', 'x', '-1'])
      assert.equal((await get(service, `/v1/blocks?count=${count}`)).status, 400)
  })

  test('two proposals of one number can be told apart, and the figures by number are those of the finalized one', async () => {
    await using service = await startTestExecution()
    const propose = (id: number, replaces: object = {}): SourceMessage[] => [
      { kind: 'tps', tps: 172, blockNumber: 12 },
      {
        kind: 'contention',
        data: { ...CONTENTION, block_id: word(id), ...replaces },
        conflicts: { ...CONFLICTS, block_id: word(id), ...replaces },
      },
    ]
    const finalize = (id: number): SourceMessage => {
      const change: Lifecycle = { ...CHANGE, block_hash: word(id), to_stage: 'Finalized' }
      return { kind: 'lifecycle', change, record: { ...RECORD, ...change, current_stage: 'Finalized' } }
    }
    const idOfBlock = async () =>
      ((await get(service, '/v1/blocks/12/contention')).json() as Partial<ContentionData>).block_id
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=ContentionData,ConflictData`)
    await client.until(1)
    service.source.report(...propose(1), ...propose(2, { replaces_block_id: word(1) }))
    await client.until(5)
    const frames = client.frames.slice(1).map((frame) => Object.entries(frame)[1] as [string, ContentionData])
    assert.deepEqual(
      frames.map(([kind, data]) => [kind, data.block_number, data.block_id, data.replaces_block_id]),
      [
        ['ContentionData', 12, word(1), undefined],
        ['ConflictData', 12, word(1), undefined],
        ['ContentionData', 12, word(2), word(1)],
        ['ConflictData', 12, word(2), word(1)],
      ],
    )
    assert.equal(await idOfBlock(), word(2), 'the latest proposal')
    assert.equal(((await get(service, '/v1/contention')).json() as ContentionData).replaces_block_id, word(1))
    service.source.report(finalize(1))
    assert.equal(await idOfBlock(), word(1), 'the finalized proposal')
    const { blocks } = (await get(service, '/v1/blocks')).json() as RecentBlocks
    assert.deepEqual(
      blocks.map(({ block_number, contention }) => [block_number, contention?.block_id]),
      [[12, word(1)]],
    )
    service.source.report(...propose(3), finalize(4))
    assert.equal((await get(service, '/v1/blocks/12/contention')).status, 404, 'the finalized one has no figures')
  })

  test('no TPS is published before its window is whole', async () => {
    await using service = await startTestExecution()
    await using client = await openStream(`${service.ws}/v1/ws?subscribe=TPS`)
    await client.until(1)
    const ended = (blockNumber: number, tps: number | null): SourceMessage => ({ kind: 'tps', tps, blockNumber })
    service.source.report(ended(1, null), ended(2, null))
    assert.deepEqual((await get(service, '/v1/tps')).json(), { tps: 0 })
    await using late = await openStream(`${service.ws}/v1/ws?subscribe=TPS`)
    await late.until(1)
    service.source.report(ended(3, 450))
    await client.until(2)
    await late.until(2)
    for (const { frames } of [client, late]) assert.deepEqual((frames[1] as { TPS?: number }).TPS, 450)
    assert.deepEqual((await get(service, '/v1/tps')).json(), { tps: 450 })
    const { blocks } = (await get(service, '/v1/blocks')).json() as RecentBlocks
    assert.deepEqual(
      blocks.map(({ tps }) => tps),
      [null, null, 450],
    )
  })

  test('before the first event: 0, 503 with an error text, an empty list, an empty window', async () => {
    await using service = await startTestExecution()
    assert.deepEqual((await get(service, '/v1/tps')).json(), { tps: 0 })
    const contention = await get(service, '/v1/contention')
    assert.deepEqual([contention.status, contention.json()], [503, { error: 'no contention data yet' }])
    assert.deepEqual((await get(service, '/v1/blocks/lifecycle')).json(), [])
    const status = (await get(service, '/v1/status')).json() as Record<string, unknown>
    assert.deepEqual([status['status'], status['oldest_seqno'], status['newest_seqno']], ['healthy', 0, 0])
  })

  test('R14: an untracked block is 404, an invalid number 400, an unknown path 404, a wrong method 405 with Allow', async () => {
    await using service = await startTestExecution()
    service.source.report(...STORY)
    const table: [string, string, number, unknown][] = [
      ['GET', '/v1/blocks/13/lifecycle', 404, { error: 'block not found' }],
      ['GET', '/v1/blocks/13/contention', 404, { error: 'block not found' }],
      ['GET', '/v1/blocks/x/lifecycle', 400, { error: 'invalid block number' }],
      ['GET', '/v1/blocks/-1/lifecycle', 400, { error: 'invalid block number' }],
      ['GET', '/v1/blocks/1.5/lifecycle', 400, { error: 'invalid block number' }],
      ['GET', '/v1/blocks/99999999999999999999/lifecycle', 400, { error: 'invalid block number' }],
      ['GET', '/v1/nothing', 404, 'not-found'],
      ['GET', '/v2/tps', 404, 'not-found'],
      ['POST', '/v1/tps', 405, 'method-not-allowed'],
      ['DELETE', '/health', 405, 'method-not-allowed'],
      ['PUT', '/', 405, 'method-not-allowed'],
    ]
    for (const [method, path, status, body] of table) {
      const response = await get(service, path, { method })
      const json = response.json() as { error: string }
      const responded = typeof body === 'string' ? json.error : json
      assert.deepEqual([response.status, responded], [status, body], `${method} ${path}`)
      if (status === 405) assert.match(response.headers.get('allow') ?? '', /^GET, HEAD/)
    }
    const head = await get(service, '/v1/tps', { method: 'HEAD' })
    assert.deepEqual([head.status, head.text, head.headers.get('content-length')], [200, '', '11'])
  })

  test('POST /: JSON-RPC errors, -32601 "Method not found" for unsupported methods', async () => {
    await using service = await startTestExecution()
    const error = (code: number, message: string, id: unknown = 1) => ({ jsonrpc: '2.0', error: { code, message }, id })
    const call = (method: string, params: unknown = [], id: unknown = 1) => ({ jsonrpc: '2.0', method, params, id })
    const table: [unknown, unknown][] = [
      [call('eth_sendRawTransaction', ['0x']), error(-32601, 'Method not found')],
      [call('constructor'), error(-32601, 'Method not found')],
      [call('eth_getBlockByNumber', ['latest', false], 'a'), { jsonrpc: '2.0', result: null, id: 'a' }],
      [call('eth_syncing', [], null), { jsonrpc: '2.0', result: false, id: null }],
      [call('eth_blockNumber'), { jsonrpc: '2.0', result: '0x0', id: 1 }],
      [
        call('eth_getBlockByNumber', ['0x01', false]),
        error(-32602, 'Invalid params: the block is a hex quantity such as 0x1b4, or a block tag where one is meant'),
      ],
      [call('eth_getBlockByNumber', { 0: 'latest' }), error(-32602, 'Invalid params: params is an array')],
      [
        call('eth_getTransactionByHash', ['0x12']),
        error(-32602, 'Invalid params: the transaction hash is 32 bytes in hex'),
      ],
      ['{"jsonrpc":', error(-32700, 'Parse error', null)],
      ['[]', error(-32600, 'Invalid request: a batch has at least one call', null)],
      ['1', error(-32600, 'Invalid request: a call is an object', null)],
      [{ method: 'eth_chainId', id: 1 }, error(-32600, 'Invalid request: jsonrpc is "2.0" and method a string')],
      [
        { jsonrpc: '2.0', method: 'eth_chainId', id: {} },
        error(-32600, 'Invalid request: id is a string, a number or null', null),
      ],
      [
        [call('eth_syncing', [], 1), call('nope', [], 2), { jsonrpc: '2.0', method: 'eth_syncing' }],
        [{ jsonrpc: '2.0', result: false, id: 1 }, error(-32601, 'Method not found', 2)],
      ],
    ]
    for (const [body, expected] of table) {
      const response = await rpc(service, body)
      assert.deepEqual([response.status, response.json], [200, expected], JSON.stringify(body))
    }
    const silent = await rpc(service, { jsonrpc: '2.0', method: 'eth_syncing' })
    assert.deepEqual(silent, { status: 204, json: undefined })
    const batch = await rpc(
      service,
      Array.from({ length: 101 }, () => call('eth_syncing')),
    )
    assert.deepEqual(batch, {
      status: 413,
      json: {
        jsonrpc: '2.0',
        error: {
          code: -32413,
          message: 'The request is larger than the limit: a batch has at most 100 calls',
          data: { limit: 'batchItems', size: 100 },
        },
        id: null,
      },
    })
    const large = await rpc(service, `"${'x'.repeat(1_100_000)}"`)
    assert.equal(large.status, 413)
    const logs = await rpc(service, call('eth_getLogs', [{}]))
    assert.match(JSON.stringify(logs.json), /-32000.*no block was seen yet/)
  })

  test('T24, T26: security headers on every response; reads are open to any origin, never with credentials', async () => {
    await using service = await startTestExecution()
    for (const path of ['/v1/tps', '/v1/contention', '/health', '/metrics', '/nothing', '/']) {
      const { headers } = await get(service, path, { headers: { origin: 'https://elsewhere.example' } })
      assert.equal(headers.get('x-content-type-options'), 'nosniff', path)
      assert.equal(headers.get('referrer-policy'), 'no-referrer')
      assert.match(headers.get('content-security-policy') ?? '', /default-src 'none'/)
      assert.equal(headers.get('access-control-allow-credentials'), null)
      assert.equal(headers.get('access-control-allow-origin'), path === '/' ? null : '*', path)
      assert.match(headers.get('x-request-id') ?? '', /^[0-9A-Z]{26}$/)
    }
    const preflight = await get(service, '/v1/tps', { method: 'OPTIONS' })
    assert.equal(preflight.status, 204)
    assert.match(preflight.headers.get('access-control-allow-headers') ?? '', /content-type.*x-token/)
    assert.equal(preflight.headers.get('access-control-allow-methods'), 'GET, HEAD, OPTIONS')
  })

  test('serves the page files with their own content security policy; a line of text without them', async () => {
    await using plain = await startTestExecution()
    assert.match((await get(plain, '/')).text, /\/v1\/status/)
    const files: Record<string, { body: string; type: string; etag: string }> = {
      '/': { body: '<!doctype html>', type: 'text/html; charset=utf-8', etag: '"1"' },
      '/page.js': { body: '1', type: 'text/javascript; charset=utf-8', etag: '"2"' },
    }
    await using service = await startTestExecution({ deps: { page: (path) => files[path] } })
    const page = await get(service, '/')
    assert.deepEqual([page.status, page.text, page.headers.get('etag')], [200, '<!doctype html>', '"1"'])
    assert.match(page.headers.get('content-security-policy') ?? '', /script-src 'self'.*frame-ancestors 'none'/)
    const again = await get(service, '/page.js', { headers: { 'if-none-match': '"2"' } })
    assert.equal(again.status, 304)
    assert.equal((await get(service, '/other.js')).status, 404)
  })
})
