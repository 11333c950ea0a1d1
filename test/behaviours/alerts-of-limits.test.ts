import assert from 'node:assert/strict'
import { chmodSync, mkdirSync, openSync, writeFileSync, writeSync } from 'node:fs'
import { describe, test } from 'node:test'
import { until } from '../../src/platform/process/test-wait.ts'
import { startFakeNode } from '../faults/fake-node.ts'
import { CLI, temporaryFolder } from '../support/cli/run.ts'
import { createAlertProof, metricsOf } from '../support/process/alert-proof.ts'
import { NOTHING, type Scrape, scrape } from '../support/process/alert-rules.ts'
import { serve } from '../support/process/serve.ts'

describe('alerts on the samples of processes at a limit', () => {
  const proof = createAlertProof('alerts-of-limits')
  test('memory, descriptors, restarts', async () => {
    await using home = await temporaryFolder()
    writeFileSync(home.file('sluice.toml'), '')
    const first = serve({ cwd: home.path, args: ['--no-demo'], env: { SLUICE_MEMORY__RESIDENT_BYTES_MAX: '67108864' } })
    await first.line(/"msg":"started"/)
    const before_ = await scrape(await metricsOf(first))
    await until('connections are refused', async () => {
      await fetch(`http://${await first.address('rpc')}`).catch(() => {})
      const { values } = await scrape(await metricsOf(first))
      return (
        (values.get('sluice_process_connections_refused_total{listener="rpc",reason="memory",door="rpc"}') ?? 0) > 0
      )
    })
    const after_ = await scrape(await metricsOf(first))
    proof.expect('SluiceMemoryFull', [{ before: before_, after: after_ }], { at: 8 })
    await first.stop()

    const open = after_.values.get('sluice_process_open_descriptors') ?? 0
    const program = home.file('limited')
    const node = `'${process.execPath}' --disable-warning=ExperimentalWarning '${CLI}'`
    writeFileSync(program, `#!/bin/sh\nulimit -n ${Math.ceil(open / 0.9)}\nexec ${node} "$@"\n`)
    chmodSync(program, 0o700)
    const started = [after_]
    for (let times = 0; times < 3; times++) {
      const limited = serve({ cwd: home.path, args: ['--no-demo'], program })
      await limited.line(/"msg":"started"/)
      started.push(await scrape(await metricsOf(limited)))
      await limited.stop()
    }
    proof.expect('SluiceDescriptorsShort', [{ before: before_, after: started.at(-1) ?? NOTHING }])

    // The start times of four processes, one after the other, on one instance.
    const START = 'sluice_process_start_timestamp_seconds'
    const times = started.map(({ values }) => values.get(START) ?? 0)
    assert.equal(new Set(times).size, 4, `${times.join(' ')}`)
    const at = (time: number): Scrape => ({ values: new Map([[START, time]]), counters: new Set([START]) })
    proof.expect('SluiceRestarting', [{ before: at(times[0] ?? 0), after: at(times[1] ?? 0), continues: true }], {
      at: 3,
    })
  })

  test('a full disk', async () => {
    await using home = await temporaryFolder()
    await using node = await startFakeNode()
    const state = home.file('.sluice')
    mkdirSync(state, { mode: 0o700 })
    const isolate = process.getuid?.() === 0 ? '-m' : '-Urm'
    const command = `'${process.execPath}' --disable-warning=ExperimentalWarning '${CLI}'`
    writeFileSync(
      home.file('small'),
      `#!/bin/sh\nexec unshare ${isolate} sh -c 'mount -t tmpfs -o size=32m,mode=0700 small "$0" && exec "$@"' '${state}' ${command} "$@"\n`,
    )
    chmodSync(home.file('small'), 0o700)
    writeFileSync(home.file('sluice.toml'), `[[upstreams.nodes]]\nname = "a"\nrpc = "${node.rpc}"\n`)
    const env = { SLUICE_UPSTREAMS__ALLOW_PRIVATE: 'true' }
    await using small = serve({ cwd: home.path, program: home.file('small'), args: ['--no-demo'], env })
    await small.line(/"msg":"started"/)
    const url = await metricsOf(small)
    const roomy = await scrape(url)
    const filler = openSync(`/proc/${small.child.pid}/root${state}/filler`, 'w')
    const { size, free } = sizes(roomy)
    writeSync(filler, Buffer.alloc(Math.floor(free - 0.05 * size)))
    await until('it is nearly full', async () => sizes(await scrape(url)).free < 0.1 * size)
    proof.expect('SluiceDiskFilling', [{ before: roomy, after: await scrape(url) }])
    try {
      for (let blocks = 0; blocks < 10_000; blocks++) writeSync(filler, Buffer.alloc(4096))
    } catch (error) {
      assert.equal((error as NodeJS.ErrnoException).code, 'ENOSPC')
    }
    const fromMs = performance.now()
    await until('it is reported', async () => sizes(await scrape(url)).free < 0.01 * size)
    proof.expect('SluiceDiskFull', [{ before: roomy, after: await scrape(url) }])
    type Health = { reasons: { part: string; reason: string }[] }
    await until('/readyz names the folder and what has stopped', async () => {
      const { reasons } = (await (await fetch(url.replace('/metrics', '/readyz'))).json()) as Health
      return reasons.some(
        ({ part, reason }) =>
          part === 'disk-space' &&
          reason.includes(state) &&
          /cannot be written; calls and queries continue/.test(reason),
      )
    })
    assert.ok(performance.now() - fromMs < 20_000)
  })

  test('all were driven', () => proof.expectAll())
})

function sizes({ values }: Scrape): { size: number; free: number } {
  return {
    size: values.get('sluice_process_disk_size_bytes') ?? Number.NaN,
    free: values.get('sluice_process_disk_free_bytes') ?? Number.NaN,
  }
}
