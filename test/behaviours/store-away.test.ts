import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { startPostgres } from '../support/machine/postgres.ts'
import { serve } from '../support/process/serve.ts'

test('an unreachable shared store is reported as degraded, the process keeps serving, and recovery is reported', async () => {
  await using database = await startPostgres()
  await using home = await temporaryFolder()
  writeFileSync(home.file('sluice.toml'), `[access.store]\nengine = "postgres"\nurl = "${database.url}"\n`)
  await using running = serve({ cwd: home.path, args: ['--no-demo'] })
  const address = await running.address('metrics')
  await running.line(/"msg":"started"/)
  const health = async () => {
    const response = await fetch(`http://${address}/readyz`)
    return { status: response.status, ...((await response.json()) as { state: string; reasons: { part: string }[] }) }
  }
  assert.equal((await health()).state, 'ok')
  await database.stop('SIGQUIT')
  await until('/health reports the store', async () => (await health()).reasons.some(({ part }) => part === 'store'))
  const away = await health()
  assert.equal(away.state, 'degraded')
  assert.equal(away.status, 200, 'a degraded process still serves')
  await database.start()
  await until('the state is ok again', async () => (await health()).state === 'ok')
})
