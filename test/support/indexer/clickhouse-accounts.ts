import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { ClickHouseAccount } from '../../../src/indexer/clickhouse/link.ts'
import { openClickHouseStore } from '../../../src/indexer/clickhouse/store.ts'
import {
  type AccountStates,
  accountBatchOf,
  accountHistory,
  accountStatesAfter,
} from '../../../src/indexer/ingest/test-accounts.ts'
import type { Store } from '../../../src/indexer/store/store.ts'
import { delay, systemClock } from '../../../src/platform/process/clock.ts'
import { type StatementFaults, startStatementFaults } from '../../faults/statement-faults.ts'
import { createRandom, seedsOf } from '../process/property.ts'

/** A server of either dialect. */
export type AccountsServer = ClickHouseAccount & {
  run(statement: string): Promise<string>
  /** Called when the tables of a database exist. */
  prepare?(base: string): Promise<void>
  /** Called before a store is opened again, with the database of the views. */
  prepareReopen?(views: string): Promise<void>
}

/** A store on a database of its own, over a proxy that can cut its connection. */
export type AccountsDatabase = AsyncDisposable & {
  readonly name: string
  readonly faults: StatementFaults
  /** Writes and rewinds here are done when all rows of the tables are merged: before that, old rows may still be found by luck. */
  readonly store: Pick<Store, 'write' | 'rewind' | 'progress'>
  states(): Promise<AccountStates>
  /** Slots of the first and last kept state by slot; empty if there is none. */
  keptSlots(): Promise<readonly number[]>
  /** As a restart of the process, after a merge. */
  reopen(): Promise<void>
}

let databases = 0

export async function openAccountsDatabase(server: AccountsServer): Promise<AccountsDatabase> {
  const name = `accounts${++databases}`
  const faults = await startStatementFaults(server.url)
  const { user, password } = server
  const open = (): Promise<Store> =>
    openClickHouseStore(
      { url: faults.url, user, password, database: name },
      { nowMs: () => systemClock.nowMs(), wait: (ms) => delay(systemClock, ms) },
    )
  let store = await open()
  await server.prepare?.(`${name}_base`)

  async function merge(): Promise<void> {
    const like = `database = '${name}_base' AND name LIKE '%account%' AND name NOT LIKE '%activity'`
    const tables = await server.run(`SELECT name FROM system.tables WHERE ${like}`)
    for (const table of tables.trim().split('\n')) await server.run(`OPTIMIZE TABLE ${name}_base.${table} FINAL`)
  }

  async function states(): Promise<AccountStates> {
    const text = await server.run(`SELECT pubkey, slot, lamports FROM ${name}.accounts ORDER BY pubkey`)
    const lines = text === '' ? [] : text.trimEnd().split('\n')
    const found = lines.map((line) => line.split('\t') as [string, string, string])
    const byKey = Object.fromEntries(
      found.map(([key, slot, balance]) => [key, [Number(slot), Number(balance)] as const]),
    )
    assert.equal(Object.keys(byKey).length, found.length, 'an account has one row')
    return byKey
  }

  return {
    name,
    faults,
    store: {
      async write(batch) {
        if (batch.rewindFrom !== undefined) await merge()
        await store.write(batch)
      },
      async rewind(fromSlot) {
        await merge()
        await store.rewind(fromSlot)
      },
      progress: () => store.progress(),
    },
    states,
    async keptSlots() {
      const text = await server.run(`SELECT min(slot), max(slot) FROM ${name}_base._account_updates HAVING count() > 0`)
      return text === '' ? [] : text.trimEnd().split('\t').map(Number)
    },
    async reopen() {
      await merge()
      await store[Symbol.asyncDispose]()
      await server.prepareReopen?.(name)
      store = await open()
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await faults[Symbol.asyncDispose]()
    },
  }
}

