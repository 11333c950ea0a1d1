import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { addCustomer, ENGINES, type Engines, startEngines } from '../../../test/support/store-engines.ts'
import { isServiceError } from '../../core/error.ts'

let engines: Engines
before(async () => {
  engines = await startEngines()
})
after(() => engines[Symbol.asyncDispose]())

for (const engine of ENGINES) {
  test(`without create a missing store on ${engine} is an error, and none is made`, async () => {
    await using bench = await engines.bench(engine)
    for (const _ of [1, 2])
      await assert.rejects(bench.open({ create: false }), (error) => isServiceError(error, 'not-found'))
    assert.ok(!existsSync(bench.auditFile))
    {
      await using store = await bench.open()
      await addCustomer(store, 'acme')
    }
    await using again = await bench.open({ create: false })
    assert.equal((await again.list('customers')).length, 1)
  })
}
