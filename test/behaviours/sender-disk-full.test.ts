import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { makeTestFolder } from '../../src/platform/files/test-folder.ts'
import type { SmallDiskSenderReport } from '../support/sender/on-small-disk.ts'

const PROGRAM = new URL('../support/sender/on-small-disk.ts', import.meta.url).pathname

test('on a full disk refuses every transaction with not-recorded', async () => {
  using folder = makeTestFolder()
  // A mount namespace of this process and its children; without root, in a user namespace.
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
  // Only transactions in flight when the disk became full may be sent without being recorded, and the refusal states it.
  assert.ok(report.sentUnrecorded <= 1, stdout)
})
