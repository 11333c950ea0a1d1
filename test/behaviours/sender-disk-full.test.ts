import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import type { SmallDiskSenderReport } from '../support/sender-on-small-disk.ts'

const PROGRAM = new URL('../support/sender-on-small-disk.ts', import.meta.url).pathname

test('on a full disk nothing is accepted that cannot be recorded, and the refusal says so', async () => {
  using folder = makeTestFolder()
  // A mount that only this process and its children see, and that is gone with them; without root, in a user namespace.
  const isolate = process.getuid?.() === 0 ? '-m' : '-Urm'
  const script = 'mount -t tmpfs -o size=1m small "$1" && exec "$2" "$3" "$1"'
  const { stdout } = await promisify(execFile)('unshare', [
    ...[isolate, 'sh', '-c', script, 'sh', folder.path],
    ...[process.execPath, PROGRAM],
  ])
  const report = JSON.parse(stdout) as SmallDiskSenderReport
  assert.deepEqual(report.wrong, [])
  assert.deepEqual(report.raw, { status: 503, retryAfter: '1', error: 'not-recorded' })
  assert.ok(report.accepted > 2, stdout)
  assert.ok(report.refused >= 5, stdout)
  // Only what was under way when the disk was found full may have gone out unrecorded, and it is told so.
  assert.ok(report.sentUnrecorded <= 1, stdout)
})
