import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { CLI, type CliResult, temporaryFolder } from '../support/cli/run.ts'
import { startSteadyCalls } from '../support/gateway/steady-calls.ts'
import { serve } from '../support/process/serve.ts'
import { startFakeNode } from './fake-node.ts'
import { onBusyMachine } from './gateway-rig.ts'

/** The limit that row F8 states. */
const RECOVERED_MS = 5000
const BLOCK = Buffer.alloc(4096, 1)

type Health = { state: string; reasons: { part: string; reason: string }[] }

/** Serves with its state on a disk of 16 MiB that only this process and its children see, and that ends with them; without root, in a user namespace. */
function smallDiskProgram(state: string, seed: string): string {
  const isolate = process.getuid?.() === 0 ? '-m' : '-Urm'
  const node = `'${process.execPath}' --disable-warning=ExperimentalWarning '${CLI}'`
  return `#!/bin/sh
exec unshare ${isolate} sh -c 'mount -t tmpfs -o size=16m,mode=0700 small "$0" && cp -a "$1/." "$0" && shift && exec "$@"' '${state}' '${seed}' ${node} "$@"
`
}

/** A command of the operator in the mount namespace of that process. */
function sluiceWhere(pid: number, cwd: string, words: readonly string[]): Promise<CliResult> {
  const positions = process.getuid?.() === 0 ? ['-m'] : ['-U', '-m', '--preserve-credentials']
  const program = [process.execPath, '--disable-warning=ExperimentalWarning', CLI, ...words]
  return new Promise((resolve) => {
    execFile('nsenter', ['-t', `${pid}`, ...positions, `--wd=${cwd}`, ...program], (error, stdout, stderr) => {
      resolve({ code: error === null ? 0 : Number(error.code ?? -1), stdout, stderr })
    })
  })
}

/** Writes blocks until ENOSPC. */
function fillDisk(file: string): void {
  const filler = openSync(file, 'w')
  try {
    for (let blocks = 0; blocks < 10_000; blocks++) if (writeSync(filler, BLOCK) < BLOCK.length) return
    assert.fail('the disk is not small')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  } finally {
    closeSync(filler)
  }
}

test('F8: with a full disk the process keeps serving, reports degraded, and recovers by itself; no write is torn and no usage is lost', async (t) => {
  await using node = await startFakeNode()
  await using home = await temporaryFolder()
  const [state, seed, program] = [home.file('.sluice'), home.file('seed'), home.file('sluice-on-small-disk')]
  mkdirSync(state, { mode: 0o700 })
  writeFileSync(program, smallDiskProgram(state, seed))
  chmodSync(program, 0o700)
  writeFileSync(home.file('sluice.toml'), `[[upstreams.nodes]]\nname = "a"\nrpc = "${node.rpc}"\n`)
  const prepare = (...words: string[]) =>
    sluiceHere([...words, '--state', seed, '--config', home.file('sluice.toml'), '--print-token'])
  assert.equal((await sluiceHere(['customer', 'add', 'acme', '--state', seed])).code, 0)
  const made = await prepare('sub', 'create', 'prod', '--customer', 'acme', '--units-per-second', 'unlimited')
  assert.equal(made.code, 0, made.stderr)
  const token = /slc_[0-9A-Za-z]{38}/.exec(made.stdout)?.[0] ?? ''

  const env = { SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true' }
  await using running = serve({ cwd: home.path, program, env, args: ['--no-demo'], workers: 2 })
  await running.line(/"msg":"started"/)
  // The folder as that process sees it. Commands run in its namespace: SQLite would resolve this path to one outside.
  const inside = `/proc/${running.child.pid}/root${state}`
  const sluice = (...words: string[]) => sluiceWhere(running.child.pid ?? 0, home.path, words)
  const operator = `http://${await running.address('metrics')}`
  const health = async () => (await (await fetch(`${operator}/readyz`)).json()) as Health
  const url = `http://${await running.address('rpc')}`
  await using calls = startSteadyCalls(url, token)
  await until('there is load', () => calls.responded > 10)

  fillDisk(`${inside}/filler`)
  await until(
    '/readyz reports the disk',
    async () => (await health()).reasons.some(({ part }) => part === 'disk'),
    30_000,
  )
  assert.equal((await fetch(`${operator}/readyz`)).status, 200, 'a degraded process still serves')
  assert.equal((await health()).state, 'degraded')
  assert.match((await sluiceHere(['status', '--state', inside])).stdout, /degraded[\s\S]*disk/)
  const refused = await sluice('customer', 'add', 'late')
  assert.notEqual(refused.code, 0)
  assert.match(refused.stderr, /no space|full/)
  const duringFull = calls.responded
  await until('calls continue', () => calls.responded > duringFull + 20)

  rmSync(`${inside}/filler`)
  const fromMs = performance.now()
  await until('the state is ok again', async () => (await health()).state === 'ok', 60_000)
  const tookMs = performance.now() - fromMs
  t.diagnostic(`recovered after ${(tookMs / 1000).toFixed(1)} s (figure: 5), ${calls.responded} responses`)
  assert.ok(tookMs <= onBusyMachine(RECOVERED_MS, 30_000), `${tookMs} ms`)
  await calls.stop()
  assert.deepEqual(calls.failed, [])
  assert.equal((await sluice('customer', 'add', 'late')).code, 0)
  assert.equal((await sluice('audit', 'verify')).code, 0, 'no line is torn')
  const usedUnits = async () => {
    const { stdout } = await sluice('usage', '--sub', 'prod', '--json')
    return (JSON.parse(stdout) as { units: number }[]).reduce((sum, { units }) => sum + units, 0)
  }
  await until('every call is in the ledger', async () => (await usedUnits()) === calls.responded, 15_000)
  assert.equal(await running.stop(), 0)
})
