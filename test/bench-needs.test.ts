import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { findInPath } from '../scripts/needs.ts'
import { temporaryFolder } from './support/cli/run.ts'

const root = join(import.meta.dirname, '..')

describe('npm run bench on a machine without its programs', () => {
  /** Runs the bench of RPC with no wrk in PATH; `aptGet` is the script that takes the place of apt-get. */
  const runWithoutWrk = async (aptGet?: string) => {
    await using folder = await temporaryFolder()
    const bin = folder.file('bin')
    mkdirSync(bin)
    for (const name of ['sh', 'rm', 'chmod', 'cat', 'taskset', 'nginx', 'haproxy', 'sudo']) {
      const found = findInPath(name)
      if (found !== undefined) symlinkSync(found, join(bin, name))
    }
    if (aptGet !== undefined) {
      writeFileSync(join(bin, 'apt-get'), `#!/bin/sh\n${aptGet}\n`)
      chmodSync(join(bin, 'apt-get'), 0o755)
    }
    const args = [join(root, 'bench/all.ts'), '--only', 'rpc', '--out', folder.file('out')]
    return spawnSync(process.execPath, args, { env: { PATH: bin }, encoding: 'utf8', timeout: 60_000 })
  }

  test('without apt-get it names the program and its package, skips the bench and ends with 1', async () => {
    const { status, stdout, stderr } = await runWithoutWrk()
    assert.match(stderr, /^missing: wrk \(Debian package wrk\), used for HTTP load$/m)
    assert.match(stderr, /^cannot install: there is no apt-get on this machine$/m)
    assert.doesNotMatch(stderr, /clickhouse|gcc/, 'only what the selected bench needs')
    assert.match(stdout, /^rpc \{"bench":"rpc","ended":"skipped: needs wrk"\}$/m)
    assert.equal(status, 1)
  })

  test('with apt-get it says what it installs; where that fails, the same', async (t) => {
    if (process.getuid?.() !== 0 && spawnSync('sudo', ['-n', 'true']).status !== 0) {
      t.skip('SKIPPED: neither root nor sudo')
      return
    }
    const { status, stdout, stderr } = await runWithoutWrk('echo "apt-get $*"; echo "E: no network" >&2; exit 100')
    assert.match(stderr, /^installing with apt-get: wrk$/m)
    assert.match(stderr, /^E: no network$/m)
    assert.match(stderr, /^cannot install: apt-get ended with 100$/m)
    assert.match(stdout, /"ended":"skipped: needs wrk"/)
    assert.equal(status, 1)
  })

  test('an unknown name in --only is refused with the known ones', () => {
    const args = [join(root, 'bench/all.ts'), '--only', 'rpc,rcp']
    const { status, stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', timeout: 60_000 })
    assert.equal(status, 2)
    assert.match(stderr, /there is no bench rcp; known: admit, .*rpc, ws/)
  })
})
