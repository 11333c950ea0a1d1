import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { openControlClient } from '../../src/platform/process/control-client.ts'
import type { ControlProtocol } from '../../src/processes/compose/process/control-protocol.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { startPostgres } from '../support/machine/postgres.ts'
import { serve } from '../support/process/serve.ts'

/** In real time. The guarantee is one second; a busy test machine gets twice that. */
const REACHES_WITHIN_MS = 2000

async function reaches(config: string): Promise<void> {
  await using home = await temporaryFolder()
  writeFileSync(home.file('sluice.toml'), config)
  await using running = serve({ cwd: home.path, args: ['--no-demo'] })
  await running.line(/"msg":"started"/)
  using control = await openControlClient<ControlProtocol>(home.file('.sluice/control.sock'))
  const customers = async () => (await control.call('status')).customers
  assert.equal(await customers(), 0)
  const words = ['customer', 'add', 'acme', '--state', home.file('.sluice'), '--config', home.file('sluice.toml')]
  const { code, stderr } = await sluiceHere(words)
  assert.equal(code, 0, stderr)
  const changedAt = performance.now()
  while ((await customers()) === 0) {
    assert.ok(performance.now() - changedAt < REACHES_WITHIN_MS, 'the change did not arrive')
  }
}

test('a change by the command line reaches a running process: SQLite', () => reaches(''))

test('a change by the command line reaches a running process: PostgreSQL', async () => {
  await using database = await startPostgres()
  await reaches(`[access.store]\nengine = "postgres"\nurl = "${database.url}"\n`)
})
