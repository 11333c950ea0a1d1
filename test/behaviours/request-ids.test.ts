import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { startServedGateway } from '../support/gateway/served.ts'

type Line = Readonly<Record<string, unknown>>

const CALL = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'getSlot' })
const JSON_TYPE = { 'content-type': 'application/json' }

test('the request id of a refusal on each interface is found by logs tail --request', async () => {
  await using node = await startFakeNode()
  node.onGrpcCall = (call) => {
    call.onMessage(() => {})
    call.sendHeaders({})
  }
  await using gateway = await startServedGateway([{ name: 'fake', rpc: node.rpc, ws: node.ws, grpc: node.grpc }], {
    env: { SLUICE_INDEXER__ENABLED: 'true', SLUICE_EXECUTION__ENABLED: 'true', SLUICE_EXECUTION__SIMULATED: 'true' },
  })
  const { token, url, running } = gateway
  const { stderr, code } = await gateway.sluice(
    'sub',
    'limit',
    'acme-prod',
    '--ws-connections',
    '1',
    '--batch-items',
    '2',
  )
  assert.equal(code, 0, stderr)
  const at = async (service: string) => `http://${await running.address(service)}`
  const find = async (requestId: string) => {
    const tail = await gateway.sluice('logs', 'tail', '--request', requestId, '--json')
    assert.equal(tail.code, 0, tail.stderr)
    return tail.stdout
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as Line)
  }
  const found = async (requestId: string, fields: Line) => {
    let lines: Line[] = []
    // The thread of a service hands its line over a moment after the response.
    await until(`a line of ${requestId} is found: ${JSON.stringify(fields)}`, async () => {
      lines = await find(requestId)
      return lines.length > 0
    })
    const [line = {}, ...more] = lines
    assert.deepEqual(more, [])
    assert.doesNotMatch(JSON.stringify(line), /slc_nothing|slc_[0-9A-Za-z]{38}/)
    for (const [name, value] of Object.entries({ request_id: requestId, msg: 'refused', ...fields }))
      assert.equal(line[name], value, JSON.stringify(line))
  }
  const idOf = (response: Response) => response.headers.get('x-request-id') ?? ''

  // RPC: an unknown token, and a limit of the subscription, in header and body.
  const guess = await fetch(url, { method: 'POST', headers: { ...JSON_TYPE, 'x-token': 'slc_nothing' }, body: CALL })
  assert.equal(guess.status, 401)
  await found(idOf(guess), { interface: 'rpc', error: 'unauthorized', reason: 'malformed' })
  await until('the limit is in effect', async () => {
    const batch = await fetch(url, {
      method: 'POST',
      headers: { ...JSON_TYPE, 'x-token': token, 'x-request-id': 'customer-42' },
      body: `[${CALL},${CALL},${CALL}]`,
    })
    const { error } = (await batch.json()) as { error?: { data: { request_id: string } } }
    return error?.data.request_id === 'customer-42'
  })
  const owner = { subscription_name: 'acme-prod', customer_name: 'acme' }
  await found('customer-42', { interface: 'rpc', error: 'too-large', limit: 'batchItems', ...owner })

  // WebSocket: the handshake, over the limit of connections.
  const first = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
  await new Promise((resolve, reject) => first.on('open', resolve).on('error', reject))
  const second = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
  const wsId = await new Promise<string>((resolve) => {
    second.on('unexpected-response', (_request, response) => resolve(String(response.headers['x-request-id'])))
  })
  second.on('error', () => {}).terminate()
  await found(wsId, { interface: 'ws', limit: 'wsConnections', ...owner })
  // On the open connection: the id of its handshake.
  first.send(`[${CALL},${CALL},${CALL}]`)
  const [data] = (await once(first, 'message')) as [Buffer]
  first.terminate()
  const { error } = JSON.parse(data.toString()) as { error: { data: { request_id: string } } }
  await found(error.data.request_id, { interface: 'ws', error: 'too-large', limit: 'batchItems', ...owner })

  // gRPC: in the trailers.
  const client = new Client(gateway.grpc, credentials.createInsecure())
  const stream = openStream(client, SUBSCRIBE, tokenMetadata('slc_nothing'))
  const [grpcId] = (await stream.ended).metadata.get('x-request-id')
  await found(String(grpcId), { interface: 'grpc', status: 7 })
  client.close()

  // SQL, sender and execution.
  const sql = await fetch(`${await at('indexer')}/?query=SELECT%201`, { headers: { 'x-token': token } })
  assert.equal(sql.status, 401)
  await found(idOf(sql), { interface: 'indexer', error: 'AUTHENTICATION_FAILED', status: 401 })
  const send = await fetch(await at('sender'), {
    method: 'POST',
    headers: JSON_TYPE,
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'sendTransaction', params: ['AA=='] }),
  })
  await found(idOf(send), { interface: 'sender' })
  const read = await fetch(`${await at('execution')}/v1/nothing`)
  assert.equal(read.status, 404)
  await found(idOf(read), { interface: 'execution', status: 404 })
  const upgrade = new WebSocket(`${(await at('execution')).replace('http', 'ws')}/v1/nothing`)
  const streamId = await new Promise<string>((resolve) => {
    upgrade.on('unexpected-response', (_request, response) => resolve(String(response.headers['x-request-id'])))
  })
  upgrade.on('error', () => {}).terminate()
  await found(streamId, { interface: 'execution', status: 404 })

  const none = await gateway.sluice('logs', 'tail', '--request', 'never-sent')
  assert.equal(none.code, 0)
  assert.match(none.stderr, /no refusal and no log line with request id never-sent/)
  const shown = await gateway.sluice('logs', 'tail', '--request', 'customer-42')
  assert.match(
    shown.stdout,
    /INFO +bundle +refused +interface=rpc +subscription="acme-prod \(sub_\w+\)" +customer=acme .*limit=batchItems/,
  )
})
