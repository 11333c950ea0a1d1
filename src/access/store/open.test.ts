import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, test } from 'node:test'
import { addCustomer, ENGINES, type Engines, startEngines } from '../../../test/support/store/engines.ts'
import { isServiceError } from '../../core/error.ts'
import { latestVersion, MIGRATIONS } from './migrations.ts'

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

  test(`without create an older store on ${engine} is refused and not migrated, so that older processes keep it`, async () => {
    await using bench = await engines.bench(engine)
    await using old = await bench.open({ migrations: MIGRATIONS })
    await addCustomer(old, 'acme')
    const version = latestVersion(MIGRATIONS) + 1
    const migrations = [...MIGRATIONS, { version, migrate: async () => undefined }]
    for (const check of ['full', 'quick'] as const)
      await assert.rejects(bench.open({ migrations, create: false, check }), (error) =>
        isServiceError(error, 'store-older'),
      )
    assert.deepEqual(
      (await bench.tamper('SELECT schema_version FROM meta')).map(([found]) => Number(found)),
      [version - 1],
    )
    await addCustomer(old, 'next')
    await (await bench.open({ migrations }))[Symbol.asyncDispose]()
    await using now = await bench.open({ migrations, create: false })
    assert.equal((await now.list('customers')).length, 2)
  })
}
