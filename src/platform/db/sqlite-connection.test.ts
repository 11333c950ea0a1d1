import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createManualClock } from '../../core/clock.ts'
import { createSeededRandom } from '../../core/random.ts'
import { makeTestFolder } from '../files/test-folder.ts'
import { createSqliteFile, openSqlite } from './sqlite.ts'

test('a change that leaves the pages of a result early does not lock out the changes after it', async () => {
  using folder = makeTestFolder()
  const deps = { clock: createManualClock(), random: createSeededRandom(1) }
  const options = { file: folder.file('numbers.db'), lockWaitMs: 0 }
  await createSqliteFile(options, deps, (database) =>
    database.change(async (tx) => {
      await tx.run('CREATE TABLE numbers (n BIGINT NOT NULL)')
      for (let n = 0; n < 500; n++) await tx.run('INSERT INTO numbers VALUES (?)', [n])
    }),
  )
  await using database = await openSqlite(options, deps)
  const add = (n: number) => database.change((tx) => tx.run('INSERT INTO numbers VALUES (?)', [n]))
  await database.change(async (tx) => {
    for await (const page of tx.pages('SELECT n FROM numbers')) {
      assert.deepEqual(page[0], [0])
      break
    }
  })
  await database.count((tx) => tx.run('INSERT INTO numbers VALUES (501)'))
  await add(502)
  assert.deepEqual(await database.rows('SELECT COUNT(*) FROM numbers'), [[502]])
})
