import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../src/core/clock.ts'
import { makeTestCert } from '../../src/platform/net/test-cert.ts'
import { openTlsFiles } from '../../src/platform/net/tls-files.ts'
import { createLogger } from '../../src/platform/telemetry/logger.ts'

const HOUR_MS = 3_600_000

test('F19: logs a warning 21, 7 and 1 days before a certificate expires, once each, and when it has expired', async () => {
  using cert = makeTestCert('ends', 30)
  const clock = createManualClock(Date.now())
  const lines: { msg: string; daysLeft?: number }[] = []
  const log = createLogger({
    level: 'info',
    destination: { write: (line: string) => lines.push(JSON.parse(line) as never) },
  })
  let notAfterMs = 0
  await using _files = await openTlsFiles(
    cert,
    { log, clock, onPair() {}, onNotAfter: (endMs) => (notAfterMs = endMs) },
    { pollMs: 6 * HOUR_MS },
  )
  assert.ok(Math.abs(notAfterMs - (clock.nowMs() + 30 * 24 * HOUR_MS)) < HOUR_MS)
  assert.equal(lines.length, 0)
  for (let hours = 0; hours < 32 * 24; hours += 6) await clock.advanceAsync(6 * HOUR_MS)
  const reported = lines.filter(({ msg }) => msg.startsWith('certificate'))
  assert.deepEqual(
    reported.map(({ msg, daysLeft }) => daysLeft ?? msg),
    [21, 7, 1, 'certificate has expired'],
  )
})