/** Registers the tests of accounts in blocks that are replaced, which hold on servers of both dialects. */
export function testReplacedAccounts(server: () => AccountsServer): void {
  test('accounts of a replaced block have the state of the blocks before it', async () => {
    await using database = await openAccountsDatabase(server())
    const { store, states } = database
    await store.write(accountBatchOf([{ slot: 10, balances: { a: 100, b: 1 } }]))
    await store.write(accountBatchOf([{ slot: 11, balances: { a: 50, c: 5 } }]))
    assert.deepEqual(await states(), { a: [11, 50], b: [10, 1], c: [11, 5] })
    await store.write(accountBatchOf([{ slot: 11, balances: { b: 2 } }], { rewindFrom: 11 }))
    assert.deepEqual(await states(), { a: [10, 100], b: [11, 2] })
  })

  test('they have it after a dead slot, after several slots, and where the blocks are parts of one batch', async () => {
    await using database = await openAccountsDatabase(server())
    const { store, states } = database
    await store.write(accountBatchOf([{ slot: 9, balances: { a: 9 } }]))
    await store.write(
      accountBatchOf([10, 11, 12].map((slot) => ({ slot, balances: { a: slot * 10, [`only${slot}`]: 1 } }))),
    )
    await store.rewind(12)
    assert.deepEqual(await states(), { a: [11, 110], only10: [10, 1], only11: [11, 1] })
    await store.write(accountBatchOf([{ slot: 14, balances: { a: 7 } }]))
    await store.rewind(10)
    assert.deepEqual(await states(), { a: [9, 9] })
    await store.rewind(9)
    assert.deepEqual(await states(), {})
  })

  test('an interrupted batch that is followed by another one leaves the states before it', async () => {
    await using database = await openAccountsDatabase(server())
    const { store, states, faults } = database
    await store.write(accountBatchOf([{ slot: 10, balances: { a: 100, b: 1 } }]))
    faults.cutAt(/INSERT INTO \S+account/, 'after')
    await assert.rejects(store.write(accountBatchOf([{ slot: 11, balances: { a: 50, c: 5 } }])))
    assert.equal(faults.cancel(), false)
    await database.reopen()
    // The blocks come again from getBlock, which has no accounts, and with one more of the stream.
    await store.write(accountBatchOf([11, 12].map((slot) => ({ slot, balances: slot === 12 ? { b: 2 } : {} }))))
    assert.deepEqual(await states(), { a: [10, 100], b: [12, 2] })
  })
}

const CUTS = [
  ['before the promotion', /INSERT INTO \S+ .*SELECT/, 'before', 1],
  ['before the progress is saved', /INSERT INTO \S+_progress/, 'before', 2],
  ['after the first partition is dropped', /DROP PARTITION/, 'after', 1],
  ['after the promotion', /INSERT INTO \S+ .*SELECT/, 'after', 1],
  ['before the second partition is dropped', /DROP PARTITION/, 'before', 2],
] as const

