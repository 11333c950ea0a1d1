import assert from 'node:assert/strict'
import { chmodSync, closeSync, mkdirSync, openSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { CLI, temporaryFolder } from '../support/cli/run.ts'
import { serve } from '../support/process/serve.ts'

const BLOCK = Buffer.alloc(64 * 1024, 1)

type Health = { state: string; reasons: { part: string; reason: string }[] }
type Status = { ingest?: { head_slot?: number; tip_slot?: number }; stopped?: { reason: string } }

/** Appends until no byte fits. */
function fill(file: string): void {
  const filler = openSync(file, 'a')
  for (const piece of [BLOCK, BLOCK.subarray(0, 1)]) {
    try {
      for (let times = 0; times < 100_000; times++) writeSync(filler, piece)
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
    }
  }
  closeSync(filler)
}

test('on a full disk the indexer reports by name that it writes nothing and how far it is behind the chain, and catches up', async () => {
  await using home = await temporaryFolder()
  const state = home.file('.sluice')
  mkdirSync(state, { mode: 0o700 })
  const isolate = process.getuid?.() === 0 ? '-m' : '-Urm'
  const command = `'${process.execPath}' --disable-warning=ExperimentalWarning '${CLI}'`
  // A disk that only this process and its children see, and that ends with them.
  writeFileSync(
    home.file('small'),
    `#!/bin/sh\nexec unshare ${isolate} sh -c 'mount -t tmpfs -o size=96m,mode=0700 small "$0" && exec "$@"' '${state}' ${command} "$@"\n`,
  )
  chmodSync(home.file('small'), 0o700)
  await using running = serve({
    cwd: home.path,
    program: home.file('small'),
    args: ['--no-demo'],
    env: { SLUICE_LOCALNET__ENABLED: 'true', SLUICE_INDEXER__ENABLED: 'true' },
  })
  await running.line(/"msg":"started"/)
  const inside = `/proc/${running.child.pid}/root${state}`
  const status = async () => {
    const { stdout } = await sluiceHere(['indexer', 'status', '--json', '--state', inside])
    return (stdout === '' ? {} : JSON.parse(stdout)) as Status
  }
  const operator = `http://${await running.address('metrics')}`
  const reasons = async () => ((await (await fetch(`${operator}/readyz`)).json()) as Health).reasons
  const behind = async () => {
    const { ingest } = await status()
    return (ingest?.tip_slot ?? Number.NaN) - (ingest?.head_slot ?? Number.NaN)
  }
  await until('blocks are written', async () => (await behind()) <= 10)

  await until('it is reported with the folder and what continues', async () => {
    // The database gives space back when it drops merged parts, and goes on until that is used too.
    fill(`${inside}/filler`)
    const isReported = (await reasons()).some(
      ({ part, reason }) =>
        part === 'indexer' &&
        reason.includes(`writes no blocks: no space is left on ${state}/indexer`) &&
        /queries/.test(reason),
    )
    return isReported && (await status()).stopped?.reason === 'disk-full'
  })
  await until('the lag grows with the chain', async () => (await behind()) > 20)
  const shown = await sluiceHere(['indexer', 'status', '--state', inside])
  assert.match(shown.stdout, /behind +\d\d+ slots/)
  assert.match(shown.stdout, /stopped +since \S+: no space is left on the disk/)
  const metrics = await (await fetch(`${operator}/metrics`)).text()
  assert.match(metrics, /^sluice_indexer_stopped 1$/m)

  rmSync(`${inside}/filler`)
  await until('it has caught up', async () => (await behind()) <= 10, 120_000)
  await until('it is not reported any more', async () => !(await reasons()).some(({ part }) => part === 'indexer'))
})
