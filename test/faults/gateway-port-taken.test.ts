import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:net'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { startFakeNode } from './fake-node.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
const PRELOAD = new URL('../support/process/end-thread-on-signal.ts', import.meta.url).href
const BACK_MS = 60_000

test('the only gateway thread is not started again on a port that another process has taken meanwhile', async () => {
  await using node = await startFakeNode()
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }], {
    workers: 1,
    env: { NODE_OPTIONS: `--import=${PRELOAD}`, END_THREADS: 'gateway-1' },
  })
  const { running, token } = gateway
  const call = async () => {
    const headers = { 'content-type': 'application/json', 'x-token': token }
    return (await fetch(gateway.url, { method: 'POST', headers, body: CALL })).status
  }
  assert.equal(await call(), 200)

  // The kernel lets processes of one user share a port with this option.
  const other = createServer((socket) => void socket.end('not Sluice'))
  const port = Number(new URL(gateway.url).port)
  other.listen({ host: '127.0.0.1', port, reusePort: true })
  await once(other, 'listening')
  running.child.kill('SIGUSR2')
  const line = JSON.parse(await running.line(/"msg":"thread cannot be started; retrying"/)) as {
    thread: string
    err: { message: string }
  }
  assert.equal(line.thread, 'gateway-1')
  assert.match(line.err.message, new RegExp(`${port}.*in use`))
  const status = JSON.parse((await gateway.sluice('status', '--json')).stdout) as {
    reasons: { part: string; reason: string }[]
  }
  const reason = status.reasons.find(({ part }) => part === 'thread gateway-1')?.reason ?? ''
  assert.match(reason, /^the thread cannot be started: .*in use/)

  other.close()
  await until('it serves again', async () => (await call().catch(() => 0)) === 200, BACK_MS)
  assert.equal(await running.stop(), 0)
})
