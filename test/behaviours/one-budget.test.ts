import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createRequire } from 'node:module'
import { it } from 'node:test'
import { WebSocket } from 'ws'
import { startGateway } from '../support/gateway/start.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

// A CommonJS package whose default export is the client.
const { default: Yellowstone } = createRequire(import.meta.url)('@triton-one/yellowstone-grpc') as {
  default: new (url: string, token: string, options: undefined) => { getVersion(): Promise<unknown> }
}

type Me = { month: { used: number }; open: { wsConnections: number; wsSubscriptions: number } }

it('one token is one budget over RPC, WebSocket and gRPC', async () => {
  await using chain = await startQuickLocalnet()
  const at = (kind: 'rpc' | 'ws' | 'grpc') => `${chain[kind].host}:${chain[kind].port}`
  await using gateway = await startGateway([
    { name: 'localnet', rpc: `http://${at('rpc')}`, ws: `ws://${at('ws')}`, grpc: `http://${at('grpc')}` },
  ])
  const { token } = await gateway.subscribe({})
  const headers = { 'x-token': token }
  const me = async () => (await (await fetch(`${gateway.url}/v1/whoami`, { headers })).json()) as Me
  assert.equal((await me()).month.used, 0, 'whoami is not charged')

  const call = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":["11111111111111111111111111111111"]}'
  const post = (body: string) =>
    fetch(gateway.url, { method: 'POST', body, headers: { ...headers, 'content-type': 'application/json' } })
  assert.equal((await post(call)).status, 200)
  assert.equal((await me()).month.used, 1)

  const socket = new WebSocket(gateway.ws, { headers })
  await once(socket, 'open')
  socket.send('{"jsonrpc":"2.0","id":1,"method":"slotSubscribe"}')
  await once(socket, 'message')
  const withSocket = await me()
  assert.equal(withSocket.month.used, 2)
  assert.deepEqual(withSocket.open, { wsConnections: 1, wsSubscriptions: 1, grpcStreams: 0 })

  const client = new Yellowstone(`http://${gateway.grpc}`, token, undefined)
  assert.ok(await client.getVersion())
  assert.equal((await me()).month.used, 3)

  await post(`[${call},${call},{"jsonrpc":"2.0","method":1}]`)
  assert.equal((await me()).month.used, 5, 'each call of a batch is charged, invalid items are not')
  socket.terminate()
})
