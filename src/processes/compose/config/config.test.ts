import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configSchema } from './config.ts'

const MIB = 1024 * 1024

/** The paths of the keys that are refused. */
function refused(config: Record<string, unknown>): string[] {
  return (configSchema.safeParse(config).error?.issues ?? []).map(({ path }) => path.join('.'))
}

/** What is wrong with this configuration, by key. */
function faults(config: Record<string, unknown>): [key: string, message: string][] {
  return (configSchema.safeParse(config).error?.issues ?? []).map(({ path, message }) => [path.join('.'), message])
}

test('a text that is no address and no network is refused with its key', () => {
  const keys = [
    ...['bundle', 'sender', 'execution', 'indexer', 'admin'].map((part) => [part, 'trustedProxies'] as const),
    ['shreds', 'sources'] as const,
  ]
  for (const [part, key] of keys) {
    for (const text of ['localhost', '', '300.1.1.1', '10.0.0.0/33', '10.0.0.0/99', '2001:db8::/129', '10.0.0.0/'])
      assert.deepEqual(refused({ [part]: { [key]: ['127.0.0.1', text] } }), [`${part}.${key}.1`], `${part} ${text}`)
    for (const text of ['10.0.0.1', '10.0.0.0/8', '0.0.0.0/0', '::1', '2001:db8::/64'])
      assert.deepEqual(refused({ [part]: { [key]: [text] } }), [], `${part} ${text}`)
  }
})

test('a secret from a variable whose name no variable can have is refused with its key, and not at its first use', () => {
  const postgres = { engine: 'postgres', url: 'postgres://sluice@127.0.0.1/sluice' }
  const configs = (reference: string): Record<string, Record<string, unknown>> => ({
    'access.store.password': { access: { store: { ...postgres, password: reference } } },
    'access.quota.shared.password': {
      access: { quota: { shared: { url: 'redis://127.0.0.1', password: reference } } },
    },
    'billing.key': { billing: { key: reference } },
    'execution.node.credential': { execution: { node: { rpc: 'http://127.0.0.1', credential: reference } } },
    'execution.node.rpc': { execution: { node: { rpc: reference } } },
    'metrics.bearer': { metrics: { bearer: reference } },
    'notices.webhooks.0.secrets.0': {
      notices: { webhooks: [{ name: 'ops', url: 'https://hooks.example.net', secrets: [reference] }] },
    },
  })
  for (const [key, config] of Object.entries(configs('env:DB-PASSWORD'))) assert.deepEqual(refused(config), [key])
  for (const reference of ['env:DB_PASSWORD', 'file:secrets/db password'])
    for (const [key, config] of Object.entries(configs(reference))) assert.deepEqual(refused(config), [], key)
})

test('shreds are received on an address that exists in its family', () => {
  for (const listen of ['999.1.1.1:20000', '[1::2::3]:20000'])
    assert.deepEqual(refused({ shreds: { listen } }), ['shreds.listen'], listen)
  for (const listen of ['0.0.0.0:0', '[::1]:20000']) assert.deepEqual(refused({ shreds: { listen } }), [], listen)
})

test('the process of the embedded database may use more than the memory of the database', () => {
  const parse = (store: Record<string, number>) => configSchema.safeParse({ indexer: { store } }).error?.issues ?? []
  for (const store of [{ memoryBytes: 2048 * MIB }, { memoryBytes: 512 * MIB, residentBytesMax: 512 * MIB }]) {
    const [issue] = parse(store)
    assert.deepEqual(issue?.path, ['indexer', 'store', 'residentBytesMax'])
    assert.match(issue?.message ?? '', /memoryBytes/)
  }
  assert.deepEqual(parse({ memoryBytes: 2048 * MIB, residentBytesMax: 2560 * MIB }), [])
  assert.deepEqual(parse({}), [])
  // The operator's own ClickHouse has its own limits.
  const clickhouse = { url: 'http://127.0.0.1:8124', user: 'sluice', password: 'env:CLICKHOUSE' }
  const indexer = { engine: 'clickhouse', clickhouse, store: { memoryBytes: 2048 * MIB } }
  assert.deepEqual(configSchema.safeParse({ indexer }).error?.issues, undefined)
})

test('an address of Redis that cannot be used is refused with its key and what is wrong with it', () => {
  const refusedAs = (url: string) => faults({ access: { quota: { shared: { url } } } })
  for (const [url, reason] of [
    ['redis://127.0.0.1:6379/cache', /database that is no number/],
    ['redis://127.0.0.1:70000', /port/],
    ['redis://u:hunter2@127.0.0.1', /put the password into a file/],
    ['127.0.0.1:6379', /give redis:/],
  ] as const) {
    const [fault, ...more] = refusedAs(url)
    assert.deepEqual([fault?.[0], more], ['access.quota.shared.url', []], url)
    assert.match(fault?.[1] ?? '', reason)
    assert.doesNotMatch(fault?.[1] ?? '', /hunter2/)
  }
  for (const url of ['redis://127.0.0.1', 'rediss://sluice@cache.example.net:6380/2'])
    assert.deepEqual(refusedAs(url), [])
})

