import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { receiptOf } from '../receipts/test-receipt.ts'
import { openTipCounter, type TipEvent } from './counter.ts'
import { isTipDay, listTipDays, putTipDays } from './days.ts'
import { createLedgerFile, LEDGER_FILE, openLedgerFile } from './ledger-file.ts'
import { recordReceipt } from './record.ts'
import { readTips } from './report.ts'

const MAX = Number.MAX_SAFE_INTEGER
const DAY = '2026-11-16'
const AT_MS = Date.parse(`${DAY}T12:00:00Z`)
const PERIOD = { fromMs: 0, toMs: AT_MS, by: 'total' } as const
const deps = () => ({ clock: createManualClock(), random: createSeededRandom(1) })

function event(n: number, lamports: number): TipEvent {
  return { outcome: 'landed', signature: `s${n}`, account: 'a', payer: 'p', lamports, atMs: AT_MS }
}

test('a tip of any size is recorded as at most the largest exact number', () => {
  const events: TipEvent[] = []
  const ledger = { record: (one: TipEvent) => events.push(one) }
  for (const lamports of [1_000_000n, 2n ** 53n - 1n, 2n ** 53n, 2n ** 64n - 1n])
    recordReceipt(ledger as never, receiptOf('s', { tip: { account: 'a', lamports } }), 'accepted', AT_MS)
  assert.deepEqual(
    events.map(({ lamports }) => lamports),
    [1_000_000, MAX, MAX, MAX],
  )
})

test('sums of a batch, of a day and of a report stop at the largest exact number', async () => {
  using folder = makeTestFolder()
  const database = await openLedgerFile(folder.path, deps())
  await using counter = await openTipCounter(database, deps().clock)
  await counter.count([event(1, MAX - 5), event(2, 3)])
  assert.deepEqual(await listTipDays(database), [[DAY, 'a', 'p', 2, 2, 0, 0, MAX - 2, MAX - 2]])
  await counter.count([event(3, MAX), event(4, MAX)])
  await counter.count([event(5, MAX), { ...event(6, MAX), payer: 'q' }])
  assert.deepEqual(await listTipDays(database), [
    [DAY, 'a', 'p', 5, 5, 0, 0, MAX, MAX],
    [DAY, 'a', 'q', 1, 1, 0, 0, MAX, MAX],
  ])
  const stored = await database.rows('SELECT DISTINCT offered_lamports, tip_lamports FROM days')
  assert.deepEqual(stored, [[MAX, MAX]], 'the file has no larger number')
  const [total] = await readTips(database, PERIOD)
  assert.deepEqual([total?.landed, total?.offeredLamports, total?.tipLamports], [6, MAX, MAX])
})

test('rows of a ledger that were stored above the limit are read, saved and restored as the limit', async () => {
  using folder = makeTestFolder()
  const stored = [2 ** 53, 2 ** 62, 2 ** 64]
  await createLedgerFile(join(folder.path, LEDGER_FILE), deps(), async (tx) => {
    for (const [at, lamports] of stored.entries())
      await tx.run(`INSERT INTO days VALUES (?, 'a', ?, 1, 0, 0, 0, ${BigInt(lamports)}, 7)`, [DAY, `p${at}`])
  })
  const database = await openLedgerFile(folder.path, deps())
  await using counter = await openTipCounter(database, deps().clock)
  const saturated = stored.map((_, at) => [DAY, 'a', `p${at}`, 1, 0, 0, 0, MAX, 7])
  assert.deepEqual(await listTipDays(database), saturated)
  const [total] = await readTips(database, PERIOD)
  assert.deepEqual([total?.accepted, total?.offeredLamports, total?.tipLamports], [3, MAX, 21])
  await counter.count([{ ...event(1, 1), payer: 'p2' }])
  assert.deepEqual((await listTipDays(database)).at(-1), [DAY, 'a', 'p2', 2, 1, 0, 0, MAX, 8])

  // A backup that was made of such a row.
  const saved = JSON.parse(JSON.stringify([DAY, 'a', 'p', 1, 0, 0, 0, 2 ** 64, 7])) as unknown
  assert.ok(isTipDay(saved))
  assert.ok(![1.5, 2 ** 53, '1'].some((accepted) => isTipDay([DAY, 'a', 'p', accepted, 0, 0, 0, 1, 1])))
  assert.ok(![1.5, '1', null].some((lamports) => isTipDay([DAY, 'a', 'p', 1, 0, 0, 0, lamports, 1])))
  using restored = makeTestFolder()
  await createLedgerFile(join(restored.path, LEDGER_FILE), deps(), (tx) => putTipDays(tx, [saved]))
  await using read = await openLedgerFile(restored.path, deps())
  assert.deepEqual(await read.rows('SELECT offered_lamports FROM days'), [[MAX]])
})
