import assert from 'node:assert/strict'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cli.ts'
import { serve } from '../support/serve.ts'

const CALL = { method: 'POST', headers: { 'content-type': 'application/json' }, body: '{}' }

test('a process at its ceiling of memory turns away who is new, says why, and stays open to its operator', async () => {
  await using home = await temporaryFolder()
  // Less than any Node takes: it is at its ceiling from the first moment on.
  const env = { SLUICE_MEMORY__RESIDENT_BYTES_MAX: String(64 * 2 ** 20) }
  await using served = serve({ cwd: home.path, args: ['--no-demo'], env })
  await served.line(/"pressure":"no-new-sockets".*"msg":"memory pressure changed"/)
  await served.line(/"msg":"started"/)
  const call = await fetch(`http://${await served.address('rpc')}/`, CALL)
  assert.deepEqual([call.status, await call.text()], [503, '{"error":"no-memory"}'])
  const upgrade = await fetch(`http://${await served.address('ws')}/`)
  assert.deepEqual([upgrade.status, await upgrade.text()], [503, '{"error":"no-memory"}'])
  const metrics = await (await fetch(`http://${await served.address('metrics')}/metrics`)).text()
  for (const door of ['rpc', 'ws']) {
    assert.match(
      metrics,
      new RegExp(`^sluice_process_connections_refused_total\\{door="${door}",reason="memory"\\} 1$`, 'm'),
    )
  }
})

test('a process far below its ceiling takes everybody in', async () => {
  await using home = await temporaryFolder()
  await using served = serve({ cwd: home.path, args: ['--no-demo'] })
  await served.line(/"msg":"started"/)
  assert.equal((await fetch(`http://${await served.address('rpc')}/`, CALL)).status, 401)
  assert.doesNotMatch(served.stdout(), /memory pressure/)
})
