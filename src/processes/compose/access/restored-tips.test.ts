import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { test } from 'node:test'
import type { BackupExtra } from '../../../access/backup/summary.ts'
import { createManualClock } from '../../../core/clock.ts'
import { createSeededRandom } from '../../../core/random.ts'
import { openAppendFile } from '../../../platform/files/append.ts'
import { openStateFolder, type StateFolder } from '../../../platform/files/state-folder.ts'
import { makeTestFolder } from '../../../platform/files/test-folder.ts'
import { JOURNAL_NAMES, type JournalEntry, readJournal } from '../../../sender/receipts/journal.ts'
import { openTipCounter } from '../../../sender/tips/counter.ts'
import { TipLedger } from '../../../sender/tips/ledger.ts'
import { openLedgerFile } from '../../../sender/tips/ledger-file.ts'
import { recordFound } from '../../../sender/tips/record.ts'
import { readTips } from '../../../sender/tips/report.ts'
import { putStateContent } from './put-state-content.ts'
import { stateContent } from './state-content.ts'

const NOON_MS = Date.parse('2026-11-16T12:00:00Z')
const ACCOUNT = '1'.repeat(32)
const PAYER = '2'.repeat(32)
const LAMPORTS = 1_000_000

const depsOf = () => ({ clock: createManualClock(NOON_MS), random: createSeededRandom(1) })
const isFollowed = () => false
const signature = (n: number) => String(n).repeat(32)

/** A process of the sender: it counts what the journal has, then what it gets itself. Returns accepted and landed ones and the lamports. */
async function runSender(state: StateFolder, landed: readonly number[] = []): Promise<(number | undefined)[]> {
  const deps = depsOf()
  const folder = await state.folder('sender')
  const database = await openLedgerFile(folder, deps)
  await using ledger = new TipLedger({
    counter: await openTipCounter(database, deps.clock),
    clock: deps.clock,
    onFailure: assert.fail,
    onLoss() {},
    onRecovery() {},
  })
  await using first = await openAppendFile(state.file('sender', JOURNAL_NAMES[0]), 'write')
  await using second = await openAppendFile(state.file('sender', JOURNAL_NAMES[1]), 'write')
  recordFound(ledger, (await readJournal([first, second], 100)).entries, isFollowed)
  for (const n of landed) {
    const atMs = NOON_MS - 300_000 + n
    const lines = [
      `accepted ${signature(n)} ${atMs} `,
      `tip ${signature(n)} ${ACCOUNT} ${LAMPORTS} ${PAYER}`,
      `landed ${signature(n)} ${atMs} 7`,
    ]
    await first.writeAt(await first.size(), `${lines.join('\n')}\n`)
    const tip = { account: ACCOUNT, payer: PAYER, lamports: BigInt(LAMPORTS) }
    const entry: JournalEntry = { signature: signature(n), state: 'landed', atMs, slot: 7, tip }
    recordFound(ledger, [entry], isFollowed)
  }
  await ledger.flush()
  const [total] = await readTips(database, { fromMs: 0, toMs: NOON_MS, by: 'total' })
  return [total?.accepted, total?.landed, total?.tipLamports]
}

async function backupOf(state: StateFolder): Promise<BackupExtra[]> {
  const keys = { files: [], shared: [] }
  return Array.fromAsync(stateContent(state.path, keys, { ...depsOf(), seal: undefined }))
}

const restoreInto = (state: StateFolder, extras: readonly BackupExtra[], stamp = 'now') =>
  putStateContent(state, { extras, keys: undefined }, { ...depsOf(), stamp })

test('after a restore beside the journal of the sender, every tip is counted once', async () => {
  using folder = makeTestFolder()
  const state = await openStateFolder(folder.file('state'))
  assert.deepEqual(await runSender(state, [11, 12]), [2, 2, 2 * LAMPORTS])
  const extras = await backupOf(state)
  await restoreInto(state, extras)
  assert.deepEqual(await runSender(state), [2, 2, 2 * LAMPORTS])
  // What came after the backup is in the journal only, and counted from there.
  assert.deepEqual(await runSender(state, [13]), [3, 3, 3 * LAMPORTS])
  await restoreInto(state, extras, 'later')
  assert.deepEqual(await runSender(state), [3, 3, 3 * LAMPORTS])
})

test('a backup that does not list what it has counted puts the journal aside', async () => {
  using folder = makeTestFolder()
  const state = await openStateFolder(folder.file('state'))
  await runSender(state, [11, 12])
  const kept = await restoreInto(
    state,
    (await backupOf(state)).filter(({ kind }) => kind === 'tip_day'),
  )
  assert.deepEqual(await runSender(state), [2, 2, 2 * LAMPORTS])
  assert.ok(kept.includes(state.file('sender/journal-0.before-restore-now')), String(kept))
  assert.ok(kept.every((path) => existsSync(path)))
})
