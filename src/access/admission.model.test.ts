import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { ledgerProperty, noLedgerStats } from '../../test/sim/ledger-world.ts'
import { repeatsOf, seedOf } from '../../test/support/process/property.ts'

test('charged units equal admitted units exactly: batches, clocks, rotations, plans, restarts', async (t) => {
  const seen = noLedgerStats()
  await fc.assert(ledgerProperty(seen), { seed: seedOf(t), numRuns: repeatsOf({ short: 200, full: 10_000 }) })
  t.diagnostic(JSON.stringify(seen))
  for (const [event, count] of Object.entries(seen)) assert.ok(count > 0, `${event} never happened`)
})
