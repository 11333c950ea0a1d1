import { createSeededRandom } from '../../../src/core/random.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { openTipCounter } from '../../../src/sender/tips/counter.ts'
import { TipLedger } from '../../../src/sender/tips/ledger.ts'
import { openLedgerFile } from '../../../src/sender/tips/ledger-file.ts'

/** Records landed transactions without end, reports each before it is written, and is killed by its parent. */
const [folder = '', before = '0'] = process.argv.slice(2)
const NOON_MS = Date.parse('2026-11-16T12:00:00Z')
const database = await openLedgerFile(folder, { clock: systemClock, random: createSeededRandom(2) })
const ledger = new TipLedger({
  counter: await openTipCounter(database, systemClock),
  clock: systemClock,
  onFailure() {},
  onLoss() {},
  onRecovery() {},
})
for (let n = Number(before) + 1; process.connected; n++) {
  // As the journal, which has the line first. Waiting for the channel keeps the parent up to date.
  await new Promise<void>((resolve) => process.send?.(n, () => resolve()))
  ledger.record({
    outcome: 'landed',
    signature: `s${n}`,
    account: 'a',
    payer: 'p',
    lamports: 1_000_000,
    atMs: NOON_MS + n,
  })
  if (n % 7 === 0) await ledger.flush()
}