/** Registers the tests of states that become final, with a connection that is cut at each step, or only at the last ones of the list. */
export function testFinalAccounts(server: () => AccountsServer, cuts: number = CUTS.length): void {
  test('states by slot are kept while their blocks may be replaced, and for at most 64 slots more', async () => {
    await using database = await openAccountsDatabase(server())
    for (let slot = 5; slot < 400; slot += 60) {
      const block = { slot, balances: { a: slot, [`only${slot}`]: 1 } }
      await database.store.write(accountBatchOf([block], { finalizedSlot: slot - 10 }))
      const [from = 0, to] = await database.keptSlots()
      assert.ok(from >= slot - 10 - 64, `${from} at ${slot}`)
      assert.equal(to, slot)
    }
    const states = await database.states()
    assert.deepEqual(
      [states['a'], states['only5'], states['only365']],
      [
        [365, 365],
        [5, 1],
        [365, 1],
      ],
    )
    assert.equal(Object.keys(states).length, 8)
  })

  for (const [name, statement, when, nth] of CUTS.slice(-cuts))
    test(`no state is lost or old when the connection is cut ${name}`, async () => {
      await using database = await openAccountsDatabase(server())
      const { store, states, faults } = database
      const first = [
        { slot: 10, balances: { a: 1, b: 1, c: 1 } },
        { slot: 70, balances: { a: 2, b: 2 } },
      ]
      const last = { slot: 140, balances: { a: 3 } }
      await store.write(accountBatchOf(first))
      const batch = accountBatchOf([last], { finalizedSlot: 135 })
      faults.cutAt(statement, when, nth)
      await assert.rejects(store.write(batch))
      assert.equal(faults.cancel(), false)
      assert.deepEqual(await states(), accountStatesAfter([...first, last]))
      await store.write(batch)
      assert.deepEqual(await states(), accountStatesAfter([...first, last]))
      assert.deepEqual(await database.keptSlots(), [140, 140])
      await store.rewind(136)
      assert.deepEqual(await states(), accountStatesAfter(first))
      // Interrupted again, and then another batch after a restart.
      const second = [150, 210].map((slot) => ({ slot, balances: { a: slot, d: slot } }))
      await store.write(accountBatchOf(second))
      faults.cutAt(statement, when, nth)
      await assert.rejects(store.write(accountBatchOf([{ slot: 300, balances: { b: 9 } }], { finalizedSlot: 260 })))
      await database.reopen()
      await store.write(accountBatchOf([{ slot: 300, balances: {} }], { finalizedSlot: 270 }))
      assert.deepEqual(await states(), accountStatesAfter([...first, ...second]))
      assert.deepEqual(await database.keptSlots(), [])
    })

  test('states in final blocks stay when their batch is interrupted or written again without accounts', async () => {
    await using database = await openAccountsDatabase(server())
    const { store, states, faults } = database
    const blocks = [10, 11].map((slot) => ({ slot, balances: { a: slot } }))
    await store.write(accountBatchOf(blocks, { finalizedSlot: 20 }))
    const without = accountBatchOf(blocks.map(({ slot }) => ({ slot, balances: {} })))
    faults.cutAt(/INSERT INTO \S+_progress/, 'before', 4)
    await assert.rejects(store.write(without))
    assert.equal(faults.cancel(), false)
    faults.cutAt(/INSERT INTO \S+account/, 'after')
    await assert.rejects(store.write(accountBatchOf([{ slot: 12, balances: { a: 12, b: 12 } }])))
    assert.equal(faults.cancel(), false)
    await database.reopen()
    await store.write(accountBatchOf([{ slot: 12, balances: {} }]))
    assert.deepEqual(await states(), { a: [12, 12], b: [12, 12] })
  })
}

/** Registers the property: whatever happens, also when connections are cut at any statement. */
export function testAccountHistories(
  server: () => AccountsServer,
  counts: { readonly short: number; readonly full: number; readonly steps: number },
): void {
  test('after any history the accounts are those of the blocks that remain', async (t) => {
    for (const seed of seedsOf(t, counts)) {
      const random = createRandom(seed)
      await using database = await openAccountsDatabase(server())
      let [at, cuts] = [0, 0]
      for (const step of accountHistory(random, { steps: counts.steps, skippedMax: 12 })) {
        const { store, faults } = database
        const run = (): Promise<void> =>
          step.kind === 'rewind' ? store.rewind(step.fromSlot) : store.write(step.batch)
        if (random(2) === 0) faults.cutAt(/./, random(2) === 0 ? 'before' : 'after', 1 + random(12))
        await run().catch(async (error: unknown) => {
          if (faults.cancel()) throw error
          cuts++
          if (random(4) === 0) await database.reopen()
          await run()
        })
        faults.cancel()
        const where = `SLUICE_SEEDS=${seed}-${seed}, step ${at++}`
        assert.deepEqual(await database.states(), accountStatesAfter(step.chain), where)
      }
      t.diagnostic(`seed ${seed}: ${cuts} connections cut`)
    }
  })
}
