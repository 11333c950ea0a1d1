import assert from 'node:assert/strict'
import { test } from 'node:test'
import { configSchema } from '../config/config.ts'
import { endpointsOf } from './endpoints.ts'

const TLS = { cert: 'cert.pem', key: 'key.pem' }

function endpoints(config: Record<string, unknown>, inUse = {}) {
  return endpointsOf(configSchema.parse(config), inUse)
}

test('the configured address is used whatever the listener', () => {
  const { rpc, ws, grpc, missing } = endpoints({
    bundle: {
      rpc: { listen: '0.0.0.0:8899', plaintext: 'behind-proxy', publicUrl: 'https://rpc.example.net/' },
      ws: { publicUrl: 'wss://rpc.example.net/ws' },
      grpc: { listen: '[::]:10010', tls: TLS, publicUrl: 'grpcs://grpc.example.net:443' },
    },
  })
  assert.deepEqual(
    [rpc, ws, grpc],
    ['https://rpc.example.net', 'wss://rpc.example.net/ws', 'https://grpc.example.net:443'],
  )
  assert.deepEqual(missing, [])
})

test('the address of a loopback listener is true as it is, with the port in use', () => {
  const { rpc, ws, sender, indexer, execution } = endpoints(
    { bundle: { rpc: { listen: '127.0.0.1:0' }, ws: { listen: '[::1]:8900', tls: TLS } } },
    { rpc: 4321 },
  )
  assert.equal(rpc, 'http://127.0.0.1:4321')
  assert.equal(ws, 'wss://[::1]:8900')
  assert.deepEqual(
    [sender, indexer, execution],
    ['http://127.0.0.1:8901', 'http://127.0.0.1:8123', 'http://127.0.0.1:8443'],
  )
})

test('no address is made up for a public listener or one behind a proxy; what is missing is named', () => {
  for (const listener of [
    { listen: '0.0.0.0:8901', tls: TLS },
    { listen: '[::]:8901', plaintext: 'behind-proxy' },
    { listen: '203.0.113.5:8901', tls: TLS },
    { listen: '127.0.0.1:8901', plaintext: 'behind-proxy' },
  ]) {
    const { sender, missing } = endpoints({ sender: listener, host: '127.0.0.1' })
    assert.equal(sender, undefined, listener.listen)
    assert.deepEqual(missing, [
      {
        name: 'sender',
        key: 'sender.publicUrl',
        reason: 'no publicUrl configured: set sender.publicUrl',
        isConfigured: false,
      },
    ])
  }
})

test('port 0 has no address before the start', () => {
  const { rpc, missing } = endpoints({ bundle: { rpc: { listen: '127.0.0.1:0' } } })
  assert.equal(rpc, undefined)
  assert.match(missing[0]?.reason ?? '', /run sluice serve first/)
})

test('the older key host is still the name of endpoints without a publicUrl', () => {
  const { rpc, ws } = endpoints({
    host: 'rpc.example.net',
    bundle: {
      rpc: { listen: '0.0.0.0:8899', tls: TLS },
      ws: { listen: '127.0.0.1:8900', plaintext: 'behind-proxy', publicUrl: 'wss://ws.example.net' },
    },
  })
  assert.equal(rpc, 'https://rpc.example.net:8899')
  assert.equal(ws, 'wss://ws.example.net')
})

test('a disabled service has no address and is not missing', () => {
  const { sender, missing } = endpoints({ sender: { enabled: false, listen: '0.0.0.0:8901', tls: TLS } })
  assert.equal(sender, undefined)
  assert.deepEqual(missing, [])
})

test('a service that runs in a process of its own has its configured address, although it is disabled here', () => {
  const { indexer, sender, execution, entries, missing } = endpoints({
    upstreams: { nodes: [{ name: 'a', rpc: 'https://a.example.net' }] },
    bundle: { entries: { publicUrl: 'https://rpc.example.net:10011' } },
    indexer: { enabled: false, publicUrl: 'https://sql.example.net' },
    sender: { enabled: false, listen: '0.0.0.0:8901', tls: TLS, publicUrl: 'https://send.example.net' },
    execution: { enabled: false, publicUrl: 'https://stream.example.net' },
  })
  assert.deepEqual(
    [indexer, sender, execution],
    ['https://sql.example.net', 'https://send.example.net', 'https://stream.example.net'],
  )
  assert.equal(entries, undefined, 'no process of its own serves this port')
  assert.deepEqual(missing, [])
})

test('an enabled execution service without a source of events is not offered', () => {
  const { execution, missing } = endpoints({
    upstreams: { nodes: [{ name: 'a', rpc: 'https://a.example.net' }] },
    execution: { publicUrl: 'https://stream.example.net' },
  })
  assert.deepEqual([execution, missing], [undefined, []])
})

test('a wrong publicUrl is an error of the configuration with its key', () => {
  const parsed = configSchema.safeParse({ bundle: { ws: { publicUrl: 'https://rpc.example.net' } } })
  const [issue] = parsed.error?.issues ?? []
  assert.deepEqual(issue?.path, ['bundle', 'ws', 'publicUrl'])
  assert.match(issue?.message ?? '', /scheme https does not fit this endpoint/)
})
