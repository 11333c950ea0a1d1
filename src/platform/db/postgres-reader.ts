import type pg from 'pg'
import { type StorePosition, translatePostgresErrors } from './postgres-error.ts'
import { openTransaction, READ_ONLY } from './postgres-transaction.ts'
import type { SqlReader, SqlRow, SqlValue, SqlWriter } from './sql.ts'

export type PostgresStore = { readonly schema: string; readonly position: StorePosition }

/** Rows fetched per round trip. */
const PAGE_ROWS = 500

/** Reads on any connection of the pool; the pages of one result have a transaction of their own. */
export function createPoolReader(pool: pg.Pool, store: PostgresStore): SqlReader {
  return {
    ...createStatements(pool, store),
    async *pages(sql, values) {
      await using view = await openTransaction(pool, READ_ONLY, store.position)
      yield* createReader(view.client, store).pages(sql, values)
    },
  }
}

/** Reads in the transaction of a connection. */
export function createReader(client: pg.PoolClient, store: PostgresStore): SqlReader {
  const statements = createStatements(client, store)
  let cursors = 0
  return {
    ...statements,
    async *pages(sql, values) {
      const cursor = `pages_${++cursors}`
      await statements.rows(`DECLARE ${cursor} NO SCROLL CURSOR FOR ${sql}`, values)
      for (;;) {
        const page = await statements.rows(`FETCH ${PAGE_ROWS} FROM ${cursor}`)
        const { length } = page
        if (length > 0) yield page
        // The driver's results reference each other; an emptied one retains nothing until the next full collection.
        page.length = 0
        if (length < PAGE_ROWS) break
      }
      await statements.rows(`CLOSE ${cursor}`)
    },
  }
}

export function createWriter(client: pg.PoolClient, store: PostgresStore): SqlWriter {
  const reader = createReader(client, store)
  return { ...reader, run: async (sql, values) => void (await reader.rows(sql, values)) }
}

function createStatements(on: pg.Pool | pg.PoolClient, { schema, position }: PostgresStore): Omit<SqlReader, 'pages'> {
  async function rows(sql: string, values: readonly SqlValue[] = []): Promise<SqlRow[]> {
    const statement = { text: numbered(sql), values: [...values], rowMode: 'array' as const }
    return (await translatePostgresErrors(position, () => on.query<SqlValue[]>(statement))).rows
  }
  return {
    isRemote: true,
    rows,
    hasTable: async (name) =>
      (await rows('SELECT 1 FROM pg_tables WHERE schemaname = ? AND tablename = ?', [schema, name])).length > 0,
  }
}

/** Replaces `?` with `$1`, `$2` …. Sluice's statements have no `?` inside quotes. */
function numbered(sql: string): string {
  let count = 0
  return sql.replaceAll('?', () => `$${++count}`)
}
