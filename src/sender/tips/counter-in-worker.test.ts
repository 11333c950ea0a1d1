import assert from 'node:assert/strict'
import { existsSync, renameSync, writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import type { TipEvent } from './counter.ts'
import { openCounterInWorker } from './counter-in-worker.ts'
import { TipLedger } from './ledger.ts'
import { LEDGER_FILE, openLedgerFile } from './ledger-file.ts'
import { readTips } from './report.ts'

const NOON_MS = Date.parse('2026-11-16T12:00:00Z')
const DYING = new URL('./test-dying-counter-thread.ts', import.meta.url)

function depsOf() {
  return { clock: createManualClock(), random: createSeededRandom(1), log: silentLogger }
}

function event(outcome: TipEvent['outcome'], n: number): TipEvent {
  return { outcome, signature: `s${n}`, account: 'a', payer: 'p', lamports: 1_000_000, atMs: NOON_MS + n }
}

async function total(folder: string) {
  await using database = await openLedgerFile(folder, depsOf())
  return (await readTips(database, { fromMs: 0, toMs: NOON_MS, by: 'total' }))[0]
}

test('the thread counts every event once, also when the ledger is closed at once', async () => {
  using folder = makeTestFolder()
  const deps = depsOf()
  const failures: unknown[] = []
  {
    const counter = await openCounterInWorker(folder.path, deps)
    await using ledger = new TipLedger({
      ...deps,
      counter,
      onFailure: (error) => failures.push(error),
      onLoss() {},
      onRecovery() {},
    })
    for (let n = 0; n < 500; n++) ledger.record(event('accepted', n))
    for (let n = 0; n < 300; n++) ledger.record(event('landed', n))
  }
  assert.deepEqual(failures, [])
  const sums = await total(folder.path)
  assert.deepEqual([sums?.accepted, sums?.landed, sums?.tipLamports], [500, 300, 300_000_000])
  await using again = await openCounterInWorker(folder.path, deps)
  assert.equal(again.countedMs, NOON_MS + 499)
})

test('a thread that dies loses no event: they are counted once it is restarted', async () => {
  using folder = makeTestFolder()
  const deps = depsOf()
  const reported: string[] = []
  const dying = await openCounterInWorker(folder.path, { ...deps, entry: DYING })
  const sound = await openCounterInWorker(folder.path, deps)
  let counter = dying
  await using ledger = new TipLedger({
    ...deps,
    counter: {
      get countedMs() {
        return counter.countedMs
      },
      count: (batch) => counter.count(batch),
      async [Symbol.asyncDispose]() {
        for (const each of [dying, sound]) await each[Symbol.asyncDispose]()
      },
    },
    onFailure: (error) => reported.push(String(error)),
    onLoss() {},
    onRecovery: () => reported.push('recovered'),
  })
  ledger.record(event('accepted', 1))
  await ledger.flush()
  assert.deepEqual(reported, ['Error: out of memory'])
  ledger.record(event('landed', 1))
  await ledger.flush()
  assert.equal(reported.length, 1, 'reported once, while the thread is restarted')
  counter = sound
  await ledger.flush()
  assert.deepEqual(reported.slice(1), ['recovered'])
  const sums = await total(folder.path)
  assert.deepEqual([sums?.accepted, sums?.landed], [1, 1])
})

test('a damaged file is an error at the start', async () => {
  using folder = makeTestFolder()
  writeFileSync(folder.file(LEDGER_FILE), 'no database')
  await assert.rejects(openCounterInWorker(folder.path, depsOf()), { code: 'store-corrupt' })
})

test('the thread opens the ledger that was there at the start, and creates none in its place', async () => {
  using folder = makeTestFolder()
  await using counter = await openCounterInWorker(folder.path, depsOf())
  const [file, away] = [folder.file(LEDGER_FILE), folder.file('away')]
  renameSync(file, away)
  await assert.rejects(counter.count([event('landed', 1)]), /the file is gone/)
  assert.equal(existsSync(file), false)
})
