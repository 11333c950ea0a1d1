import assert from 'node:assert/strict'
import { test } from 'node:test'
import { checkBankHistory } from '../support/indexer/banks.ts'
import { openClickHouse, openEmbedded } from '../support/indexer/truth-engines.ts'
import { repeatsOf, seedOf } from '../support/process/property.ts'

const HISTORIES = repeatsOf({ short: 10, full: 300 })

/** Histories that run at the same time: each mostly waits. */
const PARALLEL = 3

test(`over ${HISTORIES} histories with several banks for a slot, moves to nodes with other bank ids, and kills, every table equals getBlock of the final bank`, async (t) => {
  const first = seedOf(t)
  let [replaced, checks, faults] = [0, 0, 0]
  const seeds = Array.from({ length: HISTORIES }, (_, at) => first + at * 10).values()
  let isFailed = false
  const worker = async () => {
    for (const seed of seeds) {
      if (isFailed) return
      await using engine = await openEmbedded()
      const result = await checkBankHistory(engine, { seed, isChecked: true }).catch((cause: unknown) => {
        isFailed = true
        throw new Error(`the history with SLUICE_SEED=${seed}`, { cause })
      })
      replaced += result.replaced
      checks += result.checks
      faults += result.faults
    }
  }
  await Promise.all(Array.from({ length: PARALLEL }, worker))
  t.diagnostic(`${replaced} written blocks replaced, coverage correct ${checks} times, ${faults} faults`)
  assert.ok(replaced > 0 && checks > 0 && faults > 0, 'the histories exercise nothing')
})

test('without bank ids the same histories end with the same tables', async (t) => {
  await using engine = await openEmbedded()
  await checkBankHistory(engine, { seed: seedOf(t), isNamed: false, isChecked: false })
})

test('the same on ClickHouse, in the end', async (t) => {
  const seed = seedOf(t)
  await using engine = await openClickHouse()
  await checkBankHistory(engine, { seed, isChecked: false })
})
