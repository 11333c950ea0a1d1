import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalEntry } from '../receipts/journal.ts'
import type { TipEvent } from './counter.ts'
import type { TipLedger } from './ledger.ts'
import { recordFound } from './record.ts'

test('the tip of a transaction that is still followed after a restart is not counted as paid yet', () => {
  const recorded: string[] = []
  const ledger: Pick<TipLedger, 'isReadBack' | 'record'> = {
    isReadBack: (atMs) => atMs > 1,
    record: ({ outcome, signature }: TipEvent) => void recorded.push(`${signature} ${outcome}`),
  }
  const tip = { account: 'account', payer: 'payer', lamports: 1_000_000n }
  const entry = (signature: string, state: JournalEntry['state'], atMs = 2): JournalEntry => ({
    signature,
    state,
    atMs,
    slot: undefined,
    tip,
  })
  const entries = [
    entry('old', 'landed', 1),
    entry('done', 'landed'),
    entry('open', 'landed'),
    entry('failing', 'failed'),
    entry('expired', 'expired'),
  ]
  recordFound(ledger as TipLedger, entries, (signature) => signature === 'open' || signature === 'failing')
  assert.deepEqual(recorded, ['expired expired', 'failing accepted', 'open accepted', 'done landed'], 'newest first')
})
