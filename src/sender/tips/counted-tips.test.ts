import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { listCountedTips } from './counted-tips.ts'
import { openTipCounter } from './counter.ts'
import { openLedgerFile } from './ledger-file.ts'

const NOON_MS = Date.parse('2026-11-16T12:00:00Z')
const MINUTE_MS = 60_000

test('a backup lists the counted transactions that a restore may read back from the journal, and no older ones', async () => {
  using folder = makeTestFolder()
  const clock = createManualClock(NOON_MS)
  const database = await openLedgerFile(folder.path, { clock, random: createSeededRandom(1) })
  await using counter = await openTipCounter(database, clock)
  const paid = { outcome: 'landed', account: 'a', payer: 'p', lamports: 1 } as const
  await counter.count([0, 14, 16].map((n) => ({ ...paid, signature: `${n} minutes`, atMs: NOON_MS - n * MINUTE_MS })))
  const listed = async (nowMs: number) =>
    (await listCountedTips(database, nowMs))?.recent.map(([signature]) => signature)
  assert.deepEqual(await listed(NOON_MS + 1), ['0 minutes', '14 minutes'])
  const all = ['0 minutes', '14 minutes', '16 minutes']
  assert.deepEqual(await listed(NOON_MS - 5 * MINUTE_MS), all, 'the clock was ahead')
})
