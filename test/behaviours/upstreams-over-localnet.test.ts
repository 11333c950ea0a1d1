import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMessageReader, frameMessage } from '../../src/platform/grpc/framing.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { SubscribeRequestSchema, SubscribeUpdateSchema } from '../../src/solana/gen/geyser_pb.ts'
import { decodeMessage, encodeMessage } from '../../src/solana/geyser/protobuf.ts'
import { upstreamRequest } from '../../src/upstreams/http-call.ts'
import { createClientView } from '../../src/upstreams/pool/pool.ts'
import { rpcBody, startRig } from '../faults/upstreams-rig.ts'
import { startQuickLocalnet } from '../support/solana/localnet.ts'

test('works with the three endpoints of a real node: calls, slots over WebSocket, updates over gRPC', async () => {
  await using localnet = await startQuickLocalnet()
  const at = (scheme: string, { port }: { port: number }) => `${scheme}://127.0.0.1:${port}`
  await using rig = await startRig({
    clock: systemClock,
    nodes: [
      { name: 'localnet', rpc: at('http', localnet.rpc), ws: at('ws', localnet.ws), grpc: at('http', localnet.grpc) },
    ],
  })
  const shared = rig.upstreams.shared

  await until('its slot is followed', () => shared.bestSlot > 0 && rig.upstreams.status()[0]?.wsConnections === 1)
  const from = shared.bestSlot
  await until('its slot advances between two probes', () => shared.bestSlot >= from + 5)

  const view = createClientView()
  const outcome = await shared.forwardAsync(upstreamRequest('getLatestBlockhash', rpcBody('getLatestBlockhash'), view))
  assert.ok(outcome.kind === 'responded' && outcome.status === 200)
  const response = JSON.parse(outcome.body.toString()) as { id: number; result: { context: { slot: number } } }
  assert.equal(response.id, 7)
  assert.ok(view.slot >= response.result.context.slot)

  const frames: string[] = []
  const slots = shared.ws.subscribe(
    { method: 'rootSubscribe', unsubscribe: 'rootUnsubscribe', params: '[]' },
    {
      onReady() {},
      onRefused: assert.fail,
      onLost: assert.fail,
      onNotification: (frame) => frames.push(frame.toString()),
    },
  )
  await until('root notifications arrive', () => frames.length >= 2)
  assert.match(frames[0] ?? '', /"method":"rootNotification"/)
  slots?.close()

  const opened = await shared.grpc.open('/geyser.Geyser/Subscribe', {})
  assert.ok(opened.ok)
  const updates: string[] = []
  const reader = createMessageReader({ messageBytesMax: 4 * 1024 * 1024 }, (message) => {
    updates.push(decodeMessage(SubscribeUpdateSchema, message)?.updateOneof.case ?? 'unreadable')
  })
  opened.stream.onData((bytes) => assert.equal(reader.push(bytes), undefined))
  opened.stream.write(frameMessage(encodeMessage(SubscribeRequestSchema, { slots: { all: {} } })))
  await until('slot updates arrive', () => updates.filter((kind) => kind === 'slot').length >= 3)
  opened.stream.cancel()

  assert.deepEqual(
    rig.upstreams.status().map(({ state, recentFailures }) => [state, recentFailures]),
    [['healthy', 0]],
  )
})
