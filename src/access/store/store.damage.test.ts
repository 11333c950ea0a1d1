import assert from 'node:assert/strict'
import { copyFile, mkdtemp, readFile, rename, rm, stat, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, test } from 'node:test'
import { createRandom, repeatsOf, seedOf } from '../../../test/support/process/property.ts'
import { addCustomer, CONTEXT, customer, STORE_DEPS } from '../../../test/support/store/engines.ts'
import { isServiceError } from '../../core/error.ts'
import { type OpenStoreOptions, openStore } from './open.ts'
import type { AccessStore } from './store.ts'
import { RECORD_KINDS } from './tables.ts'

/** Number of bits flipped in each file. */
const FLIPS = repeatsOf({ short: 100, full: 2000 })

async function temporaryFolder(): Promise<AsyncDisposable & { path: string }> {
  const path = await mkdtemp(join(tmpdir(), 'sluice-damage-'))
  return { path, [Symbol.asyncDispose]: () => rm(path, { recursive: true, force: true }) }
}

function openIn(folder: string, check: OpenStoreOptions['check'] = 'full'): Promise<AccessStore> {
  const audit = { file: join(folder, 'audit.log'), mirror: 'here', toolVersion: '1' }
  return openStore({ location: { engine: 'sqlite', file: join(folder, 'access.db') }, audit, check }, STORE_DEPS)
}

const CHANGES = 12

/** One record of each kind. */
async function fill(store: AccessStore): Promise<void> {
  for (let at = 0; at < CHANGES; at++) {
    await store.change(CONTEXT, async (tx) => {
      const subscriptionId = `sub_${at}`
      await tx.put('customers', customer(`c${at}`))
      await tx.put('subscriptions', {
        id: subscriptionId,
        customerId: `cus_c${at}`,
        name: `s${at}`,
        plan: 'pro',
        products: ['bundle'],
        overrides: {},
        state: 'active',
        createdAt: at,
        validUntil: null,
      })
      await tx.put('tokens', {
        id: `tok_${at}`,
        subscriptionId,
        sha256: `${at}`.repeat(20),
        last4: 'abcd',
        state: 'active',
        createdAt: at,
        createdBy: 'root',
        notAfter: null,
      })
      await tx.put('notes', { id: `note_${at}`, subjectId: subscriptionId, text: 'note '.repeat(at), createdAt: at })
      return { audit: { action: 'test.fill', subjects: [subscriptionId] }, result: undefined }
    })
  }
  const counts = { calls: 5, units: 9, refused: 1 }
  const used = { subscriptionId: 'sub_1', hour: 0, interface: 'rpc', ...counts, methods: { getSlot: counts } } as const
  await store.addUsage([used, { ...used, hour: 3_600_000 }], new Map([['tok_1', 77]]))
  await store.sharedKey('ws-ticket')
}

/** Everything written to the store, as it returns it; lookups use the indexes. */
async function contentOf(store: AccessStore): Promise<unknown> {
  const content: unknown[] = [await store.revision(), await store.auditHead()]
  for (const kind of RECORD_KINDS) content.push(await store.list(kind))
  for (const { name } of await store.list('subscriptions')) content.push(await store.find('subscriptions', { name }))
  for (const { sha256 } of await store.list('tokens')) content.push(await store.find('tokens', { sha256 }))
  for await (const line of store.auditLines(1)) content.push(line)
  return content
}

/** Counted usage is not a change: the last of it may be lost with the write-ahead log, as in a power failure. */
async function countsOf(store: AccessStore): Promise<unknown> {
  const usage = [await store.usage({}), await store.methodUsage({})]
  return [...usage, await store.lastUsed('tok_1'), [...(await store.sharedKey('ws-ticket'))]]
}

