import { QueryError } from '../query/error.ts'

/** Bytes of results that wait until their clients have read them. */
export type ResultBudget = {
  /** Throws QueryError when `owner`, or all owners together, would hold more than the limit. */
  acquire(owner: string, bytes: number): void
  release(owner: string, bytes: number): void
  readonly heldBytes: number
}

export type ResultBudgetOptions = {
  readonly heldBytesMax: number
  readonly heldBytesPerSubscription: number
}

const RETRY_SECONDS = 1

export function createResultBudget(options: ResultBudgetOptions): ResultBudget {
  const byOwner = new Map<string, number>()
  let heldBytes = 0

  return {
    get heldBytes() {
      return heldBytes
    },
    acquire(owner, bytes) {
      const own = (byOwner.get(owner) ?? 0) + bytes
      if (own > options.heldBytesPerSubscription)
        throw refusal(options, 'heldBytesPerSubscription', 'this subscription')
      if (heldBytes + bytes > options.heldBytesMax) throw refusal(options, 'heldBytesMax', 'all subscriptions')
      heldBytes += bytes
      byOwner.set(owner, own)
    },
    release(owner, bytes) {
      heldBytes -= bytes
      const left = (byOwner.get(owner) ?? 0) - bytes
      if (left <= 0) byOwner.delete(owner)
      else byOwner.set(owner, left)
    },
  }
}

function refusal(options: ResultBudgetOptions, limit: keyof ResultBudgetOptions, whose: string): QueryError {
  return new QueryError(
    'CANNOT_SCHEDULE_TASK',
    `Results of ${whose} that are not read yet fill the limit indexer.query.${limit}: ${options[limit]} bytes. Read them, or try again in ${RETRY_SECONDS} seconds.`,
    RETRY_SECONDS,
  )
}
