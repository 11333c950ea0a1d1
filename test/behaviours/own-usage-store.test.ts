import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import pg from 'pg'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { FREE_PLAN } from '../support/gateway/served.ts'
import { startPostgres } from '../support/machine/postgres.ts'
import { serve } from '../support/process/serve.ts'

const REPORTS = 30

test('while the usage table is locked, reports are 503 with Retry-After, the account and calls are served; then all is there', async () => {
  await using database = await startPostgres()
  await using node = await startFakeNode()
  await using home = await temporaryFolder()
  const configFile = home.file('sluice.toml')
  const nodes = `[[upstreams.nodes]]\nname = "a"\nrpc = "${node.rpc}"\n`
  writeFileSync(configFile, `[access.store]\nengine = "postgres"\nurl = "${database.url}"\n${nodes}${FREE_PLAN}`)
  const sluice = async (...words: string[]) => {
    const done = await sluiceHere([...words, '--state', home.file('.sluice'), '--config', configFile], {})
    assert.equal(done.code, 0, done.stderr)
    return done.stdout
  }
  await sluice('customer', 'add', 'acme')
  const subscribe = async (name: string) => {
    const made = await sluice('sub', 'create', name, '--customer', 'acme', '--plan', 'free', '--print-token')
    return /slc_[0-9A-Za-z]{38}/.exec(made)?.[0] ?? ''
  }
  const token = await subscribe('prod')
  // With a rate of pages of its own.
  const other = await subscribe('other')
  const env = { SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true' }
  await using running = serve({ command: 'gateway', cwd: home.path, workers: 2, env })
  await running.line(/"msg":"started"/)
  const url = `http://${await running.address('rpc')}`
  const headers = { 'x-token': token, 'content-type': 'application/json' }
  const body = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
  const call = async () => (await fetch(url, { method: 'POST', headers, body })).status
  const usage = (given = token) => fetch(`${url}/v1/usage?by=total`, { headers: { 'x-token': given } })
  const calls = async () => ((await (await usage()).json()) as { totals?: { calls: number } }).totals?.calls
  assert.equal(await call(), 200)
  await until('the call is counted', async () => (await calls()) === 1)

  const locker = new pg.Client({ connectionString: database.url })
  // The server ends it where the test fails.
  locker.on('error', () => {})
  await locker.connect()
  await locker.query('BEGIN; LOCK TABLE usage_hours IN ACCESS EXCLUSIVE MODE')
  const refused = await Promise.all(Array.from({ length: REPORTS }, () => usage(other)))
  const seen = new Set<string>()
  for (const response of refused) {
    assert.deepEqual([response.status, response.headers.get('retry-after')], [503, '2'])
    const { error, limit = '' } = (await response.json()) as { error: string; limit?: string }
    seen.add(`${error} ${limit}`)
  }
  assert.deepEqual([...seen].toSorted(), ['overloaded ', 'overloaded accountReports'])
  assert.equal(await call(), 200, 'calls are not affected')
  const account = (await (await fetch(`${url}/v1/account`, { headers: { 'x-token': other } })).json()) as Record<
    string,
    unknown
  >
  assert.deepEqual([account['subscription'], account['tokens']], ['other', null])
  await locker.query('ROLLBACK')
  await locker.end()
  await until('both calls are counted', async () => (await calls()) === 2)
})
