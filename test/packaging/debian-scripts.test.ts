import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { temporaryFolder } from '../support/cli/run.ts'

const root = join(import.meta.dirname, '../..')

type Machine = {
  readonly active: readonly string[]
  /** Units whose configuration the new version refuses. */
  readonly refused?: readonly string[]
}

/** Runs the script as dpkg does at an upgrade, on folders of the test and with programs that record how they were called. */
async function upgrade({ active, refused = [] }: Machine) {
  await using home = await temporaryFolder()
  const script = readFileSync(join(root, 'ops/debian/postinst'), 'utf8')
  for (const folder of ['bin', 'etc/sluice', 'var/lib/sluice', 'opt/sluice', 'run/systemd/system'])
    mkdirSync(home.file(folder), { recursive: true })
  const program = (name: string, body: string) =>
    writeFileSync(home.file(name), `#!/bin/sh\n${body}\n`, { mode: 0o755 })
  const calls = home.file('calls')
  program('bin/systemd-sysusers', '')
  program('bin/runuser', 'shift 3; exec "$@"')
  program(
    'bin/systemctl',
    `case "$*" in *is-active*) case " ${active.map((unit) => `${unit}.service`).join(' ')} " in *" $3 "*) ;; *) exit 3 ;; esac ;; *) echo "$*" >>${calls} ;; esac`,
  )
  const refusal = refused.map((unit) => `case "$*" in *"/lib/${unit}"|*"/lib/${unit} "*) exit 78 ;; esac`).join('\n')
  program('opt/sluice/sluice', `echo "$*" >>${calls}\n${refusal}`)
  const moved = script.replaceAll(/(?<![\w.])\/(etc|var|opt|run)\//g, `${home.path}/$1/`)
  writeFileSync(home.file('postinst'), moved)
  const { status, stderr } = spawnSync('sh', [home.file('postinst'), 'configure', '0.0.9'], {
    encoding: 'utf8',
    env: { PATH: `${home.file('bin')}:/usr/bin:/bin` },
  })
  const lines = existsSync(calls) ? readFileSync(calls, 'utf8').trim().split('\n') : []
  return {
    ...{ status, stderr },
    restarted: lines.flatMap((line) => (line.startsWith('restart ') ? line.slice('restart '.length) : [])),
    checks: lines.flatMap((line) => (line.startsWith('config check') ? line.replaceAll(home.path, '') : [])),
  }
}

test('an upgrade checks the configuration of each process that runs, and restarts it', async () => {
  const { status, stderr, restarted, checks } = await upgrade({ active: ['sluice', 'sluice-sender'] })
  assert.equal(status, 0, stderr)
  assert.deepEqual(restarted, ['sluice.service', 'sluice-sender.service'])
  // By its state folder: the process is asked for its file and its environment, and several may run on one file.
  assert.deepEqual(checks, ['config check --state /var/lib/sluice', 'config check --state /var/lib/sluice-sender'])
})

test('an upgrade leaves the process running whose configuration the new version refuses, and reports it', async () => {
  const { status, stderr, restarted } = await upgrade({ active: ['sluice', 'sluice-sender'], refused: ['sluice'] })
  assert.equal(status, 0)
  assert.deepEqual(restarted, ['sluice-sender.service'])
  assert.match(stderr, /sluice\.service was not restarted and the previous version still runs/)
  assert.match(stderr, /fix: .*systemctl restart sluice\n/)
})

test('an upgrade restarts the embedded chain, which has no configuration file, without a check', async () => {
  const { restarted, checks } = await upgrade({ active: ['sluice-localnet'], refused: ['sluice-localnet'] })
  assert.deepEqual(restarted, ['sluice-localnet.service'])
  assert.deepEqual(checks, [])
})
