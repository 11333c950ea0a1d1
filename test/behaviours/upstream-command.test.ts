import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

test('upstream list shows the nodes; drain and undrain remove one from rotation and return it', async () => {
  await using home = await temporaryFolder()
  await using running = serve({
    cwd: home.path,
    env: { SLUICE_LOCALNET__ENABLED: 'true', SLUICE_LOCALNET__SLOT_MS: '100' },
  })
  const rpc = await running.address('rpc')
  await running.line(/"msg":"started"/)
  const token = /slc_[0-9A-Za-z]{38}/.exec(running.stdout())?.[0] ?? ''
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  const call = () =>
    fetch(`http://${rpc}`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'x-token': token },
      body: '{"jsonrpc":"2.0","id":1,"method":"getSlot"}',
    })
  assert.equal((await call()).status, 200)
  const [node] = JSON.parse((await run('upstream', 'list', '-o', 'json')).stdout) as Record<string, unknown>[]
  assert.equal(node?.['name'], 'localnet')
  assert.equal(node?.['state'], 'healthy')
  assert.match((await run('upstream', 'list')).stdout, /^NAME +STATE/)

  assert.equal((await run('upstream', 'drain', 'localnet')).code, 0)
  assert.equal((await call()).status, 503)
  assert.match((await run('upstream', 'list')).stdout, /localnet +drained/)
  assert.equal((await run('upstream', 'undrain', 'localnet')).code, 0)
  assert.equal((await call()).status, 200)
  assert.equal((await run('upstream', 'drain', 'nobody')).code, 1)
})
