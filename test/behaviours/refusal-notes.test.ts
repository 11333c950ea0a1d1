import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema } from '../../src/solana/gen/geyser_pb.ts'
import { encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { startGateway } from '../support/gateway/start.ts'

type Line = Readonly<Record<string, unknown>> & { readonly msg: string }

const MIB = 2 ** 20
const ACCOUNTS = ['a', 'b', 'c'].map((letter) => letter.toUpperCase().padEnd(43, '1'))

test('logs refusals of the servers under the subscription: sizes, batches, pages, filters, messages', async () => {
  await using node = await startFakeNode()
  node.onGrpcCall = (call) => {
    call.onMessage(() => {})
    call.sendHeaders({})
  }
  await using gateway = await startGateway([
    { name: 'fake', rpc: node.rpc, grpc: `http://127.0.0.1:${node.ports.grpc}` },
  ])
  const overrides = { requestBytes: 2000, batchItems: 2, grpcAccountsPerStream: 2 }
  const { token, id } = await gateway.subscribe({ overrides })
  const other = await gateway.subscribe({ overrides })
  const lines = (subscription = id) =>
    gateway
      .log()
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line)
      .filter((line) => line['subscription'] === subscription)
  const reported = (msg: string, fields: object) =>
    until(`it is logged: ${msg} ${JSON.stringify(fields)}`, () =>
      lines().some((line) => line.msg === msg && Object.entries(fields).every(([name, value]) => line[name] === value)),
    )
  const post = async (path: string, body: string, headers: Record<string, string> = {}) =>
    (
      await fetch(`${gateway.url}${path}`, {
        method: 'POST',
        headers: { 'x-token': token, 'content-type': 'application/json', ...headers },
        body,
      })
    ).status

  assert.equal(await post('/', ' '.repeat(2001)), 413)
  await reported('refused', { interface: 'rpc', limit: 'requestBytes', code: -32413 })
  const before = lines().length
  assert.equal(await post('/v1/geyser/check', ' '.repeat(2 ** 20 + 1)), 413)
  assert.equal(lines().length, before, 'the second of a kind within its second is counted')

  const call = '{"jsonrpc":"2.0","id":1,"method":"getSlot"}'
  assert.equal(await post('/', `[${call},${call},${call}]`), 413)
  await reported('refused', { interface: 'rpc', limit: 'batchItems', code: -32413 })

  const socket = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
  await new Promise((resolve) => socket.on('open', resolve))
  socket.send(`[${call},${call},${call}]`)
  await reported('refused', { interface: 'ws', limit: 'batchItems', code: -32413 })
  socket.on('error', () => {}).send('x'.repeat(5000))
  await reported('disconnected', { interface: 'ws', code: 1009 })

  const client = new Client(gateway.grpc, credentials.createInsecure(), { 'grpc.max_send_message_length': 16 * MIB })
  using _client = { [Symbol.dispose]: () => client.close() }
  const filtered = openStream(client, SUBSCRIBE, tokenMetadata(token))
  filtered.send(encodeMessage(SubscribeRequestSchema, { accounts: { many: { account: ACCOUNTS } } }))
  assert.equal((await filtered.ended).code, 3)
  await reported('refused', { interface: 'grpc', limit: 'grpcAccountsPerStream', code: -32602 })
  const large = openStream(client, SUBSCRIBE, tokenMetadata(token))
  large.send(new Uint8Array(5 * MIB))
  assert.equal((await large.ended).code, 3)
  await reported('disconnected', { interface: 'grpc', code: 3 })

  const page = async () => (await fetch(`${gateway.url}/v1/whoami`, { headers: { 'x-token': token } })).status
  let statuses: number[] = []
  for (let round = 0; round < 50 && !statuses.includes(429); round++)
    statuses = await Promise.all(Array.from({ length: 50 }, page))
  await reported('refused', { interface: 'rpc', limit: 'pagesPerSecond', code: -32429 })
  assert.deepEqual(
    lines(other.id).filter(({ msg }) => msg !== 'changed by the operator'),
    [],
    'no other subscription is named',
  )
  assert.doesNotMatch(gateway.log(), /slc_[0-9A-Za-z]{38}/)
})