/** Opens a damaged store: it is refused as corrupt, or returns everything that was acknowledged. */
async function detectedOrWhole(
  folder: string,
  { check, ...expected }: Expected & Pick<OpenStoreOptions, 'check'>,
  what: string,
): Promise<'detected' | 'whole'> {
  try {
    await using store = await openIn(folder, check)
    assert.deepEqual(await contentOf(store), expected.content, what)
    if (expected.counts) assert.deepEqual(await countsOf(store), expected.counts, what)
    return 'whole'
  } catch (error) {
    if (error instanceof assert.AssertionError) throw error
    assert.ok(isServiceError(error, 'store-corrupt'), `${what}: ${String(error)}`)
    assert.match(`${error.message} ${error.fix}`, /access\.db/, what)
    assert.match(error.fix ?? '', /sluice restore BACKUP|mv /, what)
    return 'detected'
  }
}

type Expected = { content: unknown; counts?: unknown }

/** An intact store and its content, with its changes still in the write-ahead log or all in the file. */
async function makeStore(folder: string, state: 'closed' | 'open'): Promise<Expected> {
  const store = await openIn(folder)
  await fill(store)
  const content = await contentOf(store)
  const counts = await countsOf(store)
  if (state === 'open') {
    for (const name of ['access.db', 'access.db-wal', 'audit.log'])
      await copyFile(join(folder, name), join(folder, `${name}.kept`))
  }
  await store[Symbol.asyncDispose]()
  if (state === 'closed') {
    for (const name of ['access.db', 'audit.log']) await copyFile(join(folder, name), join(folder, `${name}.kept`))
  }
  return state === 'closed' ? { content, counts } : { content }
}

/** Restores the saved files, one of them changed. */
async function damage(folder: string, name: string, change: (bytes: Buffer) => Buffer): Promise<void> {
  for (const each of ['access.db', 'access.db-wal', 'access.db-shm', 'audit.log']) {
    await rm(join(folder, each), { force: true })
    const kept = await readFile(join(folder, `${each}.kept`)).catch(() => undefined)
    if (kept) await writeFile(join(folder, each), each === name ? change(kept) : kept)
  }
}

const PAGE_BYTES = 4096

function rootPageOf(file: string, table: string): number {
  using database = new DatabaseSync(file)
  return database.prepare('SELECT rootpage FROM sqlite_master WHERE name = ?').get(table)?.['rootpage'] as number
}

