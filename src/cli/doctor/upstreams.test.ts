import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startTestServer } from '../../../test/support/solana/rpc-server.ts'
import { configSchema } from '../../processes/compose/config/config.ts'
import { checkUpstreams } from './upstreams.ts'

const configOf = (nodes: object[]) => configSchema.parse({ upstreams: { nodes, allowPrivate: true } })
const DEAD = 'http://127.0.0.1:1'

test('a pool with a dead node is not called healthy', async () => {
  await using server = await startTestServer()
  const config = configOf([
    { name: 'live', rpc: server.url },
    { name: 'dead', rpc: DEAD },
  ])
  const findings = await checkUpstreams(config, '.', {})
  const pool = findings.filter(({ check }) => check === 'pool')
  assert.equal(pool.length, 1)
  assert.equal(pool[0]?.level, 'warn')
  assert.match(pool[0]?.message ?? '', /1 of 2 nodes can serve calls; not compared: dead/)
  assert.ok(findings.some(({ level, message }) => level === 'bad' && message.startsWith('dead over rpc')))
})

test('a node whose credential is missing is not called healthy either', async () => {
  await using server = await startTestServer()
  const config = configOf([
    { name: 'live', rpc: server.url },
    { name: 'locked', rpc: server.url, credential: 'env:NOT_SET_HERE' },
  ])
  const pool = (await checkUpstreams(config, '.', {})).filter(({ check }) => check === 'pool')
  assert.deepEqual(
    pool.map(({ level }) => level),
    ['warn'],
  )
})

test('a pool of nodes that agree is called healthy', async () => {
  await using server = await startTestServer()
  const config = configOf([
    { name: 'one', rpc: server.url },
    { name: 'two', rpc: server.url },
  ])
  const pool = (await checkUpstreams(config, '.', {})).filter(({ check }) => check === 'pool')
  assert.deepEqual(
    pool.map(({ level }) => level),
    ['ok'],
  )
})
