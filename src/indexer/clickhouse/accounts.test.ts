import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { text } from 'node:stream/consumers'
import { describe, test } from 'node:test'
import type { Access } from '../../access/call-access.ts'
import { createManualClock } from '../../core/clock.ts'
import { silentLogger } from '../../platform/telemetry/logger.ts'
import { createClickHouseAccounts, openClickHouseAccounts } from './accounts.ts'
import { ClickHouseRefusal } from './link.ts'
import { TEST_PLAN } from './test-provision.ts'

function openRig(atServer: readonly string[] = [], refusal?: string) {
  const run: string[] = []
  const live = new Set(['u_a', 'u_b'])
  const revoked = new Set(['u_old'])
  /** How the statements begin that are refused. */
  let refused = ''
  let listings = 0
  let underWay = 0
  let mostUnderWay = 0
  let changed = (): void => {}
  const clock = createManualClock()
  const accounts = createClickHouseAccounts(
    { hosts: ['10.0.0.1'], limits: TEST_PLAN },
    {
      link: {
        async run(statement) {
          if (refusal !== undefined && statement.startsWith(refused)) throw new ClickHouseRefusal(refusal)
          run.push(statement)
          underWay += 1
          mostUnderWay = Math.max(mostUnderWay, underWay)
          await Promise.resolve()
          underWay -= 1
          return ''
        },
        insert: () => assert.fail(),
        async rows() {
          listings += 1
          if (refusal !== undefined) throw new ClickHouseRefusal(refusal)
          return atServer.map((name) => [name])
        },
      },
      log: silentLogger,
      clock,
      stateOf: (username) => (live.has(username) ? 'active' : revoked.has(username) ? 'revoked' : undefined),
      onChange(listener) {
        changed = listener
        return { [Symbol.dispose]() {} }
      },
    },
  )
  return {
    accounts,
    clock,
    run,
    live,
    revoke(username: string) {
      live.delete(username)
      revoked.add(username)
    },
    listings: () => listings,
    mostUnderWay: () => mostUnderWay,
    changed: () => changed(),
    refuse(text: string | undefined, statements = '') {
      refusal = text
      refused = statements
    },
  }
}