describe('a damaged store file', () => {
  for (const [name, state, check] of [
    ['access.db', 'closed', 'full'],
    ['access.db', 'open', 'full'],
    ['access.db-wal', 'open', 'full'],
    ['access.db', 'closed', 'records'],
  ] as const) {
    test(`${FLIPS} bits flipped in ${name} of a store that was ${state}: detected by the check of ${check}, or of no consequence`, async (t) => {
      await using folder = await temporaryFolder()
      const made = await makeStore(folder.path, state)
      // What the indexes of the usage find is not part of the check of the records.
      const expected = check === 'full' ? { ...made, check } : { content: made.content, check }
      const random = createRandom(seedOf(t))
      const found = { detected: 0, whole: 0 }
      for (let flip = 0; flip < FLIPS; flip++) {
        let at = 0
        await damage(folder.path, name, (bytes) => {
          // Much of a small file is empty; four out of five flips hit bytes that are not zero.
          at = random(bytes.length * 8)
          for (let look = 0; look < 100 && flip % 5 > 0 && bytes[at >> 3] === 0; look++) at = random(bytes.length * 8)
          bytes[at >> 3] = (bytes[at >> 3] as number) ^ (1 << (at & 7))
          return bytes
        })
        found[await detectedOrWhole(folder.path, expected, `bit ${at & 7} of byte ${at >> 3}`)] += 1
      }
      t.diagnostic(`${found.detected} detected, ${found.whole} of no consequence`)
      if (state === 'closed') assert.ok(found.detected > FLIPS / 4, 'flips of used bytes are detected')
    })
  }

  test('a page of the history of usage: a process starts, and the usage is refused when it is read', async () => {
    await using folder = await temporaryFolder()
    await makeStore(folder.path, 'closed')
    const file = join(folder.path, 'access.db')
    const root = rootPageOf(file, 'usage_hours')
    await damage(folder.path, 'access.db', (bytes) => bytes.fill(0xff, (root - 1) * PAGE_BYTES, root * PAGE_BYTES))
    await assert.rejects(openIn(folder.path), { code: 'store-corrupt' })
    await using store = await openIn(folder.path, 'records')
    assert.equal((await store.list('customers')).length, CHANGES)
    await assert.rejects(store.usage({}), { code: 'store-corrupt' })
    assert.notDeepEqual(await store.integrity(), [])
  })

  test('truncated anywhere: refused, never opened as a new store', async (t) => {
    await using folder = await temporaryFolder()
    await makeStore(folder.path, 'closed')
    const random = createRandom(seedOf(t))
    const { size } = await stat(join(folder.path, 'access.db'))
    for (const length of [
      0,
      1,
      99,
      100,
      4096,
      size - 4096,
      size - 1,
      ...Array.from({ length: 20 }, () => random(size)),
    ]) {
      await damage(folder.path, 'access.db', (bytes) => bytes.subarray(0, length))
      await assert.rejects(openIn(folder.path), { code: 'store-corrupt' }, `cut to ${length}`)
      assert.equal((await stat(join(folder.path, 'access.db'))).size, length, 'the evidence stays')
    }
  })

  test('overwritten with zeros, completely or in part: refused', async () => {
    await using folder = await temporaryFolder()
    await makeStore(folder.path, 'closed')
    for (const [from, to] of [
      [0, undefined],
      [0, 16],
      [0, 4096],
      [4096, 8192],
    ] as const) {
      await damage(folder.path, 'access.db', (bytes) => bytes.fill(0, from, to ?? bytes.length))
      await assert.rejects(openIn(folder.path), { code: 'store-corrupt' }, `zeros from ${from}`)
    }
  })

  test('replaced by another database or by text: refused', async () => {
    await using folder = await temporaryFolder()
    await makeStore(folder.path, 'closed')
    await damage(folder.path, 'access.db', () => Buffer.from('not a database, but longer than a header '.repeat(10)))
    await assert.rejects(openIn(folder.path), { code: 'store-corrupt' })
  })

  test('missing while its log exists: refused; missing with its log: a new store', async () => {
    await using folder = await temporaryFolder()
    await makeStore(folder.path, 'closed')
    await rm(join(folder.path, 'access.db'))
    await assert.rejects(openIn(folder.path), { code: 'store-corrupt', message: /is missing/ })
    await rename(join(folder.path, 'audit.log'), join(folder.path, 'audit.log.old'))
    await using store = await openIn(folder.path)
    assert.equal(await store.revision(), 0)
  })

  test('an older backup with a newer log is refused until the operator moves the log away', async () => {
    await using folder = await temporaryFolder()
    await makeStore(folder.path, 'closed')
    {
      await using store = await openIn(folder.path)
      await addCustomer(store, 'after the backup')
    }
    await copyFile(join(folder.path, 'access.db.kept'), join(folder.path, 'access.db'))
    await assert.rejects(openIn(folder.path), { code: 'store-corrupt', message: /has lost changes: line 13 / })
    await rename(join(folder.path, 'audit.log'), join(folder.path, 'audit.log.old'))
    await using store = await openIn(folder.path)
    await addCustomer(store, 'after the restore')
    const lines = (await readFile(join(folder.path, 'audit.log'), 'utf8')).split('\n')
    assert.equal(
      lines.length,
      CHANGES + 2,
      'the new log has the complete chain of the restored store, and ends with a newline',
    )
  })

  test('a truncated log does not prevent changes to the store', async () => {
    await using folder = await temporaryFolder()
    await makeStore(folder.path, 'closed')
    await truncate(join(folder.path, 'audit.log'), 100)
    await using store = await openIn(folder.path)
    await addCustomer(store, 'still possible')
  })
})
