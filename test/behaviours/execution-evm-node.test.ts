import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Timer } from '../../src/core/clock.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { startEvmNodeSource } from '../../src/execution/source/evm-node/source.ts'
import { startRingSource } from '../../src/execution/source/ring-source.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { deploymentOf, HOT_COUNTER, startEvmNode } from '../support/execution/evm-node.ts'
import { createLastEvent, startTestExecution, statusOf } from '../support/execution/start.ts'

const READING = {
  kind: 'evm-node',
  start: 'oldest',
  topAccessesMs: 1000,
  topAccessesResetMs: 300_000,
  blockBytesMax: 2 ** 24,
} as const

type Contention = { total_txn_count: number; top_contended_contracts: { address: string; contended_slots: number }[] }

const HOUR_MS = 3_600_000

test('the last block of a node that has stopped is no sign of life; the next block is', async () => {
  using folder = makeTestFolder()
  await using node = await startEvmNode()
  await node.call('evm_mine')
  // For the service the last block is an hour old.
  const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + HOUR_MS }
  const deps = { log: silentLogger, clock, random: createSeededRandom(1) }
  // The block is recorded when the ring is already being read, so it is new in the ring.
  const opened = Promise.withResolvers<void>()
  const setTimer: typeof clock.setTimer = (delayMs, run) => {
    const timer = Promise.withResolvers<Timer>()
    void opened.promise.then(() => timer.resolve(clock.setTimer(delayMs, run)))
    const cancel = () => void timer.promise.then((set) => set.cancel())
    return { cancel, [Symbol.dispose]: cancel }
  }
  await using source = await startEvmNodeSource(
    { url: node.url, path: folder.file('ring'), pollMs: 20 },
    { ...deps, clock: { ...clock, setTimer } },
  )
  await using sluice = await startTestExecution({
    clock,
    deps: {
      lastEvent: createLastEvent(clock, clock.nowMs() - 2 * HOUR_MS),
      startSource: (onMessages) =>
        startRingSource(
          { ...READING, path: source.path },
          {
            ...deps,
            onMessages(messages) {
              if (messages.some(({ kind }) => kind === 'opened')) opened.resolve()
              onMessages(messages)
            },
          },
        ),
    },
  })
  await until('the block is read', async () => (await statusOf(sluice)).ring_seqno > 0, 30_000)
  assert.equal((await fetch(`${sluice.http}/health`)).status, 503)
  const { last_event_age_secs } = await statusOf(sluice)
  assert(last_event_age_secs >= 3590 && last_event_age_secs < 3700, String(last_event_age_secs))
  await node.call('evm_mine')
  await until('the next block is read', async () => (await fetch(`${sluice.http}/health`)).status === 200, 30_000)
})

test('the service fed by an EVM node shows contention for a hot contract, and the block over JSON-RPC', async () => {
  using folder = makeTestFolder()
  await using node = await startEvmNode()
  const deps = { log: silentLogger, clock: systemClock, random: createSeededRandom(1) }
  await using source = await startEvmNodeSource({ url: node.url, path: folder.file('ring'), pollMs: 20 }, deps)
  await using sluice = await startTestExecution({
    clock: systemClock,
    deps: {
      startSource: (onMessages) => startRingSource({ ...READING, path: source.path }, { ...deps, onMessages }),
    },
  })
  const accounts = await node.call<string[]>('eth_accounts')
  const from = accounts[0]
  const deployed = await node.call<string>('eth_sendTransaction', {
    from,
    data: deploymentOf(HOT_COUNTER),
    gas: '0x100000',
  })
  await node.call('evm_mine')
  const { contractAddress } = await node.call<{ contractAddress: string }>('eth_getTransactionReceipt', deployed)
  for (const sender of accounts)
    await node.call('eth_sendTransaction', { from: sender, to: contractAddress, gas: '0x100000' })
  await node.call('evm_mine')

  let contention: Contention | undefined
  await until(
    'the block of the calls is shown',
    async () => {
      const response = await fetch(`${sluice.http}/v1/contention`)
      contention = response.ok ? ((await response.json()) as Contention) : undefined
      return contention?.total_txn_count === accounts.length
    },
    30_000,
  )
  assert.equal(contention?.top_contended_contracts[0]?.address, contractAddress)
  assert.equal(contention?.top_contended_contracts[0]?.contended_slots, 1)
  const newest = await node.call<{ hash: string }>('eth_getBlockByNumber', 'latest', false)
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_getBlockByNumber', params: ['latest', false] })
  const reply = await fetch(sluice.http, { method: 'POST', headers: { 'content-type': 'application/json' }, body })
  assert.equal(((await reply.json()) as { result: { hash: string } }).result.hash, newest.hash)
})