test('a header that a client sets itself carries no credential, of a node or of a path of the sender', () => {
  const configs = (credentialHeader: string): Record<string, Record<string, unknown>> => {
    const remote = { name: 'a', url: 'https://relay.example.net', credentialHeader }
    return {
      'sender.rpc.0.credentialHeader': { sender: { rpc: [remote] } },
      'sender.relays.0.credentialHeader': { sender: { relays: [remote] } },
      'upstreams.nodes.0.credentialHeader': {
        upstreams: { nodes: [{ name: 'a', rpc: 'https://node.example.net', credentialHeader }] },
      },
    }
  }
  for (const name of [
    'host',
    'content-length',
    'content-type',
    'transfer-encoding',
    'grpc-timeout',
    'sec-websocket-key',
  ])
    for (const [key, config] of Object.entries(configs(name))) assert.deepEqual(refused(config), [key], name)
  for (const name of ['x-token', 'authorization', 'x-api-key'])
    for (const config of Object.values(configs(name))) assert.deepEqual(refused(config), [], name)
})

test('the paths of the sender have names of their own, in both lists together', () => {
  const path = (name: string) => ({ name, url: 'https://relay.example.net' })
  const named = (rpc: string[], relays: string[]) =>
    faults({ sender: { rpc: rpc.map(path), relays: relays.map(path) } })
  for (const [sender, second, first] of [
    [named(['a', 'a'], []), 'sender.rpc.1.name', 'sender.rpc[0]'],
    [named([], ['a', 'b', 'a']), 'sender.relays.2.name', 'sender.relays[0]'],
    [named(['b', 'a'], ['a']), 'sender.relays.0.name', 'sender.rpc[1]'],
  ] as const)
    assert.deepEqual(sender, [[second, `${first} is named a too: give each a name of its own`]])
  assert.deepEqual(named(['a', 'b'], ['c']), [])
})

test('a name that two nodes or two webhooks have is refused with both places', () => {
  const node = { name: 'a', rpc: 'https://node.example.net' }
  assert.deepEqual(faults({ upstreams: { nodes: [node, { ...node, name: 'b' }, node] } }), [
    ['upstreams.nodes.2.name', 'upstreams.nodes[0] is named a too: give each a name of its own'],
  ])
  const webhook = { name: 'ops', url: 'https://hooks.example.net', secrets: ['env:HOOK'] }
  assert.deepEqual(faults({ notices: { webhooks: [webhook, webhook] } }), [
    ['notices.webhooks.1.name', 'notices.webhooks[0] is named ops too: give each a name of its own'],
  ])
})

test('an address of PostgreSQL that cannot be used is refused with its key and what is wrong with it', () => {
  const refusedAs = (url: string) => faults({ access: { store: { engine: 'postgres', url } } })
  for (const [url, reason] of [
    ['postgres://127.0.0.1/sluice', /no user/],
    ['postgres://sluice@127.0.0.1', /no database/],
    ['postgres://sluice@127.0.0.1:70000/sluice', /port/],
    ['postgres://sluice@127.0.0.1/sluice?sslmode=maybe', /sslmode/],
    ['postgres://sluice:hunter2@127.0.0.1/sluice', /put the password into a file/],
  ] as const) {
    const [fault, ...more] = refusedAs(url)
    assert.deepEqual([fault?.[0], more], ['access.store.url', []], url)
    assert.match(fault?.[1] ?? '', reason)
    assert.doesNotMatch(fault?.[1] ?? '', /hunter2/)
  }
  for (const url of ['postgres://sluice@127.0.0.1/sluice', 'postgresql://sluice@/sluice?host=/run/postgresql'])
    assert.deepEqual(refusedAs(url), [])
})

test('a webhook has no user and no password in its address', () => {
  const webhook = (url: string) => ({ notices: { webhooks: [{ name: 'ops', url, secrets: ['env:HOOK'] }] } })
  for (const url of ['https://key@hooks.example.net', 'https://u:hunter2@hooks.example.net', 'no address'])
    assert.deepEqual(refused(webhook(url)), ['notices.webhooks.0.url'])
  assert.deepEqual(refused(webhook('https://hooks.example.net/sluice?team=1')), [])
})

test('a call for logs can be paid from what a client saves up, also with the defaults', () => {
  for (const execution of [
    { rpc: { logBlocksMax: 5000 }, work: { burstUnits: 4999 } },
    { rpc: { logBlocksMax: 5000 }, work: { burstUnits: 1000 } },
  ])
    assert.deepEqual(refused({ execution }), ['execution.rpc.logBlocksMax'])
  for (const execution of [{ rpc: { logBlocksMax: 10_000 } }, { work: { burstUnits: 1000 } }])
    assert.deepEqual(refused({ execution }), [])
})
