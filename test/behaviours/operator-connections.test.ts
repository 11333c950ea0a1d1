import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { WebSocket } from 'ws'
import { openControlClient } from '../../src/platform/process/control-client.ts'
import { until } from '../../src/platform/process/test-wait.ts'
import type { ControlProtocol } from '../../src/processes/compose/process/control-protocol.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

test('the control socket lists every open connection and can close one', async () => {
  await using home = await temporaryFolder()
  await using running = serve({
    cwd: home.path,
    env: { SLUICE_LOCALNET__ENABLED: 'true', SLUICE_LOCALNET__SLOT_MS: '100' },
  })
  const ws = await running.address('ws')
  await running.line(/"msg":"started"/)
  const token = /slc_[0-9A-Za-z]{38}/.exec(running.stdout())?.[0] ?? ''
  using control = await openControlClient<ControlProtocol>(home.file('.sluice/control.sock'))
  const list = () => control.call('connections')
  assert.deepEqual(await list(), { total: 0, connections: [] })
  const socket = new WebSocket(`ws://${ws}`, { headers: { 'x-token': token } })
  const closed = once(socket, 'close') as Promise<[number, Buffer]>
  await once(socket, 'open')
  const { total, connections } = await list()
  const [connection] = connections
  assert.deepEqual([total, connection?.interface, connection?.remote_address], [1, 'ws', '127.0.0.1'])
  assert.match(connection?.subscription_id ?? '', /^sub_/)
  assert.ok(!JSON.stringify(connections).includes(token))
  assert.deepEqual(await control.call('connection-close', { name: 'con_none' }), { found: false })
  assert.deepEqual(await control.call('connection-close', { name: connection?.id ?? '' }), { found: true })
  assert.equal((await closed)[0], 1000)
  await until('it is gone', async () => (await list()).total === 0)
})
