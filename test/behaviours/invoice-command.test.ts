import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { test } from 'node:test'
import { openStore } from '../../src/access/store/open.ts'
import { addBilledCustomer, FROM_MS, usageOf } from '../support/admin/billing.ts'
import { sluiceHere } from '../support/cli/in-process.ts'
import { temporaryFolder } from '../support/cli/run.ts'
import { STORE_DEPS } from '../support/store/engines.ts'

test('invoice preview shows lines and sums as table, JSON and CSV, and that no money is taken', async () => {
  await using home = await temporaryFolder()
  const config = home.file('sluice.toml')
  writeFileSync(
    config,
    '[billing.prices.build]\ncurrency = "EUR"\nperMonth = "31"\nperMillionUnits = "0.5"\nperGigabyte = "0.05"\n',
  )
  const env = { SLUICE_STATE: home.file('.sluice'), SLUICE_CONFIG: config }
  const run = (text: string) => sluiceHere(text.split(' '), env)
  await run('customer add first')
  {
    const file = home.file('.sluice/access.db')
    const audit = { file: home.file('.sluice/audit.log'), mirror: 'test', toolVersion: '0' }
    await using store = await openStore({ location: { engine: 'sqlite', file }, audit, check: 'quick' }, STORE_DEPS)
    for (const name of ['one', 'two']) await addBilledCustomer(store, name)
    await store.addUsage([usageOf('one', FROM_MS, 3_000_000, 'rpc', 4_000_000_000)], new Map())
  }
  const table = await run('invoice preview --month 2027-01')
  assert.equal(table.code, 0, table.stderr)
  assert.match(
    table.stdout,
    /^CUSTOMER +SUBSCRIPTION +PLAN +DAYS +UNITS +BYTES +BASE +USAGE +TRANSFER +AMOUNT +CURRENCY\n/,
  )
  assert.match(table.stdout, /one +one +build +22\/31 +3000000 +4000000000 +22\.00 +1\.50 +0\.20 +23\.70 +EUR/)
  assert.match(table.stderr, /total 45\.70 EUR\n.*takes no money/)
  const json = JSON.parse((await run('invoice preview --month 2027-01 --customer two --json')).stdout) as object
  assert.partialDeepStrictEqual(json, {
    lines: [{ subscription_id: 'sub_two', days: 22, days_of_month: 31, amount: '22.00' }],
    totals: [{ currency: 'EUR', amount: '22.00' }],
    without_price: 0,
    is_preview: true,
  })
  const csv = await run('invoice preview --month 2027-01 -o csv')
  assert.match(
    csv.stdout,
    /^customer,subscription,plan,days,units,bytes,base,usage,transfer,amount,currency,days_of_month,/,
  )
  assert.match(csv.stdout, /\none,one,build,22,3000000,4000000000,22\.00,1\.50,0\.20,23\.70,EUR,31,cus_one,sub_one\n/)
  assert.match((await run('invoice preview --month 2026-09')).stderr, /nothing to show for 2026-09/)
  assert.match((await run('invoice preview --month 2027-1')).stderr, /is not a month/)
  writeFileSync(config, '[billing.prices.grow]\ncurrency = "EUR"\nperMonth = "31"\n')
  assert.match(
    (await run('invoice preview --month 2027-01')).stderr,
    /2 subscriptions have no price: set billing\.prices\.PLAN/,
  )
  writeFileSync(config, '[billing.prices.build]\ncurrency = "EUR"\nperMonth = 31\n')
  assert.match((await run('invoice preview --month 2027-01')).stderr, /billing\.prices\.build\.perMonth/)
})
