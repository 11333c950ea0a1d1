import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createSocket } from 'node:dgram'
import { chmodSync, copyFileSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { until } from '../../src/platform/process/test-wait.ts'
import { type FakeNode, startFakeNode } from '../faults/fake-node.ts'
import { type FaultProxy, startFaultProxy } from '../faults/fault-proxy.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { startPostgres } from '../support/machine/postgres.ts'
import { startRedis } from '../support/machine/redis.ts'
import { createAlertProof, metricsOf } from '../support/process/alert-proof.ts'
import { NOTHING, type Scrape, scrape } from '../support/process/alert-rules.ts'
import { type Served, serve } from '../support/process/serve.ts'

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'

/** How long other programs may keep the processors. */
const CALM_WITHIN_MS = 300_000

describe('alerts on the samples of a process with all services', () => {
  const proof = createAlertProof('alerts-of-services')
  const stack = new AsyncDisposableStack()
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  let nodes: [FakeNode, FakeNode]
  let database: FaultProxy
  let redis: Awaited<ReturnType<typeof startRedis>>
  let served: Served
  let second: Served
  let [token, smallToken] = ['', '']
  let calm: Scrape
  let url: string

  const sluice = (...words: string[]) =>
    sluiceHere([...words, '--state', home.file('.sluice'), '--config', home.file('sluice.toml')])
  const create = async (name: string, ...words: string[]) => {
    const made = await sluice('sub', 'create', name, '--customer', 'acme', '--print-token', ...words)
    assert.equal(made.code, 0, made.stderr)
    return /slc_[0-9A-Za-z]{38}/.exec(made.stdout)?.[0] ?? ''
  }
  const call = async (key: string) => {
    const headers = { 'content-type': 'application/json', 'x-token': key }
    const response = await fetch(`http://${await served.address('rpc')}`, { method: 'POST', headers, body: CALL })
    await response.text()
    return response.status
  }
  const now = async () => scrape(url)
  const value = async (series: string) => (await now()).values.get(series) ?? Number.NaN
  const start = (folder: string, config: string, env: Record<string, string> = {}) => {
    writeFileSync(home.file(`${folder}.toml`), config)
    const args = ['--no-demo', '--state', home.file(folder), '--config', home.file(`${folder}.toml`)]
    return stack.use(serve({ cwd: home.path, args, env: { SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true', ...env } }))
  }

  before(async () => {
    home = stack.use(await temporaryFolder())
    const postgres = stack.use(await startPostgres())
    database = stack.use(await startFaultProxy({ target: { host: '127.0.0.1', port: postgres.port } }))
    redis = stack.use(await startRedis())
    nodes = [stack.use(await startFakeNode(5000)), stack.use(await startFakeNode(5000))]
    execFileSync('openssl', [
      ...['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:P-256', '-nodes', '-days', '3'],
      ...['-subj', '/CN=localhost', '-keyout', home.file('key.pem'), '-out', home.file('cert.pem')],
    ])
    chmodSync(home.file('key.pem'), 0o600)
    const config = (port: number, tls: string) => `[access.store]
engine = "postgres"
url = "${postgres.url.replace(`:${postgres.port}/`, `:${port}/`)}"
[access.quota.shared]
url = "${redis.url}"
[shreds]
sources = ["192.0.2.1"]
[bundle.grpc]
listen = "127.0.0.1:0"
${tls}
${nodes.map(({ rpc }, at) => `[[upstreams.nodes]]\nname = "node-${at}"\nrpc = "${rpc}"`).join('\n')}
`
    const ownConfig = config(
      database.port,
      `tls = { cert = "${home.file('cert.pem')}", key = "${home.file('key.pem')}" }`,
    )
    writeFileSync(home.file('sluice.toml'), ownConfig)
    assert.equal((await sluice('customer', 'add', 'acme')).code, 0)
    token = await create('prod', '--units-per-second', 'unlimited')
    smallToken = await create('small', '--units-per-second', '1', '--sends-per-second', '1', '--batch-items', '5')
    const env = {
      SLUICE_INDEXER__ENABLED: 'true',
      SLUICE_EXECUTION__ENABLED: 'true',
      // With real nodes the simulated chain runs only on request.
      SLUICE_EXECUTION__SIMULATED: 'true',
    }
    served = start('.sluice', ownConfig, env)
    await served.line(/"msg":"started"/)
    // A ring that nobody writes any more.
    copyFileSync(home.file('.sluice/ring/monad-exec-events'), home.file('still-ring'))
    second = start('second', config(postgres.port, ''), {
      SLUICE_EXECUTION__ENABLED: 'true',
      SLUICE_EXECUTION__RING: home.file('still-ring'),
    })
    await second.line(/"msg":"started"/)
    url = await metricsOf(served)
    assert.equal(await call(token), 200)
    await until('the nodes are known', async () => (await value('sluice_upstreams_slot{upstream="node-1"}')) === 5000)
    await until('usage is written', async () => (await value('sluice_access_usage_waiting_rows')) === 0)
    calm = await now()
  })
  after(() => stack.disposeAsync())

  test('an event ring without events', async () => {
    const at = `http://${await second.address('execution')}/metrics`
    const age = async () => (await scrape(at)).values.get('sluice_execution_last_event_age_seconds') ?? 0
    await until('the age is above ten seconds', async () => (await age().catch(() => 0)) > 10)
    proof.expect('SluiceRingSilent', [{ before: NOTHING, after: await scrape(at) }])
  })

  test('tokens and limits', async () => {
    // A test vector of the token format, never issued.
    const wrong = 'slc_000000000000000000000000000000000JcP3N'
    const from = await now()
    await Promise.all(Array.from({ length: 120 }, () => call(wrong)))
    await Promise.all(Array.from({ length: 60 }, () => call(smallToken)))
    const to = await now()
    proof.expect('SluiceTokensRefused', [{ before: from, after: to, continues: true }])
    proof.expect('SluiceRefusalsRising', [{ before: from, after: to, continues: true }])
  })

  test('a certificate that ends', async () => {
    const ends = calm.values.get('sluice_tls_not_after_timestamp_seconds{listener="grpc",door="grpc"}') ?? 0
    const left = ends - Date.now() / 1000
    assert.ok(left > 0 && left < 3 * 86_400)
    // The rules run at the time 0 of promtool.
    const shifted = (seconds: number): Scrape => ({
      ...calm,
      values: new Map([['sluice_tls_not_after_timestamp_seconds{listener="grpc",door="grpc"}', seconds]]),
    })
    proof.expect('SluiceCertificateEnds', [{ before: shifted(left + 30 * 86_400), after: shifted(left) }])
  })

  test('subscriptions that end', async () => {
    await create('short', '--until', '3d')
    await until('it is counted', async () => (await value('sluice_access_subscriptions_ending_week')) === 1)
    proof.expect('SluiceSubscriptionsEnding', [{ before: calm, after: await now() }])
    assert.match((await sluice('status')).stdout, /ending +short \(acme\) on /)
    const listed = await sluice('sub', 'list', '--ending', '7d')
    assert.match(listed.stdout, /short/)
    assert.doesNotMatch(listed.stdout, /prod/)
    assert.match((await sluice('sub', 'list', '--ending', '1d')).stderr, /no subscription ends within 1d/)
    assert.match((await sluice('sub', 'list', '--ending', 'soon')).stderr, /not a time span/)
  })

  test('the indexer behind the tip, restarting, stopped', async () => {
    proof.expect('SluiceIndexerBehind', [{ before: NOTHING, after: calm }])
    assert.equal(calm.values.get('sluice_indexer_tip_slot'), 5000)
    const facts = (await sluice('indexer', 'status')).stdout
    assert.match(facts, /tip +5000/)
    assert.match(facts, /behind +no block is written yet/)
    const from = await now()
    let pid: number | undefined
    for (let kill = 0; kill < 3; kill++) {
      await until('another database process runs', async () => {
        const status = await sluice('indexer', 'status', '--json')
        // The process may be too busy to respond in time.
        if (status.code !== 0) return false
        const { store_pid: found = pid } = JSON.parse(status.stdout) as { store_pid?: number }
        const isNew = found !== pid && found !== undefined
        if (isNew) pid = found
        return isNew
      })
      process.kill(pid as number, 'SIGKILL')
    }
    await until('its end is counted', async () => (await value('sluice_indexer_store_restarts_total')) >= 3)
    const to = await now()
    proof.expect('SluiceIndexerRestarting', [{ before: from, after: to }], { at: 8 })
    proof.expect('SluiceIndexerStopped', [{ before: from, after: to }])
    await until('the status names it', async () =>
      /indexer: writes no blocks: the database fails/.test((await sluice('status')).stdout),
    )
  })

  test('shreds from a source that is not allowed', async () => {
    const [host = '', port = ''] = (await served.address('shreds')).split(':')
    const socket = createSocket('udp4').unref()
    await until('the alarm is raised', async () => {
      // The alarm needs 100 packets in a second.
      for (let sent = 0; sent < 100; sent++) socket.send(Buffer.alloc(100), Number(port), host)
      return (await value('sluice_shreds_alarm{alarm="refused-source"}')) === 1
    })
    socket.close()
    proof.expect('SluiceShredAlarm', [{ before: calm, after: await now() }])
  })

  test('slow responses, nodes behind, failing and gone', async () => {
    const from = await now()
    const slow = Promise.withResolvers<void>()
    for (const node of nodes) node.hold = slow.promise
    const calls = Array.from({ length: 3 }, () => call(token))
    await pause(2700)
    slow.resolve()
    assert.deepEqual(await Promise.all(calls), [200, 200, 200])
    for (const node of nodes) node.hold = undefined
    proof.expect('SluiceResponsesSlow', [{ before: from, after: await now(), continues: true }])

    nodes[0].slot = 6000
    await until('a node is behind', async () => (await value('sluice_upstreams_lag_seconds{upstream="node-1"}')) > 20)
    proof.expect('SluiceUpstreamBehind', [{ before: calm, after: await now() }])
    nodes[0].shredSlot = 9000
    nodes[1].shredSlot = 9000
    await until('all are behind', async () => (await value('sluice_upstreams_all_behind')) === 1)
    proof.expect('SluiceAllUpstreamsBehind', [{ before: calm, after: await now() }])

    for (const node of nodes) node.fault = { status: 500, body: 'down' }
    await until('a node fails', async () => {
      await call(token)
      return (await value('sluice_upstreams_state{upstream="node-0",state="failing"}')) === 1
    })
    proof.expect('SluiceUpstreamFailing', [{ before: calm, after: await now() }])
    const own = stack.use(await startFakeNode(5000))
    const ownToken = await create('own', '--products', 'dedicated-node')
    assert.equal((await sluice('node', 'add', 'own-node', '--rpc', own.rpc)).code, 0)
    assert.equal((await sluice('node', 'assign', 'own-node', 'own')).code, 0)
    await until('it is used', async () => (await call(ownToken)) === 200)
    own.fault = { status: 500, body: 'down' }
    await until('the dedicated node fails', async () => {
      await call(ownToken)
      return (await value('sluice_upstreams_dedicated_failing')) === 1
    })
    proof.expect('SluiceDedicatedNodeFailing', [{ before: calm, after: await now() }])
    await until('calls are refused', async () => {
      await call(token)
      return (await value('sluice_upstreams_no_upstream_total')) > 1
    })
    proof.expect('SluiceNoUpstream', [{ before: calm, after: await now(), continues: true }])
    // The indexer has connections of its own to the nodes, and notices it by itself.
    await until('the tip is unknown', async () =>
      /tip +unknown[^\n]*\n *behind +unknown/.test((await sluice('indexer', 'status')).stdout),
    )
    assert.ok(Number.isNaN(await value('sluice_indexer_tip_slot')))
    for (const node of nodes) node.fault = undefined
  })

  test('the shared quota and the store away', async () => {
    const from = await now()
    await redis.kill()
    await until('the quota is local', async () => (await value('sluice_access_quota_shared_up')) === 0)
    await until('a sync has failed', async () => (await value('sluice_access_quota_syncs_total{result="failed"}')) > 0)
    proof.expect('SluiceQuotaLocal', [{ before: from, after: await now(), continues: true }])

    await database.disable()
    const other = await metricsOf(second)
    const direct = ['--state', home.file('second'), '--config', home.file('second.toml')]
    assert.equal((await sluiceHere(['customer', 'add', 'late', ...direct])).code, 0)
    const revision = (scraped: Scrape) => scraped.values.get('sluice_access_snapshot_revision') ?? 0
    await until('one process is ahead', async () => revision(await scrape(other)) > revision(await now()))
    const otherNow = await scrape(other)
    proof.expect('SluiceStoreNotFollowed', [
      { before: calm, after: await now() },
      { instance: 'b', before: calm, after: otherNow },
    ])
    await until('usage waits on the disk', async () => {
      await call(token)
      return (await value('sluice_access_usage_spooled_rows')) > 0
    })
    proof.expect('SluiceUsageWaits', [{ before: calm, after: await now() }])
  })

  test('a process that stands still, and one that is gone', async () => {
    const series = 'sluice_process_event_loop_delay_seconds{stat="p99"}'
    let from = await now()
    const isCalm = async () => {
      from = await now()
      return (from.values.get(series) ?? 0) < 0.25
    }
    await until('the machine leaves it enough of its processors', isCalm, CALM_WITHIN_MS)
    await until('the delay is measured', async () => {
      for (let times = 0; times < 8; times++) {
        served.child.kill('SIGSTOP')
        await pause(350)
        served.child.kill('SIGCONT')
        await pause(50)
      }
      return (await value(series)) > 0.25
    })
    proof.expect('SluiceEventLoopSlow', [{ before: from, after: await now() }])
    await served.stop('SIGKILL')
    const isUp = await fetch(url).then(
      () => 1,
      () => 0,
    )
    const up = (is: number): Scrape => ({ values: new Map([['up', is]]), counters: new Set() })
    proof.expect('SluiceDown', [{ before: up(1), after: up(isUp) }])
  })

  test('all were driven', () => proof.expectAll())
})
