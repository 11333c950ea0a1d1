import assert from 'node:assert/strict'
import { sourceOf } from '../../../src/indexer/duckdb/ddl.ts'
import { openDuckDatabase } from '../../../src/platform/db/duckdb.ts'
import { makeTestFolder } from '../../../src/platform/files/test-folder.ts'
import { CLICKHOUSE_ADMIN, startClickHouse } from './clickhouse.ts'
import type { TruthEngine } from './truth.ts'

const DATABASE = 'truth'
const LIMITS = { secondsMax: 60, rowsMax: 1000, bytesMax: 1_000_000 }
const RESULTS = { heldBytesMax: 2 ** 27, heldBytesPerSubscription: 2 ** 26 }

/** The embedded database, in a folder of its own. */
export async function openEmbedded(): Promise<TruthEngine> {
  const folder = makeTestFolder()
  const path = folder.file('chain.duckdb')
  let queries = 0
  return {
    store: { path, memoryBytes: 512 * 1024 * 1024, threads: 2, results: RESULTS },
    async injectFault() {},
    async queryLive(supervisor, query) {
      const job = { query, parameters: {}, defaultFormat: 'JSONCompact', settings: {}, limits: LIMITS }
      const response = await supervisor
        .store()
        ?.ask({ kind: 'query', id: ++queries, job, owner: 'test' })
        .catch(() => undefined)
      if (response === undefined || !response.ok) return undefined
      return (JSON.parse(Buffer.from(response.first).toString()) as { data: unknown[][] }).data
    },
    async find() {
      const database = await openDuckDatabase(path)
      const connection = await database.connect()
      const rowsOf = async (sql: string): Promise<unknown[][]> => {
        const pieces = [...(await connection.run(sql)).pieces()]
        return pieces.flatMap((columns) => (columns[0] ?? []).map((_, at) => columns.map((column) => column[at])))
      }
      const ranges = await rowsOf('SELECT from_slot, to_slot FROM base._ranges')
      assert.equal(ranges.length, 1)
      assert.deepEqual(await rowsOf('SELECT DISTINCT from_slot, to_slot FROM base.coverage'), ranges)
      return {
        range: (ranges[0] as unknown[]).map(Number) as [number, number],
        // Rows and ranges change in one transaction, so there are no rows beyond the range.
        rowsOf: (table, columns) => rowsOf(`SELECT ${columns.join(', ')} FROM base.${sourceOf(table)}`),
        async [Symbol.asyncDispose]() {
          connection[Symbol.dispose]()
          database[Symbol.dispose]()
        },
      }
    },
    async [Symbol.asyncDispose]() {
      folder[Symbol.dispose]()
    },
  }
}

/** A ClickHouse server of its own. */
export async function openClickHouse(): Promise<TruthEngine> {
  const server = await startClickHouse()
  const rowsOf = async (query: string): Promise<unknown[][]> =>
    (JSON.parse(await server.run(`${query} FORMAT JSONCompact`)) as { data: unknown[][] }).data
  return {
    store: {
      clickhouse: { url: server.url, ...CLICKHOUSE_ADMIN, database: DATABASE },
      path: '',
      memoryBytes: 0,
      threads: 0,
      results: RESULTS,
    },
    async injectFault() {
      await server.kill()
      await server.start()
    },
    queryLive: (_supervisor, query) => rowsOf(query.replace(' FROM ', ` FROM ${DATABASE}.`)).catch(() => undefined),
    async find() {
      const [reported] = await rowsOf(`SELECT DISTINCT from_slot, to_slot, open_gaps FROM ${DATABASE}.coverage`)
      const [from, to, gaps] = (reported ?? []).map(Number) as [number, number, number]
      assert.equal(gaps, 0)
      return {
        range: [from, to],
        // Rows beyond the range belong to a batch that was interrupted.
        rowsOf: (table, columns, last) =>
          rowsOf(`SELECT ${columns.join(', ')} FROM ${DATABASE}.${table} WHERE slot <= ${last}`),
      }
    },
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}
