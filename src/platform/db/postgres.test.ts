import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { inspect } from 'node:util'
import { startPostgres, type TestPostgres } from '../../../test/support/machine/postgres.ts'
import { SECOND_MS, until } from '../../../test/support/store/engines.ts'
import { isServiceError } from '../../core/error.ts'
import { systemClock } from '../process/clock.ts'
import { secureRandom } from '../process/random.ts'
import { silentLogger } from '../telemetry/logger.ts'
import { openPostgres, type PostgresOptions } from './postgres.ts'
import type { SqlDatabase } from './sql.ts'

const PASSWORD = 'correct-horse-battery'
const deps = { clock: systemClock, random: secureRandom, log: silentLogger }

let server: TestPostgres
before(async () => {
  server = await startPostgres({ password: PASSWORD })
})
after(() => server[Symbol.asyncDispose]())

const open = (changes: Partial<PostgresOptions> = {}): Promise<SqlDatabase> =>
  openPostgres({ url: server.url, password: PASSWORD, ...changes }, deps)

test('opens with the right password; without it is unavailable, and no error shows a password', async () => {
  await using database = await open()
  assert.deepEqual(await database.rows('SELECT ?', ['x']), [['x']])
  for (const changes of [
    { password: 'wrong-horse' },
    { url: server.url.replace(/:\d+\//, ':1/') },
    { url: server.url.replace(/sluice$/, 'nowhere') },
  ]) {
    await assert.rejects(open(changes), (error) => {
      assert.ok(isServiceError(error, 'store-unavailable'), String(error))
      assert.doesNotMatch(inspect(error, { depth: 10, showHidden: true }), /horse/)
      return true
    })
  }
})

test('a server without TLS: the fix names sslmode', async () => {
  await assert.rejects(open({ url: `${server.url}?sslmode=require` }), (error) => {
    assert.ok(isServiceError(error, 'store-unavailable'), String(error))
    assert.match(error.fix ?? '', /sslmode=disable/)
    return true
  })
})

test('returns numbers as numbers, and the pages of a long result in order', async () => {
  await using database = await open()
  await database.change(async (tx) => {
    await tx.run('CREATE TABLE numbers (n BIGINT PRIMARY KEY)')
    await tx.run('INSERT INTO numbers SELECT generate_series(1, 1234)')
    assert.ok(await tx.hasTable('numbers'))
  })
  const seen: unknown[] = []
  for await (const page of database.pages('SELECT n FROM numbers WHERE n > ? ORDER BY n', [4]))
    seen.push(...page.flat())
  assert.deepEqual(
    seen,
    Array.from({ length: 1230 }, (_, at) => at + 5),
  )
  for await (const _page of database.pages('SELECT n FROM numbers')) break
  await assert.rejects(
    database.change((tx) => tx.run('INSERT INTO numbers VALUES (7)')),
    { code: 'already-exists' },
  )
  assert.ok(!(await database.hasTable('letters')))
})

test('still reports changes after the listening connection is closed', async () => {
  await using database = await open()
  let stirs = 0
  await using _watching = await database.watch(() => void (stirs += 1))
  const listeners = "SELECT pid FROM pg_stat_activity WHERE query LIKE 'LISTEN%'"
  const [[pid] = []] = await server.query('sluice', listeners)
  assert.equal(typeof pid, 'number')
  await server.query('sluice', `SELECT pg_terminate_backend(${String(pid)})`)
  await until(async () => (await server.query('sluice', listeners)).some(([other]) => other !== pid))
  const before = stirs
  await database.change(async () => {})
  await until(() => stirs > before, SECOND_MS)
})

test('refuses a schema name with other characters than a name', async () => {
  await assert.rejects(open({ schema: 'a; DROP TABLE x' }), { code: 'config-invalid' })
})

test('two processes that open an empty database at once create one schema', async () => {
  const url = await server.createDatabase('fresh')
  const opened = await Promise.all([1, 2, 3].map(() => open({ url, schema: 'own' })))
  await Promise.all(opened.map((database) => database[Symbol.asyncDispose]()))
})
