import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openAccessFolder } from '../../../../test/support/store/access-folder.ts'
import { addNode, assignNode, removeNode } from '../../../access/provisioning/nodes.ts'
import { createSubscription } from '../../../access/provisioning/subscriptions.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { createMemoryCells } from '../../../platform/process/memory-cells.ts'
import { secureRandom } from '../../../platform/process/random.ts'
import { until } from '../../../platform/process/test-wait.ts'
import { silentLogger } from '../../../platform/telemetry/logger.ts'
import { createProbePublisher } from '../../../upstreams/probes/shared-probes.ts'
import { loadSettings } from '../config/settings.ts'
import { createHealthReports } from './health-reports.ts'
import { createThreadHost, type ThreadHostDeps } from './thread-host.ts'

const ENTRY = new URL('../../../../test/support/process/echo-thread.ts', import.meta.url)

async function start(t: TestContext) {
  const folder = await openAccessFolder()
  t.after(() => folder[Symbol.asyncDispose]())
  const part = await folder.start({}, 2)
  t.after(() => part.close())
  const settings = await loadSettings({ process: { env: {} } }, { state: folder.folder })
  const threads = createThreadHost(settings, [{ name: 'sender', threads: 1, isSingle: true }], {
    ...{ log: silentLogger, clock: systemClock, random: secureRandom, env: {}, access: part.access },
    registry: part.registry,
    lifecycle: { degraded() {}, recovered() {} },
    health: createHealthReports({ degraded() {}, recovered() {} }),
    refusals: { record() {} },
    memory: { reclaim() {} },
    memoryCells: createMemoryCells({ threads: 2 }),
    probes: createProbePublisher(),
    nodes: settings.config.upstreams,
  } as unknown as ThreadHostDeps)
  t.after(() => threads[Symbol.dispose]())
  const thread = await threads.start({
    name: 'sender',
    entry: ENTRY,
    config: (config) => ({ ...config, sender: { ...config.sender, listen: '127.0.0.1:0' } }),
  })
  t.after(() => thread[Symbol.asyncDispose]())
  const options = settings.config.upstreams
  return {
    ...{ folder, access: part.access, threads, options },
    /** What the thread that is started in its place is given. */
    async restarted() {
      const before = thread.restarts
      await thread.control('throw', undefined)
      await until('the thread is started again', () => thread.restarts > before && thread.isRunning)
      return (await thread.control('upstreams', undefined)) as { readonly drained: readonly string[] }
    },
  }
}

const nodeOf = (name: string) => ({ name, rpc: 'http://10.0.0.7:8899', credentialHeader: 'x-token', weight: 1 })

test('a thread that is started again has the nodes and their options of the last reload', async (t) => {
  const { threads, options, restarted } = await start(t)
  const reloaded = { nodes: [nodeOf('a')], allowPrivate: true, dedicatedCredentialHeader: 'authorization' }
  await threads.reloadNodes({ ...options, ...reloaded })
  assert.deepEqual(await restarted(), {
    names: ['a'],
    allowPrivate: true,
    credentialHeader: 'authorization',
    drained: [],
  })
  assert.equal(threads.nodesOptions().allowPrivate, true)
})

test('a node that was drained and removed is not drained when it is listed again', async (t) => {
  const { threads, options, restarted } = await start(t)
  await threads.reloadNodes({ ...options, nodes: [nodeOf('a'), nodeOf('b')] })
  threads.drainNode('a', true)
  threads.drainNode('b', true)
  await threads.reloadNodes({ ...options, nodes: [nodeOf('b')] })
  await threads.reloadNodes({ ...options, nodes: [nodeOf('a'), nodeOf('b')] })
  assert.deepEqual((await restarted()).drained, ['b'])
})

test('a dedicated node stays drained over a reload, until it is removed', async (t) => {
  const { folder, access, threads, options, restarted } = await start(t)
  const { subscription } = await createSubscription(folder.on(), {
    ...{ customer: 'acme', name: 'own', plan: 'starter', overrides: {}, validUntil: null },
    products: ['bundle', 'dedicated-node'],
  })
  const { id } = subscription
  await addNode(folder.on(), { name: 'd', rpc: 'http://10.0.0.8:8899', ws: '', grpc: '', credential: null })
  await assignNode(folder.on(), { node: 'd', subscription: id })
  const isKnown = () => [...access.snapshot().nodes()].some(({ subscriptionId }) => subscriptionId === id)
  await until('it is known', isKnown)
  threads.drainNode('d', true)
  await threads.reloadNodes(options)
  assert.deepEqual((await restarted()).drained, ['d'])
  await removeNode(folder.on(), { node: 'd', force: true })
  await until('it is gone', () => !isKnown())
  assert.deepEqual((await restarted()).drained, [])
})