describe('accounts on the server', () => {
  test('may read the tables of the chain and the views of system', async (t) => {
    const statements: string[] = []
    const server = createServer((request, response) => {
      void text(request).then((statement) => {
        statements.push(statement)
        response.end()
      })
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    t.after(() => server.close())
    const { port } = server.address() as AddressInfo
    const limits = { memoryBytesMax: 1, readRowsMax: 1, queriesPerHour: 1, gateways: ['10.0.0.1'] }
    using accounts = openClickHouseAccounts(
      { url: `http://127.0.0.1:${port}`, user: 'admin', password: 'secret', ...limits },
      { database: 'chain', limits: { secondsMax: 1, rowsMax: 1, bytesMax: 1 }, concurrent: 1 },
      {
        access: {
          onChange: () => ({ [Symbol.dispose]() {} }),
          snapshot: () => ({ indexerCredential: () => ({ state: 'active' }) }),
        } as unknown as Access,
        log: silentLogger,
        clock: createManualClock(),
      },
    )
    await accounts.ensure({ username: 'u_a', password: 'first', plan: 'pro' })
    for (const table of ['blocks', '_system_tables', '_information_schema_columns'])
      assert.ok(statements.includes(`GRANT SELECT ON chain.${table} TO sluice_reader_pro`), table)
  })

  test('are created once for each login, and again for a new password or plan', async () => {
    const { accounts, run } = openRig()
    const login = { username: 'u_a', password: 'first', plan: 'pro' }
    await Promise.all([accounts.ensure(login), accounts.ensure(login)])
    const users = () => run.filter((statement) => /^(CREATE|ALTER) USER/.test(statement))
    assert.equal(users().length, 2)
    const sha256 = createHash('sha256').update('first').digest('hex')
    for (const statement of users()) assert.ok(statement.includes(`BY '${sha256}' HOST IP '10.0.0.1'`), statement)
    assert.ok(!run.join().includes('first'))
    await accounts.ensure({ ...login, password: 'second' })
    assert.equal(users().length, 4)
    assert.equal(run.filter((statement) => statement.startsWith('CREATE ROLE')).length, 1)
    await accounts.ensure({ ...login, password: 'second', plan: 'small' })
    assert.equal(run.at(-1), 'GRANT sluice_reader_small TO u_a WITH REPLACE OPTION')
    await accounts.ensure({ ...login, password: 'second', plan: 'small' })
    assert.equal(users().length, 6)
  })

  test('are dropped when the credential is no longer active', async () => {
    const { accounts, run, revoke, changed } = openRig()
    for (const username of ['u_a', 'u_b']) await accounts.ensure({ username, password: 'x', plan: 'pro' })
    run.length = 0
    changed()
    assert.deepEqual(run, [])
    revoke('u_a')
    changed()
    await new Promise(setImmediate)
    assert.deepEqual(run, ["KILL QUERY WHERE user = 'u_a' ASYNC", 'DROP USER IF EXISTS u_a'])
  })

  test('of earlier processes are dropped too, and those of other installations are left alone', async () => {
    const { run, revoke, changed } = openRig(['u_old', 'u_a', 'u_elsewhere'])
    await new Promise(setImmediate)
    assert.deepEqual(run, ["KILL QUERY WHERE user = 'u_old' ASYNC", 'DROP USER IF EXISTS u_old'])
    run.length = 0
    revoke('u_a')
    changed()
    changed()
    await new Promise(setImmediate)
    assert.deepEqual(run, ["KILL QUERY WHERE user = 'u_a' ASYNC", 'DROP USER IF EXISTS u_a'])
  })

  test('are dropped one after the other, and again with the next change where the server did not', async () => {
    const names = Array.from({ length: 200 }, (_, n) => `u_gone${n}`)
    const { accounts, run, live, revoke, changed, refuse, mostUnderWay } = openRig()
    for (const username of names) live.add(username)
    for (const username of names) await accounts.ensure({ username, password: 'x', plan: 'pro' })
    for (const username of names) revoke(username)
    run.length = 0
    refuse('Code: 1. The server is busy.')
    changed()
    await new Promise(setImmediate)
    refuse(undefined)
    run.length = 0
    changed()
    for (let turns = 0; turns < 20; turns++) await new Promise(setImmediate)
    const dropped = run.filter((statement) => statement.startsWith('DROP USER'))
    assert.equal(new Set(dropped).size, names.length)
    assert.equal(dropped.length, names.length)
    assert.equal(mostUnderWay(), 1)
  })

  test('are listed once, and again with the next change where the server refused it', async () => {
    const { listings, changed, run, refuse } = openRig(['u_old'], 'Code: 497. Not enough privileges. (ACCESS_DENIED)')
    await new Promise(setImmediate)
    assert.deepEqual([listings(), run], [1, []])
    refuse(undefined)
    for (let changes = 0; changes < 3; changes++) {
      changed()
      await new Promise(setImmediate)
    }
    assert.deepEqual([listings(), run.at(-1)], [2, 'DROP USER IF EXISTS u_old'])
  })

  test('a refusal of the server is a retryable error, and the next query tries again', async () => {
    const { accounts, run, refuse } = openRig()
    const login = { username: 'u_a', password: 'x', plan: 'pro' }
    refuse('Code: 497. DB::Exception: gateway: Not enough privileges. (ACCESS_DENIED)')
    await assert.rejects(
      accounts.ensure(login),
      (error: Error) => !error.message.includes('privileges') && error.name === 'QueryError',
    )
    refuse(undefined)
    await accounts.ensure(login)
    assert.ok(run.some((statement) => statement.startsWith('CREATE USER IF NOT EXISTS u_a')))
  })

  test('that the server has lost are created again with their plan, at most once a minute', async () => {
    const { accounts, run, clock } = openRig()
    const login = { username: 'u_a', password: 'x', plan: 'pro' }
    await accounts.ensure(login)
    const first = [...run]
    const sentMs = clock.monotonicMs()
    clock.advance(1)
    assert.equal(accounts.prepareRecreation(login, sentMs), true)
    assert.equal(accounts.prepareRecreation(login, sentMs), true, 'a query that was sent before')
    await Promise.all([accounts.ensure(login), accounts.ensure(login)])
    assert.deepEqual(run.slice(first.length), first)
    clock.advance(59_000)
    assert.equal(accounts.prepareRecreation(login, clock.monotonicMs()), false)
    clock.advance(1_000)
    assert.equal(accounts.prepareRecreation(login, clock.monotonicMs()), true)
  })

  test('that were revoked are not created again by a query that the server refuses late', async () => {
    const { accounts, run, revoke, changed, clock } = openRig()
    const login = { username: 'u_a', password: 'x', plan: 'pro' }
    await accounts.ensure(login)
    revoke('u_a')
    changed()
    await new Promise(setImmediate)
    run.length = 0
    assert.equal(accounts.prepareRecreation(login, clock.monotonicMs()), false)
    await assert.rejects(accounts.ensure(login), { name: 'QueryError', type: 'AUTHENTICATION_FAILED' })
    assert.deepEqual(run, [])
  })

  test('that are revoked while they are created do not stay', async () => {
    const { accounts, run, revoke, changed } = openRig()
    const made = accounts.ensure({ username: 'u_a', password: 'x', plan: 'pro' })
    revoke('u_a')
    changed()
    await assert.rejects(made, /revoked/)
    await new Promise(setImmediate)
    const ofUser = run.filter((statement) => /^(CREATE|DROP) USER/.test(statement))
    assert.equal(ofUser.at(-1), 'DROP USER IF EXISTS u_a')
  })

  test('that the server has lost share the work for their plan', async () => {
    const { accounts, run, clock } = openRig()
    const logins = ['u_a', 'u_b'].map((username) => ({ username, password: 'x', plan: 'pro' }))
    for (const login of logins) await accounts.ensure(login)
    run.length = 0
    for (const login of logins) {
      clock.advance(1_000)
      assert.equal(accounts.prepareRecreation(login, clock.monotonicMs()), true)
      await accounts.ensure(login)
    }
    assert.equal(run.filter((statement) => statement.startsWith('CREATE ROLE')).length, 1)
    assert.equal(run.filter((statement) => statement.startsWith('CREATE USER')).length, 2)
  })

  test('that cannot be created because their plan was lost again are created with it by the next query', async () => {
    const { accounts, run, clock, refuse } = openRig()
    const logins = ['u_a', 'u_b'].map((username) => ({ username, password: 'x', plan: 'pro' }))
    for (const login of logins) await accounts.ensure(login)
    const [a, b] = logins as [(typeof logins)[0], (typeof logins)[0]]
    assert.equal(accounts.prepareRecreation(a, clock.monotonicMs()), true)
    await accounts.ensure(a)
    clock.advance(20_000)
    assert.equal(accounts.prepareRecreation(b, clock.monotonicMs()), true)
    refuse('Code: 511. There is no role pro', 'CREATE USER')
    await assert.rejects(accounts.ensure(b), /not ready/)
    refuse(undefined)
    run.length = 0
    await accounts.ensure(b)
    assert.equal(run.filter((statement) => statement.startsWith('CREATE ROLE')).length, 1)
  })
})
