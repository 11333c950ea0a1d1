import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import type { Customer } from '../../../src/access/store/model.ts'
import { type OpenStoreOptions, openStore, type StoreLocation } from '../../../src/access/store/open.ts'
import type { AccessStore, ChangeContext } from '../../../src/access/store/store.ts'
import { makeTestFolder } from '../../../src/platform/files/test-folder.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { startPostgres, type TestPostgres } from '../machine/postgres.ts'
import { isFull } from '../process/property.ts'

export const STORE_DEPS = { clock: systemClock, random: secureRandom, log: silentLogger }

export const CONTEXT: ChangeContext = {
  actor: { uid: 1000, user: 'operator', sudoUser: null, tty: '/dev/pts/0' },
  nowMs: Date.UTC(2027, 0, 1),
}

/** A store in a temporary folder, which may not exist yet. */
export type StoreBench = AsyncDisposable & {
  readonly engine: StoreLocation['engine']
  readonly folder: string
  readonly auditFile: string
  readonly options: OpenStoreOptions
  open(changes?: Partial<OpenStoreOptions>): Promise<AccessStore>
  /** Runs statements directly on the database, bypassing the store. */
  tamper(sql: string): Promise<unknown[][]>
}

export type Engines = AsyncDisposable & {
  readonly postgres: TestPostgres
  bench(engine: StoreLocation['engine']): Promise<StoreBench>
}

export const ENGINES = ['sqlite', 'postgres'] as const

export async function startEngines(options: { durable?: boolean } = {}): Promise<Engines> {
  const postgres = await startPostgres(options)
  let made = 0
  return {
    postgres,
    async bench(engine) {
      const folder = await mkdtemp(join(tmpdir(), 'sluice-store-'))
      const name = `store_${++made}`
      const file = join(folder, 'access.db')
      const location: StoreLocation =
        engine === 'sqlite' ? { engine, file } : { engine, url: await postgres.createDatabase(name) }
      const auditFile = join(folder, 'audit.log')
      const audit = { file: auditFile, mirror: 'this machine', toolVersion: '1.2.3' }
      const openOptions: OpenStoreOptions = { location, audit, check: 'full' }
      return {
        engine,
        folder,
        auditFile,
        options: openOptions,
        open: (changes = {}) => openStore({ ...openOptions, ...changes }, STORE_DEPS),
        async tamper(sql) {
          if (engine === 'postgres') return postgres.query(name, `SET search_path = sluice; ${sql}`)
          const database = new DatabaseSync(file)
          try {
            const statement = database.prepare(sql)
            statement.setReturnArrays(true)
            return statement.all() as unknown as unknown[][]
          } finally {
            database.close()
          }
        },
        [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
      }
    },
    [Symbol.asyncDispose]: () => postgres[Symbol.asyncDispose](),
  }
}

export type SqliteStore = AsyncDisposable & { readonly store: AccessStore }

/** A store on SQLite in a folder of its own, for what is the same on both engines. */
export async function openSqliteStore(): Promise<SqliteStore> {
  const folder = makeTestFolder()
  const location = { engine: 'sqlite', file: folder.file('access.db') } as const
  const audit = { file: folder.file('audit.log'), mirror: 'this machine', toolVersion: '1.2.3' }
  const store = await openStore({ location, audit, check: 'quick' }, STORE_DEPS)
  return {
    store,
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      folder[Symbol.dispose]()
    },
  }
}

export function customer(name: string): Omit<Customer, 'revision'> {
  return { id: `cus_${name}`, name, contact: `${name}@example.com`, state: 'active', createdAt: 1 }
}

/** One change that adds one customer. */
export async function addCustomer(store: AccessStore, name: string): Promise<void> {
  await store.change(CONTEXT, async (tx) => {
    await tx.put('customers', customer(name))
    return { audit: { action: 'customer.add', subjects: [`cus_${name}`], after: { name } }, result: undefined }
  })
}

/** The time within which a change is noticed: a second in the full check, more where other tests share the cores. */
export const SECOND_MS = isFull ? 1000 : 5000

/** Polls a condition in another process or behind a socket. */
export async function until(condition: () => boolean | Promise<boolean>, withinMs = 60_000): Promise<void> {
  const endMs = performance.now() + withinMs
  while (!(await condition())) {
    if (performance.now() > endMs) throw new Error(`the condition did not hold within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
