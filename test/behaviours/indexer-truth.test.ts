import { test } from 'node:test'
import { repeatsOf, seedFor } from '../../src/core/test-seed.ts'
import { checkTruth, type TruthEngine } from '../support/indexer/truth.ts'
import { openClickHouse, openEmbedded } from '../support/indexer/truth-engines.ts'

/** 9,000 slots are an hour of a real chain; the slots here are shorter. */
const RUN = { kills: repeatsOf({ short: 6, full: 100 }), slots: repeatsOf({ short: 12, full: 9000 }) }

const ENGINES: Readonly<Record<string, () => Promise<TruthEngine>>> = {
  'the embedded database': openEmbedded,
  ClickHouse: openClickHouse,
}

for (const [name, open] of Object.entries(ENGINES)) {
  test(`after ${RUN.kills} kills ${name} has the rows of getBlock, and coverage was never ahead`, async (t) => {
    await using engine = await open()
    t.diagnostic(await checkTruth(engine, { seed: seedFor(`indexer truth, ${name}`).seed, ...RUN }))
  })
}
