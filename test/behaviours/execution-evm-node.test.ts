import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeededRandom } from '../../src/core/random.ts'
import { startEvmNodeSource } from '../../src/execution/source/evm-node/source.ts'
import { startRingSource } from '../../src/execution/source/ring-source.ts'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { systemClock } from '../../src/platform/process/clock.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { deploymentOf, HOT_COUNTER, startEvmNode } from '../support/evm-node.ts'
import { startTestExecution } from '../support/execution.ts'

type Contention = { total_txn_count: number; top_contended_contracts: { address: string; contended_slots: number }[] }

test('the service fed by an EVM node shows contention for a hot contract, and the block over JSON-RPC', async () => {
  using folder = makeTestFolder()
  await using node = await startEvmNode()
  const deps = { log: silentLogger, clock: systemClock, random: createSeededRandom(1) }
  await using source = await startEvmNodeSource({ url: node.url, path: folder.file('ring'), pollMs: 20 }, deps)
  await using sluice = await startTestExecution({
    clock: systemClock,
    deps: {
      startSource: (onMessages) =>
        startRingSource(
          {
            kind: 'evm-node',
            path: source.path,
            start: 'oldest',
            topAccessesMs: 1000,
            topAccessesResetMs: 300_000,
            blockBytesMax: 2 ** 24,
          },
          { ...deps, onMessages },
        ),
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
