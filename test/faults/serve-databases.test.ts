import assert from 'node:assert/strict'
import { chmodSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { startSteadyCalls } from '../support/gateway/steady-calls.ts'
import { CLICKHOUSE_ADMIN, startClickHouse } from '../support/indexer/clickhouse.ts'
import { startRedis } from '../support/machine/redis.ts'
import { serve } from '../support/process/serve.ts'
import { startFakeNode } from './fake-node.ts'
import { onBusyMachine } from './gateway-rig.ts'

/** The limit that row F16 states. */
const REFUSED_WITHIN_MS = 1000

type Health = { state: string; reasons: { part: string }[] }

test('F16: with ClickHouse and Redis down, only the indexer responds with 503, within a second; other services are not affected', async (t) => {
  await using clickhouse = await startClickHouse()
  await using redis = await startRedis()
  await using node = await startFakeNode()
  await using home = await temporaryFolder()
  writeFileSync(home.file('clickhouse'), CLICKHOUSE_ADMIN.password)
  chmodSync(home.file('clickhouse'), 0o600)
  writeFileSync(
    home.file('sluice.toml'),
    `[access.quota.shared]
url = "${redis.url}"
[[upstreams.nodes]]
name = "a"
rpc = "${node.rpc}"
[indexer]
engine = "clickhouse"
[indexer.clickhouse]
url = "${clickhouse.url}"
user = "${CLICKHOUSE_ADMIN.user}"
password = "file:clickhouse"
`,
  )
  // Created without a request to the server: this old version has no accounts in SQL, so its operator adds them to its file.
  writeFileSync(home.file('embedded.toml'), '')
  const sluice = (...words: string[]) =>
    sluiceHere([...words, '--state', home.file('.sluice'), '--config', home.file('embedded.toml')])
  assert.equal((await sluice('customer', 'add', 'acme')).code, 0)
  const words = [
    '--customer',
    'acme',
    '--plan',
    'professional',
    '--products',
    'bundle,indexer',
    '--print-token',
    '--json',
  ]
  const made = await sluice('sub', 'create', 'prod', ...words)
  assert.equal(made.code, 0, made.stderr)
  const token = /slc_[0-9A-Za-z]{38}/.exec(made.stdout)?.[0] ?? ''
  const { indexer: login } = JSON.parse(made.stdout) as { indexer: { username: string; password: string } }
  await clickhouse.setReaders([{ user: login.username, password: login.password }])

  const env = {
    SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true',
    SLUICE_INDEXER__ENABLED: 'true',
    SLUICE_EXECUTION__ENABLED: 'true',
    SLUICE_EXECUTION__SIMULATED: 'true',
  }
  await using running = serve({ cwd: home.path, args: ['--no-demo'], env, workers: 2 })
  await running.line(/"msg":"started"/)
  const at = async (service: string, path: string) => `http://${await running.address(service)}${path}`
  const basic = Buffer.from(`${login.username}:${login.password}`).toString('base64')
  const query = async () => {
    const fromMs = performance.now()
    const headers = { 'x-token': token, authorization: `Basic ${basic}` }
    const response = await fetch(await at('indexer', '/'), { method: 'POST', headers, body: 'SELECT 1' })
    const text = await response.text()
    return {
      status: response.status,
      text,
      retryAfter: response.headers.get('retry-after'),
      ms: performance.now() - fromMs,
    }
  }
  const health = async () => (await (await fetch(await at('metrics', '/readyz'))).json()) as Health
  await until('the indexer responds', async () => (await query()).text === '1\n', 30_000)
  await using calls = startSteadyCalls(await at('rpc', ''), token, 20)
  const others = [await at('sender', '/ping'), await at('execution', '/v1/status'), await at('metrics', '/readyz')]

  await Promise.all([clickhouse.kill(), redis.kill()])
  const waitsMs: number[] = []
  for (let round = 0; round < 10; round++) {
    const { status, text, retryAfter, ms } = await query()
    assert.equal(status, 503, text)
    assert.match(text, /^Code: 209\. DB::Exception: /)
    assert.ok(Number(retryAfter) >= 1)
    waitsMs.push(ms)
    for (const url of others) assert.equal((await fetch(url)).status, 200, url)
  }
  t.diagnostic(`503 within ${Math.max(...waitsMs).toFixed(0)} ms (figure: ${REFUSED_WITHIN_MS})`)
  assert.ok(Math.max(...waitsMs) <= onBusyMachine(REFUSED_WITHIN_MS, 5000), waitsMs.join(' '))
  await until('/readyz reports that quotas are local', async () => {
    const { reasons } = await health()
    return reasons.some(({ part }) => part === 'quota')
  })
  const before = calls.responded
  await until('calls continue', () => calls.responded > before + 10)

  await Promise.all([clickhouse.start(), redis.start()])
  await until('the indexer responds again', async () => (await query()).text === '1\n', 30_000)
  await until(
    'the quota is shared again',
    async () => !(await health()).reasons.some(({ part }) => part === 'quota'),
    30_000,
  )
  await calls.stop()
  assert.deepEqual(calls.failed, [])
})
