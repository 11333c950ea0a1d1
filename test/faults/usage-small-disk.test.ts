import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import type { UsageOnSmallDiskReport } from '../support/access/usage-on-small-disk.ts'
import { temporaryFolder } from '../support/cli/run.ts'

const PROGRAM = new URL('../support/access/usage-on-small-disk.ts', import.meta.url).pathname

test('on a full disk usage of the embedded store is kept in reserved space, over a stop as well, and written once', async () => {
  await using home = await temporaryFolder()
  // A mount in a private namespace, which ends with this process and its children; without root, a user namespace.
  const isolate = process.getuid?.() === 0 ? '-m' : '-Urm'
  const script = 'mount -t tmpfs -o size=12m,mode=0700 small "$1" && exec "$2" "$3" "$1"'
  const { stdout } = await promisify(execFile)('unshare', [
    ...[isolate, 'sh', '-c', script, 'sh', home.path],
    ...[process.execPath, PROGRAM],
  ])
  const report = JSON.parse(stdout) as UsageOnSmallDiskReport
  assert.equal(report.codeWhenFull, 'disk-full')
  assert.equal(report.spoolFailing, null)
  assert.ok(report.spooledRows > 0)
  assert.ok(report.foundRows >= report.spooledRows, 'the next start finds them')
  assert.equal(report.bookedUnits, report.countedUnits)
})
