import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Snapshot } from '../../../access/snapshot/snapshot.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { Config } from '../config/config.ts'
import { createThreadState, type LateState } from './thread-state.ts'

const NODES = { nodes: [], allowPrivate: false, dedicatedCredentialHeader: 'x-token' } as unknown as NodesOptions
const CONFIG = { log: { level: 'info' }, upstreams: { nodes: [] } } as unknown as Config

function setUp() {
  const access = { snapshot: () => Snapshot.empty(), update: () => 'update' as never }
  const state = createThreadState({ nodes: NODES, logLevel: 'info' }, access)
  return { state, late: state.ofThread() }
}

/** What an instance is sent when it serves. */
function replayed(late: LateState): unknown[] {
  const sent: unknown[] = []
  late.replay({
    notify: (...message) => void sent.push(message),
    async call(method, params) {
      sent.push([method, params])
      return undefined as never
    },
  })
  return sent
}

test('a thread that is started after a reload has all of it in its start data, and is sent the nodes only once', () => {
  const { state, late } = setUp()
  state.setNodes({ ...NODES, allowPrivate: true })
  state.setLogLevel('debug')
  const { config } = late.startData(CONFIG)
  assert.equal(config.upstreams.allowPrivate, true)
  assert.equal(config.log.level, 'debug')
  assert.deepEqual(replayed(late), [
    ['access-update', 'update'],
    ['log-level', 'debug'],
  ])
})

test('what changes while a thread is being started is sent when it serves', () => {
  const { state, late } = setUp()
  const other = state.ofThread()
  late.startData(CONFIG)
  const next = { ...NODES, nodes: [{ name: 'a' }] } as unknown as NodesOptions
  state.setNodes(next)
  state.setDrained('a', true)
  state.setLogLevel('warn')
  assert.deepEqual(other.startData(CONFIG).drainedNodes, ['a'])
  assert.deepEqual(replayed(late), [
    ['access-update', 'update'],
    ['log-level', 'warn'],
    ['drain-node', { node: 'a', isDrained: true }],
    ['reload-nodes', next],
  ])
})
