import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { addBilledCustomer, FROM_MS, HOUR_MS, usageOf } from '../../../test/support/admin/billing.ts'
import { ENGINES, startEngines } from '../../../test/support/store/engines.ts'
import { USAGE_EXPORT_GROUPINGS } from '../../contract/usage-export.ts'
import { exportUsage } from './export.ts'

const engines = await startEngines()
after(() => engines[Symbol.asyncDispose]())

for (const engine of ENGINES)
  test(`the sums of an export are those of the ledger, on ${engine}`, async () => {
    await using bench = await engines.bench(engine)
    await using store = await bench.open()
    for (const name of ['one', 'two']) await addBilledCustomer(store, name)
    for (let hour = 0; hour < 60; hour++) {
      const used = [
        usageOf('one', FROM_MS + hour * HOUR_MS, hour + 1, 'rpc', 1000 * hour),
        usageOf('two', FROM_MS + hour * HOUR_MS, 7, 'ws', 5),
      ]
      const rows = used.map((row) => ({ ...row, methods: { getSlot: { calls: 1, units: row.units, refused: 0 } } }))
      await store.addUsage(rows, new Map())
    }
    // Complete days, since methods are counted by day.
    const period = { fromMs: FROM_MS, toMs: FROM_MS + 48 * HOUR_MS }
    const ledger = (await store.usage(period)).reduce((sum, { units }) => sum + units, 0)
    const bytes = (await store.usage(period)).reduce((sum, row) => sum + row.bytes, 0)
    for (const by of USAGE_EXPORT_GROUPINGS) {
      const lines = await Array.fromAsync(exportUsage(store, { ...period, by, format: 'jsonl' }))
      const rows = lines.map((line) => JSON.parse(line) as { units: number; bytes: number | null })
      assert.equal(
        rows.reduce((sum, { units }) => sum + units, 0),
        ledger,
        by,
      )
      const sent = rows.map((row) => row.bytes)
      if (by === 'method') assert.deepEqual(sent, [null, null], 'not counted by method')
      else
        assert.equal(
          sent.reduce<number>((sum, each) => sum + (each ?? Number.NaN), 0),
          bytes,
        )
      assert.equal(rows.length, by === 'day' ? 4 : 2)
      const csv = await Array.fromAsync(exportUsage(store, { ...period, by, format: 'csv' }))
      assert.equal(csv.length, rows.length + 1)
      assert.match(csv[1] ?? '', /^one,cus_one,one,sub_one,/)
    }
    const ofOne = await Array.fromAsync(
      exportUsage(store, { ...period, customerId: 'cus_two', by: 'day', format: 'csv' }),
    )
    assert.deepEqual(ofOne.slice(1), [
      'two,cus_two,two,sub_two,2027-01-10,ws,,24,168,0,120\n',
      'two,cus_two,two,sub_two,2027-01-11,ws,,24,168,0,120\n',
    ])
  })

test('every subscription is in an export, however many are read at once', async () => {
  await using bench = await engines.bench('sqlite')
  await using store = await bench.open()
  const names = Array.from({ length: 20 }, (_, at) => `n${String(at).padStart(2, '0')}`)
  for (const name of names) await addBilledCustomer(store, name)
  await store.addUsage(
    names.map((name) => usageOf(name, FROM_MS, 1, 'rpc', 1)),
    new Map(),
  )
  const period = { fromMs: FROM_MS, toMs: FROM_MS + HOUR_MS }
  const lines = await Array.fromAsync(exportUsage(store, { ...period, by: 'day', format: 'csv' }))
  assert.deepEqual(
    lines.slice(1).map((line) => line.split(',').slice(0, 3).join(' ')),
    names.map((name) => `${name} cus_${name} ${name}`),
  )
})
