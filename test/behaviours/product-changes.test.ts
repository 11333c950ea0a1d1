import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Client, credentials } from '@grpc/grpc-js'
import { WebSocket } from 'ws'
import { GrpcCode } from '../../src/platform/grpc/status.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { openStream, SUBSCRIBE, tokenMetadata } from '../support/gateway/grpc.ts'
import { startServedGateway } from '../support/gateway/served.ts'

/** In real time; the guarantee is 5 s, and a busy test machine gets twice that. */
const CUT_WITHIN_MS = 10_000

test('a removed product is refused and its open streams end; the same token opens it again when it is added', async () => {
  await using node = await startFakeNode()
  node.onGrpcCall = (call) => {
    call.onMessage(() => {})
    call.sendHeaders({})
  }
  await using gateway = await startServedGateway([{ name: 'fake', rpc: node.rpc, ws: node.ws, grpc: node.grpc }])
  const { token, url } = gateway
  const run = async (...words: string[]) => {
    const { code, stderr } = await gateway.sluice(...words)
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
  }
  const status = async () => (await fetch(`${url}/v1/connections`, { headers: { 'x-token': token } })).status
  assert.equal(await status(), 200)

  const socket = new WebSocket(gateway.ws, { headers: { 'x-token': token } })
  await new Promise((resolve, reject) => socket.on('open', resolve).on('error', reject))
  const closed = new Promise<number>((resolve) => socket.on('close', resolve))
  const client = new Client(gateway.grpc, credentials.createInsecure())
  const stream = openStream(client, SUBSCRIBE, tokenMetadata(token))
  await stream.headers

  await run('sub', 'add-product', 'acme-prod', 'indexer')
  assert.equal(await status(), 200)
  const removedAt = performance.now()
  await run('sub', 'remove-product', 'acme-prod', 'bundle', '--yes')
  assert.equal(await closed, 4401)
  assert.equal((await stream.ended).code, GrpcCode.permissionDenied)
  assert.ok(performance.now() - removedAt < CUT_WITHIN_MS)
  assert.equal(await status(), 401)

  await run('sub', 'add-product', 'acme-prod', 'bundle')
  await until('the same token is valid again', async () => (await status()) === 200)
  client.close()
})
