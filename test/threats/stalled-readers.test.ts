import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { startWsGateway } from '../support/gateway/ws.ts'
import { isFull } from '../support/process/property.ts'

const STALLED = isFull ? 200 : 40
const READING = 10
const MESSAGE_BYTES = 200_000
/** Enough to fill what the system keeps for a connection (some megabytes) and the gateway's own bound (4 MiB) behind it. */
const MESSAGES_MAX = 200
const PLAN = { ...BUILT_IN_PLANS.professional, wsConnections: 1000 }

/** T10: a client that subscribes and does not read is closed with a code; clients that read miss nothing and are not delayed. */
test('T10: stalled WebSocket readers cost a bounded buffer for a bounded time', async (t) => {
  await using node = await startFakeNode()
  await using on = await startWsGateway(
    [{ name: 'fake', rpc: node.rpc, ws: node.ws }],
    {},
    { ...BUILT_IN_PLANS, wide: PLAN },
  )
  const { token } = await on.gateway.subscribe({ plan: 'wide' })
  const open = async () => {
    const client = await on.open(token)
    await client.call('logsSubscribe', ['all'])
    return client
  }
  const stalled = await Promise.all(Array.from({ length: STALLED }, open))
  const reading = await Promise.all(Array.from({ length: READING }, open))
  const before = process.memoryUsage().rss
  for (const { socket } of stalled) socket.pause()

  const slowCount = async () =>
    Number(/sluice_bundle_slow_consumers_total\{interface="ws"\} (\d+)/.exec(await on.registry.text())?.[1] ?? 0)
  let sent = 0
  const ages: number[] = []
  let peak = before
  const padding = 'x'.repeat(MESSAGE_BYTES)
  while (sent < MESSAGES_MAX && on.server.connections > READING) {
    const beganMs = performance.now()
    // A node without new slots is replaced by another.
    node.tick()
    node.notify('logsSubscribe', `{"context":{"slot":${sent}},"value":{"logs":["${padding}"]}}`)
    sent += 1
    await until('all reading clients have it', () => reading.every(({ texts }) => texts.length === sent), 30_000)
    ages.push(performance.now() - beganMs)
    peak = Math.max(peak, process.memoryUsage().rss)
    await pause(20)
  }
  await until('the stalled ones are gone', () => on.server.connections === READING, 30_000)
  t.diagnostic(
    `${sent} messages; slowest delivery ${Math.max(...ages).toFixed(0)} ms; at most ${((peak - before) / 1e6).toFixed(0)} MB more; ${await slowCount()} called slow`,
  )
  // No notification was skipped for clients that read.
  for (const { texts } of reading) {
    texts.forEach((text, at) => assert(text.includes(`"slot":${at}}`), `message ${at} is out of place`))
  }
  // Stalled clients that read again find the close after a gapless sequence of messages.
  for (const { socket, texts, closed } of stalled.slice(0, 5)) {
    socket.resume()
    assert.notEqual((await closed()).code, 1000)
    texts.forEach((text, at) => assert(text.includes(`"slot":${at}}`), `message ${at} is out of place`))
  }
  assert.equal(await slowCount(), STALLED)
  assert(peak - before < 200_000_000 + STALLED * 10_000_000)
})
