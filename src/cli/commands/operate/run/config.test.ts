import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { sluiceHere } from '../../../../../test/support/cli/in-process.ts'
import { BARE_ENV, CLI, temporaryFolder } from '../../../../../test/support/cli/run.ts'
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
    assert.match(
      running.stderr,
      /not checked: metrics\.bearer: only in the environment of the process, which cannot be seen here/,
    )
  }
  assert.equal((await sluiceHere(['config', 'check', '--state', home.file('other'), '--config', file])).code, 78)

  writeFileSync(file, '[metrics]\nbearer = "file:missing"\n')
  assert.equal((await check()).code, 78, 'a file is checked here')
})

test('config check refuses what the start refuses: two sources of events, a missing identity of QUIC', async () => {
  await using home = await temporaryFolder()
  const file = home.file('sluice.toml')
  const check = async (text: string) => {
    writeFileSync(file, text)
    return sluiceHere(['config', 'check', '--state', home.path, '--config', file])
  }
  const sources = await check('[execution]\nsimulated = true\nring = "/run/ring"\n')
  assert.equal(sources.code, 78)
  assert.match(sources.stderr, /execution: execution\.ring and execution\.simulated are set/)
  const identity = '[sender.quic]\nenabled = true\nidentity = "id.json"\n'
  const missing = await check(identity)
  assert.equal(missing.code, 78)
  assert.match(missing.stderr, /sender\.quic\.identity: the file id\.json does not exist/)
  writeFileSync(home.file('id.json'), '[]', { mode: 0o600 })
  assert.equal((await check(identity)).code, 0)
  const off = await check('[execution]\nenabled = false\nsimulated = true\nring = "/run/ring"\n')
  assert.equal(off.code, 0, 'serve does not use it')
})

test('config check refuses a credential that is no header value, such as one with a blank line after it', async () => {
  await using home = await temporaryFolder()
  const file = home.file('sluice.toml')
  writeFileSync(
    file,
    '[[sender.relays]]\nname = "r"\nurl = "https://relay.example.net"\ncredential = "file:key"\n[[upstreams.nodes]]\nname = "n"\nrpc = "https://node.example.net"\ncredential = "file:key"\n',
  )
  const check = (credential: string) => {
    writeFileSync(home.file('key'), credential, { mode: 0o600 })
    return sluiceHere(['config', 'check', '--state', home.path, '--config', file])
  }
  const refused = await check('hunter2\n\n')
  assert.equal(refused.code, 78)
  for (const key of ['sender.relays.0.credential', 'upstreams.nodes.0.credential'])
    assert.match(refused.stderr, new RegExp(`${key}: the credential is not a valid header value`))
  assert.doesNotMatch(refused.stderr, /hunter2/)
  assert.equal((await check('hunter2\n')).code, 0)
})

test('config check and doctor of a process of one service check its section, and not those that it does not use', async () => {
  await using home = await temporaryFolder()
  const [file, state] = [home.file('sluice.toml'), home.path]
  writeFileSync(
    file,
    '[shreds]\nenabled = false\nlisten = "127.0.0.1:0"\n[execution]\nenabled = false\nring = "no-ring"\n[sender]\nenabled = false\n[[sender.relays]]\nname = "r"\nurl = "https://relay.example.net"\ncredential = "file:missing"\n',
  )
  const check = () => sluiceHere(['config', 'check', '--state', state, '--config', file])
  const doctor = async () => {
    const { stdout } = await sluiceHere(['doctor', '--json', '--state', state, '--config', file])
    return (JSON.parse(stdout) as { check: string }[]).map((finding) => finding.check)
  }
  const sections = { shreds: 'shred buffer', execution: 'ring', sender: 'tip accounts' } as const
  assert.equal((await check()).code, 0, 'serve does not use the section')
  const ofServe = await doctor()
  for (const each of Object.values(sections)) assert.ok(!ofServe.includes(each), each)

  const settings = await loadSettings({ process: { env: {} } }, { config: file, state })
  for (const part of ['shreds', 'execution', 'sender'] as const) {
    const methods = { settings: createSettingsReport(settings, {}, settings.endpoints, ['metrics', part]) }
    await using _process = await openControlSocket(home.file('control.sock'), { log: silentLogger, methods })
    const checked = await check()
    assert.equal(checked.code, part === 'sender' ? 78 : 0, checked.stderr)
    if (part === 'sender') assert.match(checked.stderr, /sender\.relays\.0\.credential: .*missing/)
    const found = await doctor()
    for (const [name, each] of Object.entries(sections)) assert.equal(found.includes(each), name === part, each)
  }
})

test('config check without a running process checks the secrets that the named process reads, and reports each that is missing', async () => {
  await using home = await temporaryFolder()
  const file = home.file('sluice.toml')
  writeFileSync(
    file,
    '[sender]\nenabled = false\n[[sender.relays]]\nname = "r"\nurl = "env:RELAY_URL"\ncredential = "file:relay"\n[indexer]\nenabled = false\nengine = "clickhouse"\n[indexer.clickhouse]\nurl = "http://192.0.2.1:8123"\nuser = "u"\npassword = "file:clickhouse"\n',
  )
  const check = (...words: string[]) =>
    sluiceHere(['config', 'check', '--state', home.path, '--config', file, ...words])
  for (const words of [[], ['--for', 'serve'], ['--for', 'gateway']]) {
    const { code, stderr } = await check(...words)
    assert.equal(code, 0, stderr)
    for (const key of ['sender.relays.0.url', 'sender.relays.0.credential', 'indexer.clickhouse.password'])
      assert.ok(stderr.includes(`not checked: ${key}:`), stderr)
  }
  const sender = await check('--for', 'sender')
  assert.equal(sender.code, 78)
  assert.match(sender.stderr, /sender\.relays\.0\.url: .*RELAY_URL/)
  assert.match(sender.stderr, /sender\.relays\.0\.credential: .*relay/)
  assert.doesNotMatch(sender.stderr, /clickhouse/)
  const indexer = await check('--for', 'indexer')
  assert.equal(indexer.code, 78)
  assert.match(indexer.stderr, /indexer\.clickhouse\.password: .*clickhouse/)
})

test('config check beside a running sluice serve checks the sections that the file turns on', async () => {
  await using home = await temporaryFolder()
  const [file, state] = [home.file('sluice.toml'), home.path]
  const relay = '[[sender.relays]]\nname = "r"\nurl = "https://relay.example.net"\ncredential = "file:missing"\n'
  writeFileSync(file, `[sender]\nenabled = false\n${relay}`)
  const settings = await loadSettings({ process: { env: {} } }, { config: file, state })
  const methods = { settings: createSettingsReport(settings, {}, settings.endpoints) }
  await using _process = await openControlSocket(home.file('control.sock'), { log: silentLogger, methods })
  writeFileSync(file, relay)
  const { code, stderr } = await sluiceHere(['config', 'check', '--state', state])
  assert.equal(code, 78)
  assert.match(stderr, /sender\.relays\.0\.credential: .*missing/)
})

test('config check of a pipe checks what comes out of it: it is read once', async () => {
  await using home = await temporaryFolder()
  const words = '"$0" --disable-warning=ExperimentalWarning "$1" config check --config /dev/stdin'
  const line = `echo 'nonsense = 1' | ${words}`
  const { status, stderr } = spawnSync('sh', ['-c', line, process.execPath, CLI], {
    cwd: home.path,
    env: { ...BARE_ENV, XDG_RUNTIME_DIR: '/dev/null' },
    encoding: 'utf8',
  })
  assert.equal(status, 78, stderr)
  assert.match(stderr, /nonsense: unknown key/)
})
