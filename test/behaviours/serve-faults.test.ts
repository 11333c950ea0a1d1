import assert from 'node:assert/strict'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const REPORT_PORTS = { NODE_OPTIONS: `--import=${join(import.meta.dirname, '../support/machine/report-ports.ts')}` }
const PORT = /a port is opened/

/** Each alone prevents the start, and is in a section that starts after other services have opened their ports. */
const FAULTY = `
[metrics]
listen = "127.0.0.1:0"
bearer = "file:no-such-bearer"
[bundle.grpc]
listen = "0.0.0.0:0"
[bundle.ws]
tls = { cert = "none.pem", key = "none.key" }
[sender]
listen = "127.0.0.1:18123"
[sender.quic]
enabled = true
identity = "no-identity.json"
[indexer]
enabled = true
listen = "127.0.0.1:18123"
[[upstreams.nodes]]
name = "a"
rpc = "http://127.0.0.1:1"
credential = "env:NOT_SET_ANYWHERE"
`

test('all faults of the configuration are reported at once, before a port is open or a file exists', async () => {
  await using home = await temporaryFolder()
  writeFileSync(home.file('sluice.toml'), FAULTY)
  const listens = Object.fromEntries(
    ['BUNDLE__GRPC', 'SENDER', 'INDEXER'].map((name) => [`SLUICE_${name}__LISTEN`, FROM_FILE[name] ?? '']),
  )
  await using running = serve({ cwd: home.path, env: { ...REPORT_PORTS, ...listens, SLUICE_INDEXER__ENABLED: 'true' } })
  assert.equal(await running.exit(), 78)
  const message = running.stderr()
  for (const fault of [
    /metrics\.bearer: .*no-such-bearer/,
    /upstreams\.nodes\.0\.credential: .*NOT_SET_ANYWHERE/,
    /bundle\.grpc: 0\.0\.0\.0:0 is a public address without TLS/,
    /bundle\.ws: tls\.cert cannot be read/,
    /sender\.listen and indexer\.listen have the same port/,
    /sender\.quic\.identity: the file no-identity\.json does not exist/,
  ])
    assert.match(message, fault)
  assert.match(message, /6 faults/)
  assert.doesNotMatch(message, PORT)
  assert.ok(!existsSync(home.file('.sluice')), 'no file was created')
})

/** Options that the test defaults would otherwise replace. */
const FROM_FILE: Readonly<Record<string, string>> = {
  BUNDLE__GRPC: '0.0.0.0:0',
  SENDER: '127.0.0.1:18123',
  INDEXER: '127.0.0.1:18123',
}

test('a single fault keeps its own code; disabled services are not checked', async () => {
  await using home = await temporaryFolder()
  writeFileSync(home.file('sluice.toml'), '[bundle.ws]\ntls = { cert = "none.pem", key = "none.key" }\n')
  {
    await using refused = serve({ cwd: home.path, args: ['--json'], env: REPORT_PORTS })
    assert.equal(await refused.exit(), 78)
    const line = refused.stderr().trim().split('\n').at(-1) ?? ''
    assert.equal((JSON.parse(line) as { code: string }).code, 'tls-invalid')
    assert.doesNotMatch(refused.stderr(), PORT)
  }
  writeFileSync(
    home.file('sluice.toml'),
    '[indexer]\nenabled = false\n[indexer.clickhouse]\nurl = "http://127.0.0.1:1"\nuser = "sluice"\npassword = "env:NOT_SET_ANYWHERE"\n',
  )
  await using running = serve({ cwd: home.path, env: REPORT_PORTS })
  await running.line(/"msg":"started"/)
  assert.match(running.stderr(), PORT, 'opened ports are detected')
  assert.equal(await running.stop(), 0)
})

/** `enabled` applies to `serve` only; secrets of a service in another process may be readable by that process only. */
const ALONE_FAULTY = `
[metrics]
bearer = "file:no-such-bearer"
[access.store]
engine = "postgres"
url = "postgres://sluice@127.0.0.1:1/sluice"
password = "file:no-such-password"
[bundle.ws]
tls = { cert = "none.pem", key = "none.key" }
[sender]
enabled = false
tls = { cert = "none.pem", key = "none.key" }
[sender.quic]
enabled = true
identity = "no-identity.json"
[execution]
enabled = false
tls = { cert = "none.pem", key = "none.key" }
[shreds]
enabled = false
[[upstreams.nodes]]
name = "a"
rpc = "http://127.0.0.1:1"
credential = "env:NOT_SET_ANYWHERE"
`

for (const { command, faults } of [
  { command: 'sender', faults: ['metrics.bearer', 'upstreams.nodes.0.credential', 'sender', 'sender.quic.identity'] },
  { command: 'execution', faults: ['metrics.bearer', 'access.store.password', 'execution'] },
  { command: 'shreds', faults: ['metrics.bearer', 'access.store.password', 'upstreams.nodes.0.credential'] },
] as const) {
  test(`sluice ${command} reports every fault of the sections it uses, and no others, before a port is open or a file exists`, async () => {
    await using home = await temporaryFolder()
    writeFileSync(home.file('sluice.toml'), ALONE_FAULTY)
    await using running = serve({ command, cwd: home.path, env: REPORT_PORTS })
    assert.equal(await running.exit(), 78)
    const message = running.stderr()
    const reported = [...message.matchAll(/^ +- ([a-z0-9.]+): /gim)].map(([, key]) => key)
    assert.deepEqual(new Set(reported), new Set(faults), message)
    assert.doesNotMatch(message, PORT)
    assert.ok(!existsSync(home.file('.sluice')), 'no file was created')
  })
}
