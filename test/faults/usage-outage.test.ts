import assert from 'node:assert/strict'
import { existsSync, statSync, writeFileSync } from 'node:fs'
import { after, before, describe, test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { type temporaryFolder as openFolder, temporaryFolder } from '../support/cli/run.ts'
import { startPostgres, type TestPostgres } from '../support/machine/postgres.ts'
import { type Served, serve } from '../support/process/serve.ts'
import { startFakeNode } from './fake-node.ts'
import { startFaultProxy } from './fault-proxy.ts'

type Folder = Awaited<ReturnType<typeof openFolder>>

const CALL = '{"jsonrpc":"2.0","id":1,"method":"getBalance","params":[]}'
const DEADLINE_MS = 15_000

let database: TestPostgres
let databases = 0

/** A gateway with its customers in a database of its own behind a proxy, one subscription, and a count of its responses. */
async function openOutage() {
  const stack = new AsyncDisposableStack()
  const own = await database.createDatabase(`outage_${++databases}`)
  const proxy = stack.use(await startFaultProxy({ target: { host: '127.0.0.1', port: database.port } }))
  const node = stack.use(await startFakeNode())
  const home: Folder = stack.use(await temporaryFolder())
  const url = own.replace(`:${database.port}/`, `:${proxy.port}/`)
  writeFileSync(
    home.file('sluice.toml'),
    `[access.store]\nengine = "postgres"\nurl = "${url}"\n[drain]\ndeadlineMs = ${DEADLINE_MS}\n[[upstreams.nodes]]\nname = "a"\nrpc = "${node.rpc}"\n`,
  )
  const state = home.file('.sluice')
  const sluice = (...words: string[]) => sluiceHere([...words, '--state', state, '--config', home.file('sluice.toml')])
  assert.equal((await sluice('customer', 'add', 'acme')).code, 0)
  const made = await sluice(
    ...['sub', 'create', 'prod', '--customer', 'acme', '--units-per-second', 'unlimited', '--print-token'],
  )
  assert.equal(made.code, 0, made.stderr)
  const token = /slc_[0-9A-Za-z]{38}/.exec(made.stdout)?.[0] ?? ''
  let responded = 0

  const rig = {
    state,
    proxy,
    sluice,
    async start(): Promise<Served> {
      const served = serve({
        cwd: home.path,
        args: ['--no-demo'],
        env: { SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true' },
        workers: 2,
      })
      await served.line(/"msg":"started"/)
      return served
    },
    async call(served: Served, times: number): Promise<void> {
      const headers = { 'content-type': 'application/json', 'x-token': token }
      const rpc = `http://${await served.address('rpc')}`
      for (let at = 0; at < times; at++) {
        const response = await fetch(rpc, { method: 'POST', headers, body: CALL })
        assert.equal(response.status, 200)
        await response.text()
        responded += 1
      }
    },
    metric: async (served: Served, name: string) => {
      const text = await (await fetch(`http://${await served.address('metrics')}/metrics`)).text()
      return Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1])
    },
    /** Waits until the usage of all calls so far is in the store or on the disk. */
    async safe(served: Served): Promise<void> {
      const failures = () => rig.metric(served, 'sluice_access_usage_failures_total')
      // One attempt may have begun before the last call; the next one has it, and is followed by a save.
      const from = await failures()
      await until('two writes have failed', async () => (await failures()) >= from + 2)
      const spooled = () => rig.metric(served, 'sluice_access_usage_spooled_rows')
      await until('the save after the second has ended', async () => (await spooled()) > 0)
    },
    async bookedUnits(): Promise<number> {
      const { stdout } = await sluice('usage', '--sub', 'prod', '--json')
      return (JSON.parse(stdout) as { units: number }[]).reduce((sum, { units }) => sum + units, 0)
    },
    /** Starts again with the database, and checks that each call is in the ledger once. */
    async checkNextStart(): Promise<void> {
      const next = await rig.start()
      try {
        await next.line(/usage of the last run is written to the store/)
        assert.equal(await rig.bookedUnits(), responded)
        await rig.call(next, 3)
        await until('new usage follows', async () => (await rig.bookedUnits()) === responded)
        assert.equal(await rig.metric(next, 'sluice_access_usage_spooled_rows'), 0)
      } finally {
        assert.equal(await next.stop(), 0)
      }
      // Nothing is booked twice by a further start.
      const again = await rig.start()
      assert.equal(await rig.bookedUnits(), responded)
      assert.equal(await again.stop(), 0)
    },
    [Symbol.asyncDispose]: () => stack.disposeAsync(),
  }
  return rig
}

describe('usage in an outage of PostgreSQL', () => {
  before(async () => {
    database = await startPostgres()
  })
  after(() => database[Symbol.asyncDispose]())

  test('sluice drain keeps it on the disk, says so, and the next start writes it once', async () => {
    await using rig = await openOutage()
    const served = await rig.start()
    await rig.call(served, 20)
    await rig.proxy.disable()
    await rig.call(served, 30)
    await rig.safe(served)
    for (const name of ['usage-spool.a', 'usage-spool.b'])
      assert.equal(statSync(`${rig.state}/${name}`).mode & 0o777, 0o600)
    await until('the status names it', async () => /kept in \S*usage-spool/.test((await rig.sluice('status')).stdout))
    assert.match(
      (await rig.sluice('status')).stdout,
      /usage +\d+ rows wait for the store, \d+ of them kept on the disk/,
    )

    const drained = await rig.sluice('drain', '--yes')
    assert.equal(drained.code, 0, drained.stderr)
    const printed = drained.stdout + drained.stderr
    assert.match(printed, /stopped; the store could not be written, so \d+ usage rows are kept in \S+usage-spool/)
    assert.doesNotMatch(printed, /^stopped$/m)
    assert.equal(await served.exit(), 0)
    assert.match(served.stdout(), /usage is kept on the disk and is written to the store at the next start/)

    await rig.proxy.enable()
    await rig.checkNextStart()
  })

  test('a store that stops responding does not hold SIGTERM beyond its deadline, and nothing is lost', async () => {
    await using rig = await openOutage()
    const served = await rig.start()
    await rig.call(served, 20)
    rig.proxy.add({ type: 'timeout', timeoutMs: 0 })
    await rig.call(served, 30)
    const fromMs = performance.now()
    const code = await served.stop('SIGTERM')
    const tookMs = performance.now() - fromMs
    assert.ok(tookMs < DEADLINE_MS + 5000, `${tookMs} ms`)
    assert.equal(code, 0, served.stdout())
    rig.proxy.clear()
    rig.proxy.resetConnections()
    await rig.checkNextStart()
  })

  test('a kill during the outage loses nothing that was counted before the last save', async () => {
    await using rig = await openOutage()
    const served = await rig.start()
    await rig.call(served, 20)
    await rig.proxy.disable()
    await rig.call(served, 30)
    await rig.safe(served)
    // Two processes never share the files.
    const second = serve({ cwd: rig.state.replace(/\/\.sluice$/, ''), args: ['--no-demo'] })
    assert.equal(await second.exit(), 75)
    assert.match(second.stderr() + second.stdout(), /already runs on the state folder/)
    await served.stop('SIGKILL')
    await rig.proxy.enable()
    await rig.checkNextStart()
    assert.ok(existsSync(`${rig.state}/usage-spool.a`))
  })
})
