import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { temporaryFolder } from '../../../../../test/support/cli.ts'
import { sluiceHere } from '../../../../../test/support/cli-in-process.ts'
import { openControlSocket } from '../../../../platform/process/control-socket.ts'
import { silentLogger } from '../../../../platform/telemetry/logger.ts'
import { loadSettings } from '../../../../processes/compose/config/settings.ts'
import { createSettingsReport } from '../../../../processes/compose/process/settings-report.ts'

test('config check leaves a variable to the running process that has it, and refuses it where none runs', async () => {
  await using home = await temporaryFolder()
  const [file, state] = [home.file('sluice.toml'), home.path]
  writeFileSync(file, '[metrics]\nbearer = "env:SCRAPE_BEARER"\n')
  const check = (...words: string[]) => sluiceHere(['config', 'check', '--state', state, ...words])

  const stopped = await check('--config', file)
  assert.equal(stopped.code, 78)
  assert.match(stopped.stderr, /SCRAPE_BEARER/)

  const settings = await loadSettings({ process: { env: {} } }, { config: file, state })
  const methods = { settings: createSettingsReport(settings, {}, settings.endpoints) }
  await using _process = await openControlSocket(home.file('control.sock'), { log: silentLogger, methods })
  for (const words of [[], ['--config', file]]) {
    const running = await check(...words)
    assert.equal(running.code, 0, running.stderr)
    assert.match(running.stderr, /not checked: metrics\.bearer: in the environment of the running process/)
  }
  assert.equal((await sluiceHere(['config', 'check', '--state', home.file('other'), '--config', file])).code, 78)

  writeFileSync(file, '[metrics]\nbearer = "file:missing"\n')
  assert.equal((await check()).code, 78, 'a file is checked here')
})
