import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import { openControlClient } from '../../src/platform/process/control-client.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import type { ControlProtocol } from '../../src/processes/compose/process/control-protocol.ts'
import { sluice } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'
import { startQuickLocalnet, upstreamsOf } from '../support/solana/localnet.ts'
import { makeStore } from '../support/store/make-store.ts'

test('sluice gateway without an upstream node fails to start and names the option to set', async () => {
  using folder = makeTestFolder()
  const { code, stderr, stdout } = await sluice(['gateway', '--state', folder.file('state')], { cwd: folder.path })
  assert.equal(code, 78, stdout + stderr)
  assert.match(stderr, /sluice gateway needs an upstream node[^]*upstreams\.nodes/)
})

test('sluice gateway serves calls and streams, and the commands of a running process work on it', async () => {
  await using node = await startQuickLocalnet()
  using folder = makeTestFolder()
  writeFileSync(folder.file('sluice.toml'), `${upstreamsOf(node)}[notices]\ncommand = ["notify"]\n`)
  const args = ['--config', folder.file('sluice.toml'), '--state', folder.file('state')]
  await makeStore(folder.file('state'))
  await using gateway = serve({ command: 'gateway', cwd: folder.path, args })
  await gateway.line(/"sections":\[[^\]]*"notices"[^]*only sluice serve runs them/)
  const [rpc, ws] = [await gateway.address('rpc'), await gateway.address('ws')]
  await gateway.address('grpc')
  await gateway.line(/"msg":"started"/)
  const run = async (...words: string[]) => {
    const { code, stdout, stderr } = await sluice([...words, '--state', folder.file('state')])
    assert.equal(code, 0, `${words.join(' ')}: ${stderr}`)
    return stdout
  }

  await run('customer', 'add', 'acme')
  const made = await run(
    'sub',
    'create',
    'one',
    '--customer',
    'acme',
    '--products',
    'bundle',
    '--print-token',
    '--json',
  )
  const { token } = JSON.parse(made) as { token: string }
  const call = async () => {
    const response = await fetch(`http://${rpc}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-token': token },
      body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
    })
    return ((await response.json()) as { result?: number }).result
  }
  await until('the process has seen the subscription', async () => (await call()) !== undefined)

  const client = new WebSocket(`ws://${ws}`, { headers: { 'x-token': token } })
  await once(client, 'open')
  const closed = once(client, 'close') as Promise<[number]>
  using control = await openControlClient<ControlProtocol>(folder.file('state/control.sock'))
  const { connections } = await control.call('connections')
  assert.deepEqual(
    connections.map((each) => each.interface),
    ['ws'],
  )
  assert.deepEqual(await control.call('connection-close', { name: connections[0]?.id ?? '' }), { found: true })
  assert.equal((await closed)[0], 1000)

  const status = JSON.parse(await run('status', '--json')) as { services: { name: string }[] }
  assert.deepEqual(status.services.map(({ name }) => name).toSorted(), ['grpc', 'metrics', 'rpc', 'ws'])
  await run('upstream', 'drain', 'local')
  assert.match(await run('upstream', 'list'), /drain/)
  await run('upstream', 'undrain', 'local')
  const metrics = await (await fetch(`http://${await gateway.address('metrics')}/metrics`)).text()
  assert.match(metrics, /^sluice_build_info/m)

  const second = await sluice(['gateway', ...args], { cwd: folder.path })
  assert.notEqual(second.code, 0)
  assert.match(second.stderr, /already runs on the state folder/)
  await run('drain', '--yes')
  assert.equal(await gateway.exit(), 0)
})
