import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { accountBatchOf } from '../../src/indexer/ingest/test-accounts.ts'
import { CLICKHOUSE_ADMIN, type ClickHouseServer, startClickHouse } from '../support/indexer/clickhouse.ts'
import {
  openAccountsDatabase,
  testAccountHistories,
  testFinalAccounts,
  testReplacedAccounts,
} from '../support/indexer/clickhouse-accounts.ts'

describe("accounts on the operator's ClickHouse, Debian's server", () => {
  let server: ClickHouseServer
  before(async () => {
    server = await startClickHouse()
  })
  after(() => server?.[Symbol.asyncDispose]())

  const opened = () => ({ url: server.url, ...CLICKHOUSE_ADMIN, run: server.run })
  testReplacedAccounts(opened)
  testFinalAccounts(opened)
  testAccountHistories(opened, { short: 2, full: 40, steps: 20 })

  test('the view and the rows of an earlier release are taken over', async () => {
    await using database = await openAccountsDatabase(opened())
    const { name, store, states } = database
    await store.write(accountBatchOf([{ slot: 5, balances: {} }], { finalizedSlot: 5 }))
    // It wrote every state into the table, and its view read nothing else.
    await server.run(`DROP TABLE ${name}.accounts`)
    await server.run(`DROP TABLE ${name}_base._account_updates`)
    await server.run(`CREATE VIEW ${name}.accounts AS SELECT pubkey, slot, lamports FROM ${name}_base.accounts FINAL`)
    const values = "('a', 4, 40, 1), ('b', 4, 40, 1), ('c', 7, 70, 1)"
    await server.run(`INSERT INTO ${name}_base.accounts (pubkey, slot, lamports, _version) VALUES ${values}`)
    await database.reopen()
    assert.deepEqual(await states(), { a: [4, 40], b: [4, 40], c: [7, 70] })
    await store.write(accountBatchOf([{ slot: 8, balances: { a: 80 } }]))
    assert.deepEqual(await states(), { a: [8, 80], b: [4, 40], c: [7, 70] })
    // The slots from 6 on are of an abandoned fork; the state of `c` before it is not known.
    await store.rewind(6)
    assert.deepEqual(await states(), { a: [4, 40], b: [4, 40] })
  })

  test('states are promoted after every statement of the writer that the server still runs', async () => {
    await using database = await openAccountsDatabase(opened())
    const { name, store } = database
    await store.write(accountBatchOf([{ slot: 10, balances: { a: 1 } }]))
    const { user, password } = CLICKHOUSE_ADMIN
    const authorization = `Basic ${Buffer.from(`${user}:${password}`).toString('base64')}`
    let isRunning = true
    // As a statement whose connection was cut.
    const left = fetch(`${server.url}/?query_id=sluice-ingest-${name}-1`, {
      method: 'POST',
      headers: { authorization },
      body: 'SELECT sleep(2)',
    }).then((response) => {
      isRunning = false
      return response.text()
    })
    await store.write(accountBatchOf([{ slot: 11, balances: {} }]))
    assert.equal(isRunning, true)
    await store.write(accountBatchOf([{ slot: 140, balances: {} }], { finalizedSlot: 130 }))
    assert.equal(isRunning, false)
    assert.equal(await left, '0\n')
    assert.deepEqual(await database.keptSlots(), [])
  })
})
