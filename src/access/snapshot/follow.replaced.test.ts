import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { addCustomer, openSqliteStore, STORE_DEPS, until } from '../../../test/support/store/engines.ts'
import { makeTestFolder } from '../../platform/files/test-folder.ts'
import { openStore } from '../store/open.ts'
import type { AccessStore } from '../store/store.ts'
import { followStore } from './follow.ts'

/** A store file with these customers, one change each. The lines of equal changes are equal, as in a restored copy. */
async function openStoreWith(names: readonly string[]) {
  const folder = makeTestFolder()
  const file = folder.file('access.db')
  const audit = { file: folder.file('audit.log'), mirror: 'this machine', toolVersion: '1.2.3' }
  const store = await openStore({ location: { engine: 'sqlite', file }, audit, check: 'quick' }, STORE_DEPS)
  for (const name of names) await addCustomer(store, name)
  return {
    ...{ store, file },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

/** Puts the rows of another store in the place of these, as a restore does while processes are cut off. */
function replaceRows(file: string, by: string): void {
  const database = new DatabaseSync(file)
  try {
    database.prepare('ATTACH DATABASE ? AS other').run(by)
    const tables = database.prepare("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
    const names = tables.all().map(({ name }) => String(name))
    database.exec('BEGIN IMMEDIATE')
    for (const name of names)
      database.exec(`DELETE FROM main."${name}"; INSERT INTO main."${name}" SELECT * FROM other."${name}"`)
    database.exec('COMMIT')
  } finally {
    database.close()
  }
}

describe('a store that was replaced by one with another history', () => {
  for (const { revision, names } of [
    { revision: 'a higher', names: ['acme', 'new-1', 'new-2', 'new-3'] },
    { revision: 'the same', names: ['acme', 'new-1', 'new-2'] },
    { revision: 'a lower', names: ['acme', 'new-1'] },
  ])
    test(`is read completely: ${revision} revision`, async () => {
      await using original = await openStoreWith(['acme', 'lost-1', 'lost-2'])
      await using restored = await openStoreWith(names)
      await using follower = await followStore(original.store, STORE_DEPS)
      let swaps = 0
      follower.onSwap(() => (swaps += 1))
      assert.equal(follower.current().customer('cus_lost-1')?.name, 'lost-1')
      replaceRows(original.file, restored.file)
      await until(() => swaps > 0, 10_000)
      const snapshot = follower.current()
      assert.equal(snapshot.revision, names.length)
      assert.equal(snapshot.counts().customers, names.length)
      for (const name of names) assert.equal(snapshot.customer(`cus_${name}`)?.name, name)
      assert.equal(snapshot.customer('cus_lost-1'), undefined)
    })
})

test('of a store that continues its history only the changed records are read', async () => {
  await using opened = await openSqliteStore()
  const { store } = opened
  await addCustomer(store, 'acme')
  const readFrom: number[] = []
  const watched: AccessStore = {
    ...store,
    read: (work) =>
      store.read((view) =>
        work({
          ...view,
          packedSince(kind, by, revision) {
            readFrom.push(revision)
            return view.packedSince(kind, by, revision)
          },
        }),
      ),
  }
  await using follower = await followStore(watched, STORE_DEPS)
  readFrom.length = 0
  await addCustomer(store, 'second')
  await until(() => follower.current().revision === 2, 10_000)
  assert.deepEqual([...new Set(readFrom)], [1])
  assert.equal(follower.current().counts().customers, 2)
})
