import { StoreGone, type StoreProcess } from '../duckdb/process.ts'
import type { QueryResponse } from '../duckdb/protocol.ts'
import type { QuerySummary } from '../duckdb/run-query.ts'
import { QueryError } from './error.ts'
import { RETRY_SECONDS } from './permits.ts'

/** The result of a query. What is not read yet stays in the database process. */
export type QueryResult = QuerySummary &
  Disposable & {
    readonly bytes: number
    /** In order, each asked for when the one before it was taken. Rejects with QueryError when the rest is lost. */
    parts(): AsyncIterable<Uint8Array>
  }

type Done = Extract<QueryResponse, { readonly ok: true }>['done']

/** Disposed of, it gives back its permit and what the database process still holds. */
export function readResult(
  id: number,
  { first, ...summary }: Done,
  { store, permit }: { readonly store: Pick<StoreProcess, 'ask'>; readonly permit: Disposable },
): QueryResult {
  let leftBytes = summary.bytes - first.byteLength

  async function* parts(): AsyncGenerator<Uint8Array> {
    yield first
    while (leftBytes > 0) {
      const part = await next()
      leftBytes -= part.byteLength
      yield part
    }
  }

  async function next(): Promise<Uint8Array> {
    try {
      const part = await store.ask({ kind: 'read', id })
      if (part.byteLength > 0) return part
    } catch (error) {
      if (!(error instanceof StoreGone)) throw error
    }
    throw new QueryError(
      'SOCKET_TIMEOUT',
      'The rest of the result is lost: the database was started again.',
      RETRY_SECONDS,
    )
  }

  return {
    ...summary,
    parts,
    [Symbol.dispose]() {
      if (leftBytes > 0) store.ask({ kind: 'discard', id }).catch(() => {})
      leftBytes = 0
      permit[Symbol.dispose]()
    },
  }
}

/** All of it, for a reader that is not behind a connection. */
export async function collectResult(result: QueryResult): Promise<Uint8Array> {
  return Buffer.concat(await Array.fromAsync(result.parts()))
}
