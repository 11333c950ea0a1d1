import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import { openStore } from '../../src/access/store/open.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { STORE_DEPS } from '../support/store/engines.ts'

const day = (text: string) => Date.parse(`${text}Z`)

describe('sluice usage', () => {
  let home: Awaited<ReturnType<typeof temporaryFolder>>
  const run = (...words: string[]) => sluiceHere(words, { SLUICE_STATE: home.file('.sluice') })
  type Row = { subscription: string; method?: string; calls: number; units: number; customer: string; from?: string }
  const rows = async (...words: string[]) => {
    const { code, stdout, stderr } = await run('usage', ...words, '--json')
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout) as Row[]
  }

  before(async () => {
    home = await temporaryFolder()
    const ids = new Map<string, string>()
    for (const name of ['acme', 'beta']) {
      await run('customer', 'add', name)
      await run('sub', 'create', `${name}-prod`, '--customer', name, '--print-token')
      const shown = await run('sub', 'show', `${name}-prod`, '--json')
      ids.set(name, (JSON.parse(shown.stdout) as { id: string }).id)
    }
    const file = home.file('.sluice/access.db')
    const audit = { file: home.file('.sluice/audit.log'), mirror: 'test', toolVersion: '0' }
    await using store = await openStore({ location: { engine: 'sqlite', file }, audit, check: 'quick' }, STORE_DEPS)
    const add = (name: string, hour: string, calls: number) =>
      store.addUsage(
        [
          {
            subscriptionId: ids.get(name) as string,
            hour: day(hour),
            interface: 'rpc',
            calls,
            units: calls * 2,
            refused: 1,
            bytes: calls * 1000,
            methods: {
              getSlot: { calls: calls - 1, units: calls - 1, refused: 0 },
              getBlock: { calls: 1, units: calls + 1, refused: 1 },
            },
          },
        ],
        new Map(),
      )
    // Usage of an earlier version, which did not count methods.
    const old = { subscriptionId: ids.get('acme') as string, interface: 'rpc', calls: 3, units: 9, refused: 0 } as const
    await store.addUsage([{ ...old, hour: day('2026-08-10T10:00') }], new Map())
    await add('acme', '2026-09-30T23:00', 100)
    await add('acme', '2026-10-01T00:00', 10)
    await add('acme', '2026-10-31T23:00', 5)
    await add('acme', '2026-11-01T00:00', 1000)
    await add('beta', '2026-10-15T12:00', 7)
  })
  after(() => home[Symbol.asyncDispose]())

  test('--month is a calendar month in UTC, and its hours at both ends', async () => {
    assert.deepEqual(
      (await rows('--month', '2026-10')).map(({ subscription, calls, customer }) => [subscription, calls, customer]),
      [
        ['acme-prod', 15, 'acme'],
        ['beta-prod', 7, 'beta'],
      ],
    )
  })

  test('--customer selects all its subscriptions, and a misspelt name gets a suggestion', async () => {
    assert.deepEqual(
      (await rows('--month', '2026-10', '--customer', 'beta')).map(({ calls }) => calls),
      [7],
    )
    const misspelt = await run('usage', '--customer', 'betta')
    assert.match(misspelt.stderr, /no customer "betta", did you mean "beta"/)
    const other = await run('usage', '--customer', 'beta', '--sub', 'acme-prod')
    assert.match(other.stderr, /"acme-prod" does not belong to customer "beta"/)
  })

  test('--since and --until include both days', async () => {
    const found = await rows('--since', '2026-10-01', '--until', '2026-10-31', '--sub', 'acme-prod', '--by', 'day')
    assert.deepEqual(
      found.map(({ from, calls }) => [from?.slice(0, 10), calls]),
      [
        ['2026-10-01', 10],
        ['2026-10-31', 5],
      ],
    )
  })

  test('--by method adds up to the same totals, in JSON, CSV and the table', async () => {
    const found = await rows('--month', '2026-10', '--customer', 'acme', '--by', 'method')
    assert.deepEqual(
      found.map(({ method, calls, units }) => [method, calls, units]),
      [
        ['getBlock', 2, 17],
        ['getSlot', 13, 13],
      ],
    )
    const [total] = await rows('--month', '2026-10', '--customer', 'acme')
    assert.equal(
      total?.units,
      found.reduce((sum, { units }) => sum + units, 0),
    )
    const whole = await run('usage', '--month', '2026-10', '--customer', 'acme')
    assert.match(whole.stdout, /^SUBSCRIPTION +INTERFACE +CALLS +UNITS +REFUSED +BYTES\n.* 15 +30 +2 +15000\n/)
    assert.match(whole.stderr, /15 calls, 30 units, 2 refused, 15000 bytes/)
    const csv = await run('usage', '--month', '2026-10', '--customer', 'acme', '--by', 'method', '-o', 'csv')
    assert.match(
      csv.stdout,
      /^subscription,interface,method,calls,units,refused,customer,subscription_id,customer_id\n/,
    )
    assert.match(csv.stdout, /acme-prod,rpc,getSlot,13,13,0,acme,sub_\w+,cus_\w+\n/)
    const table = await run('usage', '--month', '2026-10', '--by', 'method')
    assert.match(table.stdout, /^SUBSCRIPTION +INTERFACE +METHOD +CALLS +UNITS +REFUSED\n/)
    assert.match(table.stderr, /from 2026-10-01 to 2026-10-31 UTC: 22 calls, 44 units, 3 refused/)
  })

  test('usage from before methods were counted is reported, not hidden', async () => {
    const { stdout, stderr } = await run('usage', '--month', '2026-08', '--by', 'method')
    assert.equal(stdout, '')
    assert.match(stderr, /9 units of this period were used before methods were counted/)
    const later = await run('usage', '--month', '2026-10', '--by', 'method')
    assert.doesNotMatch(later.stderr, /before methods were counted/)
  })

  test('a period that is wrong is refused, an empty one is explained', async () => {
    for (const [words, message] of [
      [['--month', '2026-13'], /"2026-13" is not a month: write a year and a month such as/],
      [['--month', 'october'], /is not a month/],
      [['--month', '2026-10', '--since', '7d'], /--month is a complete period/],
      [['--since', '2026-10-02', '--until', '2026-10-01'], /ends before it begins/],
      [['--until', 'yesterday'], /"yesterday" is not a valid last day/],
    ] as const) {
      const { code, stderr } = await run('usage', ...words)
      assert.notEqual(code, 0)
      assert.match(stderr, message)
    }
    const empty = await run('usage', '--month', '2020-02')
    assert.equal(empty.code, 0)
    assert.match(empty.stderr, /no usage from 2020-02-01 to 2020-02-29 UTC; usage is kept for 400 days/)
  })
})
