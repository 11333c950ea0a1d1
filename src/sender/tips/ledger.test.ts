import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { renameSync } from 'node:fs'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import { crash } from '../../../test/support/process/crash.ts'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import type { SqlDatabase } from '../../platform/db/sql.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { OTHER_PAYERS, openTipCounter, PAYERS_PER_DAY_MAX, type TipEvent } from './counter.ts'
import { TipLedger, WAITING_MAX } from './ledger.ts'
import { LEDGER_FILE, openExistingLedger, openLedgerFile } from './ledger-file.ts'
import { openReopeningCounter } from './reopening-counter.ts'
import { readTips, type TipGroup } from './report.ts'

const DAY_MS = 86_400_000
const NOON_MS = Date.parse('2026-11-16T12:00:00Z')

async function open(folder: string, fault?: (database: SqlDatabase) => SqlDatabase) {
  const clock = createManualClock(NOON_MS)
  const database = await openLedgerFile(folder, { clock, random: createSeededRandom(1) })
  const reported: string[] = []
  const ledger = new TipLedger({
    counter: await openTipCounter(fault?.(database) ?? database, clock),
    clock,
    onFailure: (error) => reported.push(String(error)),
    onLoss: () => reported.push('loss'),
    onRecovery: () => reported.push('recovered'),
  })
  const read = (by: TipGroup, fromMs = 0, toMs = NOON_MS + 400 * DAY_MS) => readTips(database, { fromMs, toMs, by })
  const total = async () => (await read('total'))[0]
  return { ledger, clock, reported, read, total, [Symbol.asyncDispose]: () => ledger[Symbol.asyncDispose]() }
}

function event(outcome: TipEvent['outcome'], n: number, given: Partial<TipEvent> = {}): TipEvent {
  return { outcome, signature: `s${n}`, account: 'a', payer: 'p', lamports: 1_000_000, atMs: NOON_MS + n, ...given }
}

