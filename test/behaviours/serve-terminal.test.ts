import assert from 'node:assert/strict'
import { existsSync, readdirSync, readlinkSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { onTerminal } from '../support/cli/terminal.ts'
import { SMALL } from '../support/process/serve.ts'

type Home = Awaited<ReturnType<typeof temporaryFolder>>

const EVERYTHING = {
  ...SMALL,
  SLUICE_EXECUTION__ENABLED: 'true',
  SLUICE_INDEXER__ENABLED: 'true',
  SLUICE_LOCALNET__ENABLED: 'true',
}

/** Processes whose working folder is this one. */
function processesIn(home: Home): string[] {
  return readdirSync('/proc').filter((name) => {
    if (!/^\d+$/.test(name)) return false
    try {
      return readlinkSync(`/proc/${name}/cwd`) === home.path
    } catch {
      return false
    }
  })
}

const CTRL_C = '\u0003'

test('on a terminal the log is lines to read; with --log json it is JSON', async () => {
  await using home = await temporaryFolder()
  {
    await using running = onTerminal(home.path, 'serve', SMALL)
    await until('it is started', () => / {2}started {2}/.test(running.text()))
    assert.doesNotMatch(running.text(), /^\{/m)
    assert.match(running.text(), /^\d\d:\d\d:\d\d {2}listening {2}service=rpc {2}address=127\.0\.0\.1:\d+$/m)
    assert.match(running.text(), /^\d\d:\d\d:\d\d {2}WARN sender: tip wallets were created.*sluice backup/m)
    assert.match(running.text(), /^Keep {7}\S+\.sluice has your customers, and in keys\/ the wallets/m)
    running.type(CTRL_C)
    assert.equal(await running.exit(), 0, 'a started process that is stopped ends cleanly')
  }
  await using json = onTerminal(home.path, 'serve --log json', SMALL)
  await until('it is started', () => json.text().includes('"msg":"started"'))
  json.type(CTRL_C)
  assert.equal(await json.exit(), 0)
})

test('Ctrl-C during the start ends quietly with 130 and leaves nothing behind', async () => {
  await using home = await temporaryFolder()
  // At different moments of the start: with the lock, the store, the chain, the database.
  for (const file of ['lock.pid', 'access.db', 'localnet/keys/faucet.json', 'keys/tip-5.json']) {
    await using starting = onTerminal(home.path, `serve --state ${home.file(file.replaceAll('/', '-'))}`, EVERYTHING)
    await until(`${file} exists`, () => existsSync(home.file(`${file.replaceAll('/', '-')}/${file}`)))
    starting.type(CTRL_C)
    assert.equal(await starting.exit(), 130, `${file}: ${starting.text()}`)
    assert.doesNotMatch(starting.text(), /\n\s+at |error:|Error|^\S+ {2}started/m, file)
    assert.ok(!existsSync(home.file(`${file.replaceAll('/', '-')}/control.sock`)), file)
    await until('no process is left', () => processesIn(home).length === 0)
  }
})
