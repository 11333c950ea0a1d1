import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluice } from '../support/cli/run.ts'
import { startServedGateway } from '../support/gateway/served.ts'
import { startSteadyCalls } from '../support/gateway/steady-calls.ts'
import { serve } from '../support/process/serve.ts'
import { startFakeNode } from './fake-node.ts'
import { callGateway, onBusyMachine } from './gateway-rig.ts'

/** The store of a serving process: locked by another process, and left by a kill. */

/** How long a command may wait for the store, and how long a process may take to be ready: the limits that rows F7 and F12 state. */
const COMMAND_WAIT_MS = 5000
const READY_MS = 3000

/** Holds the write lock of a SQLite file in a process of its own, as a backup tool or a forgotten shell would. */
async function usingLock<T>(file: string, work: () => Promise<T>): Promise<T> {
  const program = `
    import { DatabaseSync } from 'node:sqlite'
    const database = new DatabaseSync(process.argv[1])
    database.exec('BEGIN IMMEDIATE')
    console.log('locked')
    process.stdin.on('end', () => { database.exec('ROLLBACK'); database.close() }).resume()`
  const words = ['--disable-warning=ExperimentalWarning', '--input-type=module', '-e', program, '--', file]
  const child = spawn(process.execPath, words, { stdio: ['pipe', 'pipe', 'inherit'] })
  const gone = once(child, 'exit')
  await Promise.race([once(child.stdout, 'data'), gone.then(() => assert.fail('the store could not be locked'))])
  try {
    return await work()
  } finally {
    child.stdin.end()
    await gone
  }
}

test('F7: while the store is locked no call fails; a command waits at most 5 s and ends with 75', async (t) => {
  await using node = await startFakeNode()
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
  const home = dirname(gateway.configFile)
  const addCustomer = async () => {
    const fromMs = performance.now()
    const { code, stderr } = await sluice(['customer', 'add', 'late'], { cwd: home })
    return { code, stderr, tookMs: performance.now() - fromMs }
  }
  const usedUnits = async () => {
    const { stdout } = await gateway.sluice('usage', '--sub', 'acme-prod', '--json')
    return (JSON.parse(stdout) as { units: number }[]).reduce((sum, { units }) => sum + units, 0)
  }
  await using calls = startSteadyCalls(gateway.url, gateway.token)
  const locked = await usingLock(join(home, '.sluice/access.db'), async () => {
    const before = calls.responded
    const tried = await addCustomer()
    assert.ok(calls.responded > before, 'customers were served meanwhile')
    return tried
  })
  assert.equal(locked.code, 75, locked.stderr)
  assert.match(locked.stderr, /locked|busy/)
  const free = await addCustomer()
  assert.equal(free.code, 0, 'the lock is released')
  // Both took as long to start.
  const waitedMs = locked.tookMs - free.tookMs
  t.diagnostic(`the command waited about ${(waitedMs / 1000).toFixed(1)} s (figure: 5)`)
  assert.ok(waitedMs <= onBusyMachine(COMMAND_WAIT_MS + 500, 30_000), `${waitedMs} ms`)
  await calls.stop()
  assert.deepEqual(calls.failed, [])
  await until('every call is in the ledger', async () => (await usedUnits()) === calls.responded, 15_000)
})

test('F12: killed under load, a process is ready again within 3 s with every acknowledged change', async (t) => {
  await using node = await startFakeNode()
  await using gateway = await startServedGateway([{ name: 'a', rpc: node.rpc }])
  const home = dirname(gateway.configFile)
  await using calls = startSteadyCalls(gateway.url, gateway.token)
  const made: string[] = []
  for (let at = 0; at < 5; at++) {
    assert.equal((await gateway.sluice('customer', 'add', `made-${at}`)).code, 0)
    made.push(`made-${at}`)
  }
  await until('there is load', () => calls.responded > 20)
  await gateway.running.stop('SIGKILL')
  await calls.stop()

  const fromMs = performance.now()
  await using again = serve({ cwd: home, args: ['--no-demo'], env: { SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true' } })
  const operator = `http://${await again.address('metrics')}`
  await until('it is ready', async () => (await fetch(`${operator}/readyz`)).status === 200, 60_000)
  const tookMs = performance.now() - fromMs
  t.diagnostic(`ready after ${(tookMs / 1000).toFixed(1)} s (figure: 3)`)
  assert.ok(tookMs <= onBusyMachine(READY_MS, 60_000), `${tookMs} ms`)
  const url = `http://${await again.address('rpc')}`
  await until('it serves', async () => (await callGateway(url, gateway.token, { method: 'getBalance' })).status === 200)
  const { stdout } = await gateway.sluice('customer', 'list', '--json')
  const names = (JSON.parse(stdout) as { name: string }[]).map(({ name }) => name)
  assert.deepEqual(names.toSorted(), ['acme', ...made].toSorted())
  assert.equal((await gateway.sluice('audit', 'verify')).code, 0)
})