describe('the tip ledger', () => {
  test('counts each transaction once, however often and by however many processes it is recorded', async () => {
    using folder = makeTestFolder()
    for (let process = 0; process < 3; process++) {
      await using opened = await open(folder.path)
      for (let round = 0; round < 2; round++) {
        for (let n = 0; n < 40; n++) {
          opened.ledger.record(event('accepted', n))
          if (n < 30) opened.ledger.record(event('landed', n))
        }
        await opened.ledger.flush()
      }
      assert.deepEqual(await opened.total(), {
        group: 'total',
        accepted: 40,
        landed: 30,
        failed: 0,
        expired: 0,
        offeredLamports: 40_000_000,
        tipLamports: 30_000_000,
      })
    }
  })

  test('only what landed and succeeded is revenue', async () => {
    using folder = makeTestFolder()
    await using opened = await open(folder.path)
    const { ledger } = opened
    for (const n of [1, 2, 3, 4]) ledger.record(event('accepted', n))
    ledger.record(event('landed', 1))
    ledger.record(event('failed', 2))
    ledger.record(event('expired', 3))
    // Recorded from the journal only: it was accepted too.
    ledger.record(event('landed', 5))
    await ledger.flush()
    const sums = { group: 'total', accepted: 5, landed: 2, failed: 1, expired: 1 }
    assert.deepEqual(await opened.total(), { ...sums, offeredLamports: 5_000_000, tipLamports: 2_000_000 })
    // It was sent again after it had expired. What has landed does not change any more.
    for (const outcome of ['accepted', 'landed', 'expired'] as const) ledger.record(event(outcome, 3))
    ledger.record(event('expired', 1))
    await ledger.flush()
    const after = { ...sums, landed: 3, expired: 0 }
    assert.deepEqual(await opened.total(), { ...after, offeredLamports: 5_000_000, tipLamports: 3_000_000 })
  })

  test('is grouped by day of landing, by account and by payer, within a period', async () => {
    using folder = makeTestFolder()
    await using opened = await open(folder.path)
    const { ledger, read } = opened
    ledger.record(event('landed', 1, { account: 'a', payer: 'x' }))
    ledger.record(event('landed', 2, { account: 'b', payer: 'x', lamports: 5_000_000 }))
    ledger.record(event('accepted', 3, { payer: 'y', atMs: NOON_MS }))
    ledger.record(event('landed', 3, { payer: 'y', atMs: NOON_MS + DAY_MS }))
    await ledger.flush()
    const brief = async (by: TipGroup, ...period: [number?, number?]) =>
      (await read(by, ...period)).map(({ group, tipLamports }) => [group, tipLamports])
    assert.deepEqual(await brief('day'), [
      ['2026-11-16', 6_000_000],
      ['2026-11-17', 1_000_000],
    ])
    assert.deepEqual(await brief('account'), [
      ['b', 5_000_000],
      ['a', 2_000_000],
    ])
    assert.deepEqual(await brief('payer'), [
      ['x', 6_000_000],
      ['y', 1_000_000],
    ])
    assert.deepEqual(await brief('total', NOON_MS + DAY_MS), [['total', 1_000_000]])
    assert.deepEqual(await brief('total', 0, NOON_MS), [['total', 6_000_000]])
  })

  test('the file is bounded: payers of a day, and signatures of an hour', async () => {
    using folder = makeTestFolder()
    await using opened = await open(folder.path)
    const { ledger, read } = opened
    const payers = PAYERS_PER_DAY_MAX + 300
    for (let n = 0; n < payers; n++) ledger.record(event('landed', n, { payer: `payer ${n}` }))
    await ledger.flush()
    const rows = await read('payer')
    assert.equal(rows.length, PAYERS_PER_DAY_MAX + 1)
    assert.equal(rows[0]?.group, OTHER_PAYERS)
    assert.equal((await opened.total())?.landed, payers)
    // Old by the time of the process, which an hour and the one after it have passed.
    for (const n of [9998, 9999]) {
      opened.clock.advance(3_600_000)
      await ledger.flush()
      ledger.record(event('landed', n, { atMs: NOON_MS + 2 * 3_600_000 }))
      await ledger.flush()
    }
    const database = await openLedgerFile(folder.path, { clock: opened.clock, random: createSeededRandom(1) })
    await using _database = database
    assert.deepEqual(await database.rows('SELECT count(*) FROM recent'), [[2]])
    // What the journal is read back for is still known.
    opened.clock.advance(3_600_000)
    const readBackFromMs = NOON_MS + 2 * 3_600_000 - 600_000
    assert.deepEqual([readBackFromMs - 1, readBackFromMs].map(ledger.isReadBack), [false, true])
  })

  for (const [what, offMs] of [
    ['ahead', 365 * DAY_MS],
    ['behind', -365 * DAY_MS],
  ] as const) {
    test(`after an event of a clock that was a year ${what}, a transaction is counted once, and the journal read back`, async () => {
      using folder = makeTestFolder()
      await using opened = await open(folder.path)
      const { ledger, clock } = opened
      ledger.record(event('accepted', 0))
      await ledger.flush()
      ledger.record(event('accepted', 1, { atMs: NOON_MS + offMs }))
      await ledger.flush()
      for (const outcome of ['accepted', 'landed', 'landed'] as const) {
        for (let n = 2; n < 12; n++) {
          ledger.record(event(outcome, n))
          await ledger.flush()
        }
      }
      // As it is read back from the journal.
      ledger.record(event('accepted', 0))
      await ledger.flush()
      const sums = await opened.total()
      assert.deepEqual([sums?.accepted, sums?.landed, sums?.offeredLamports], [12, 10, 12_000_000])
      clock.advance(60_000)
      assert.deepEqual([NOON_MS - DAY_MS, NOON_MS, NOON_MS + 60_000].map(ledger.isReadBack), [false, true, true])
    })
  }

  test('what the hour before has counted is known, also if every event of this hour has the time of a clock that is ahead', async () => {
    using folder = makeTestFolder()
    await using opened = await open(folder.path)
    const { ledger, clock } = opened
    const count = async (given: TipEvent) => {
      ledger.record(given)
      await ledger.flush()
    }
    await count(event('landed', 0))
    clock.advance(3_600_000)
    await ledger.flush()
    await count(event('landed', 1, { atMs: NOON_MS + DAY_MS }))
    await count(event('landed', 0))
    assert.equal((await opened.total())?.landed, 2)
  })

  test('rows that a process left a day ago are deleted by the next one, however short each of them runs', async () => {
    using folder = makeTestFolder()
    const rowsAfter = async (...events: TipEvent[]) => {
      await using opened = await open(folder.path)
      for (const each of events) opened.ledger.record(each)
      await opened.ledger.flush()
      const database = await openLedgerFile(folder.path, { clock: opened.clock, random: createSeededRandom(1) })
      await using _database = database
      return (await database.rows('SELECT signature FROM recent ORDER BY signature')).flat()
    }
    assert.deepEqual(await rowsAfter(event('landed', 1, { atMs: NOON_MS - 2 * DAY_MS }), event('landed', 2)), [
      's1',
      's2',
    ])
    assert.deepEqual(await rowsAfter(event('landed', 3)), ['s2', 's3'])
  })

  test('under a clock that is behind, a transaction is counted once, and the journal of before not again', async () => {
    using folder = makeTestFolder()
    await using opened = await open(folder.path)
    const { ledger, clock } = opened
    ledger.record(event('landed', 1, { atMs: NOON_MS + 2 * DAY_MS }))
    await ledger.flush()
    for (const outcome of ['accepted', 'landed'] as const) {
      ledger.record(event(outcome, 2))
      await ledger.flush()
    }
    assert.equal((await opened.total())?.accepted, 2)
    clock.advance(3_600_000)
    assert.deepEqual([NOON_MS + DAY_MS, NOON_MS + 2 * DAY_MS].map(ledger.isReadBack), [false, false])
    assert.equal(ledger.isReadBack(clock.nowMs()), true)
  })

  test('a disk that fails delays the count', async () => {
    using folder = makeTestFolder()
    let isFailing = true
    await using opened = await open(folder.path, (database) => ({
      ...database,
      async count(work) {
        if (!isFailing) return database.count(work)
        await database.count(async (tx) => {
          await work(tx)
          throw new Error('as planned')
        })
      },
    }))
    opened.ledger.record(event('landed', 1))
    await opened.ledger.flush()
    await opened.ledger.flush()
    assert.deepEqual(opened.reported, ['Error: as planned'])
    assert.equal(await opened.total(), undefined)
    isFailing = false
    opened.ledger.record(event('landed', 2))
    await opened.ledger.flush()
    assert.deepEqual(opened.reported, ['Error: as planned', 'recovered'])
    assert.equal((await opened.total())?.landed, 2)
  })

  test('a disk that fails for long loses events, which are reported and counted', async () => {
    let isFailing = true
    const reported: string[] = []
    await using ledger = new TipLedger({
      counter: {
        countedMs: 0,
        count: () => (isFailing ? Promise.reject(new Error('as planned')) : Promise.resolve()),
        [Symbol.asyncDispose]: () => Promise.resolve(),
      },
      clock: createManualClock(NOON_MS),
      onFailure: (error) => reported.push(String(error)),
      onLoss: () => reported.push('loss'),
      onRecovery: () => reported.push('recovered'),
    })
    const record = (events: number) => {
      for (let n = 0; n < events; n++) ledger.record(event('landed', n))
    }
    record(WAITING_MAX)
    await ledger.flush()
    assert.deepEqual([reported, ledger.lost], [['Error: as planned'], 0])
    record(3)
    assert.deepEqual([reported, ledger.lost], [['Error: as planned', 'loss'], 3])
    isFailing = false
    await ledger.flush()
    assert.deepEqual(reported, ['Error: as planned', 'loss', 'recovered'])
    record(WAITING_MAX + 1)
    assert.deepEqual([reported.slice(3), ledger.lost], [['loss'], 4], 'also where the disk is only too slow')
    await ledger.flush()
    assert.deepEqual(reported.slice(4), ['recovered'])
  })

  test('after a failure the file is opened anew, and never created', async () => {
    using folder = makeTestFolder()
    const deps = { clock: createManualClock(NOON_MS), random: createSeededRandom(1) }
    let opens = 0
    // As SQLite after an error of its log: the connection stays unusable.
    const failing = (database: SqlDatabase): SqlDatabase => ({
      ...database,
      count: () => Promise.reject(new Error('disk I/O error')),
    })
    await (await openLedgerFile(folder.path, deps))[Symbol.asyncDispose]()
    await using counter = await openReopeningCounter({
      openLedger: () => openExistingLedger(folder.path, deps),
      openCounter: (database) => openTipCounter(opens++ === 0 ? failing(database) : database, deps.clock),
    })
    await assert.rejects(counter.count([event('landed', 1)]), /disk I\/O error/)
    const [file, away] = [folder.file(LEDGER_FILE), folder.file('away')]
    renameSync(file, away)
    await assert.rejects(counter.count([event('landed', 1)]), { code: 'store-corrupt' })
    renameSync(away, file)
    await counter.count([event('landed', 1)])
    assert.deepEqual([counter.countedMs, opens], [NOON_MS + 1, 2])
    await using database = await openExistingLedger(folder.path, deps)
    assert.equal((await readTips(database, { fromMs: 0, toMs: NOON_MS, by: 'total' }))[0]?.landed, 1)
  })

  test('a file that was opened but cannot be read is closed again', async () => {
    using folder = makeTestFolder()
    const deps = { clock: createManualClock(NOON_MS), random: createSeededRandom(1) }
    await (await openLedgerFile(folder.path, deps))[Symbol.asyncDispose]()
    let open = 0
    const openLedger = async (): Promise<SqlDatabase> => {
      const database = await openExistingLedger(folder.path, deps)
      open += 1
      const close = async () => {
        open -= 1
        await database[Symbol.asyncDispose]()
      }
      return { ...database, [Symbol.asyncDispose]: close }
    }
    const openCounter = () => Promise.reject(new Error('disk I/O error'))
    await assert.rejects(openReopeningCounter({ openLedger, openCounter }), /disk I\/O error/)
    assert.equal(open, 0)
  })

  test('after a kill at any time, recording everything again counts everything once', async () => {
    using folder = makeTestFolder()
    let last = 0
    for (let round = 0; round < 5; round++) {
      const child = fork(join(import.meta.dirname, '../../../test/support/sender/tip-ledger-child.ts'), [
        folder.path,
        String(last),
      ])
      child.on('message', (n) => (last = Math.max(last, Number(n))))
      const wanted = last + 300 + round * 111
      while (last < wanted) await once(child, 'message')
      await crash(child)
      await using opened = await open(folder.path)
      const before = (await opened.total())?.landed ?? 0
      assert.ok(before <= last, `${before} counted, ${last} recorded`)
      for (let n = 1; n <= last; n++) opened.ledger.record(event('landed', n))
      await opened.ledger.flush()
      assert.deepEqual(
        [(await opened.total())?.landed, (await opened.total())?.tipLamports],
        [last, last * 1_000_000],
        `round ${round}`,
      )
    }
  })
})
