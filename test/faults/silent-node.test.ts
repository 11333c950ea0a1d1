import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSolanaRpc, createSolanaRpcSubscriptions } from '@solana/kit'
import { until } from '../../src/platform/process/test-wait.ts'
import { onBusyMachine, startFaultRig } from './gateway-rig.ts'

const OUT_WITHIN_MS = onBusyMachine(2000, 8000)
const SERVED_WITHIN_MS = onBusyMachine(3000, 9000)

test('kit keeps reading and keeps its subscription while one of two nodes accepts connections and never responds', async () => {
  await using rig = await startFaultRig(['a', 'b'])
  const headers = { 'x-token': rig.token }
  const rpc = createSolanaRpc(rig.gateway.url, { headers } as never)
  const ticket = await fetch(`${rig.gateway.url}/v1/ws-ticket`, { method: 'POST', headers })
  const { url } = (await ticket.json()) as { url: string }
  const stop = new AbortController()
  const slots: bigint[] = []
  const notifications = await createSolanaRpcSubscriptions(url)
    .slotNotifications()
    .subscribe({ abortSignal: stop.signal })
  const reading = (async () => {
    for await (const { slot } of notifications) slots.push(slot)
  })().catch(() => {})
  await until('slots arrive', () => slots.length > 2)

  const [silent] = rig.nodes
  assert.ok(silent)
  for (const proxy of [silent.rpc, silent.ws, silent.grpc]) {
    proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'upstream' })
    proxy.add({ type: 'timeout', timeoutMs: 0, stream: 'downstream' })
  }
  const fromMs = performance.now()
  const reads = Promise.all(
    Array.from({ length: 40 }, async () => {
      const height = await rpc.getBlockHeight({ commitment: 'processed' }).send()
      return { height, tookMs: performance.now() - fromMs }
    }),
  )
  // Awaited below. Where the test fails before that, they fail with the end of the gateway, which is not the cause.
  reads.catch(() => {})
  await until('the node is out', () => rig.stateOf('a') === 'failing', OUT_WITHIN_MS)
  for (const { height, tookMs } of await reads) {
    assert.ok(height >= 0n && tookMs < SERVED_WITHIN_MS, `${tookMs} ms`)
  }
  const seen = slots.length
  await until('slots arrive from the other node', () => slots.length > seen + 3, onBusyMachine(5000, 20_000))
  stop.abort()
  await reading
})
