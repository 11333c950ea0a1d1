import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { BARE_ENV, CLI } from '../../../../../test/support/cli/run.ts'
import { serve } from '../../../../../test/support/process/serve.ts'
import { makeTestFolder } from '../../../../platform/files/test-folder.ts'

test('a token of sluice admin add works at the listener of serve until sluice admin remove', async () => {
  using home = makeTestFolder()
  const run = (...args: string[]): string =>
    execFileSync(process.execPath, ['--disable-warning=ExperimentalWarning', CLI, ...args, '--state', '.sluice'], {
      cwd: home.path,
      env: { ...BARE_ENV },
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    })
  const token = run('admin', 'add', 'ana', '--role', 'owner', '--create-store', '--print-token').trim()
  assert.match(token, /^sla_[0-9A-Za-z]{38}$/)
  await using running = serve({ cwd: home.path, args: ['--no-demo'] })
  const address = await running.address('admin')
  const me = () => fetch(`http://${address}/v1/me`, { headers: { authorization: `Bearer ${token}` } })
  const response = await me()
  assert.equal(response.status, 200)
  assert.equal(((await response.json()) as { name: string }).name, 'ana')
  const listed = JSON.parse(run('admin', 'list', '--json')) as { name: string; role: string }[]
  assert.deepEqual(
    listed.map(({ name, role }) => [name, role]),
    [['ana', 'owner']],
  )
  run('admin', 'remove', 'ana', '--yes')
  assert.equal((await me()).status, 401)
  assert.equal(await running.stop(), 0)
  assert.ok(!`${running.stdout()}${running.stderr()}`.includes(token))
})
