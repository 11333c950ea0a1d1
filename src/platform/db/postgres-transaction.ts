import type pg from 'pg'
import { ServiceError } from '../../core/error.ts'
import { postgresError, type StorePosition, translatePostgresErrors } from './postgres-error.ts'
import { CommitInDoubt } from './sql.ts'

export type PostgresTransaction = AsyncDisposable & {
  readonly client: pg.PoolClient
  commit(): Promise<void>
}

export type BeginOptions = {
  /** The statements that open the transaction. */
  readonly begin: readonly string[]
  /** How long these may wait for a lock. */
  readonly lockWaitMs?: number
  /** Whether it is to write. */
  readonly isWriting?: boolean
}

/** A view of one state of the database. */
export const READ_ONLY: BeginOptions = { begin: ['BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY'] }

/** The timeout of BEGIN: a reachable server responds at once, a connection that died silently does not. */
const BEGIN_TIMEOUT_MS = 5000
/** The timeout of ROLLBACK, and of the question after it. */
const ROLLBACK_TIMEOUT_MS = 1000

/** A transaction on a connection of its own; leaving it without a commit rolls it back. */
export async function openTransaction(
  pool: pg.Pool,
  { begin, lockWaitMs = 0, isWriting = false }: BeginOptions,
  position: StorePosition,
): Promise<PostgresTransaction> {
  const client = await translatePostgresErrors(position, () => pool.connect())
  let ended = false
  const transaction: PostgresTransaction = {
    client,
    async commit() {
      const { command } = await client.query('COMMIT').catch((error: unknown) => {
        throw new CommitInDoubt(position.name, postgresError(error, position))
      })
      ended = true
      // The server responds with ROLLBACK when a statement failed before: nothing was committed.
      if (command !== 'COMMIT')
        throw new ServiceError('store-unavailable', `${position.name} did not commit the change`)
    },
    async [Symbol.asyncDispose]() {
      const yes = () => true
      const no = () => false
      const isCommitted = ended
      ended ||= await client.query(limited('ROLLBACK', ROLLBACK_TIMEOUT_MS)).then(yes, no)
      const isUsable = ended && (isCommitted || !isWriting || (await mayWrite()))
      // A connection that cannot roll back is closed; the server then rolls back.
      client.release(!isUsable)
    },
  }
  /** After a failover the server of this connection may be a standby: the next connection may lead to its successor. */
  function mayWrite(): Promise<boolean> {
    return client.query(limited('SHOW transaction_read_only', ROLLBACK_TIMEOUT_MS)).then(
      ({ rows }) => (rows[0] as { transaction_read_only?: unknown } | undefined)?.transaction_read_only !== 'on',
      () => false,
    )
  }

  try {
    // One message for all: otherwise each would be a round trip.
    const statement = limited(begin.join('; '), lockWaitMs + BEGIN_TIMEOUT_MS)
    await translatePostgresErrors(position, () => client.query(statement))
    return transaction
  } catch (error) {
    await transaction[Symbol.asyncDispose]()
    throw error
  }
}

/** A statement with its own timeout; the driver supports it but its types do not. */
function limited(text: string, timeoutMs: number): pg.QueryConfig {
  return { text, query_timeout: timeoutMs } as pg.QueryConfig
}
