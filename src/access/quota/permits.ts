import type { Limits } from '../../contract/limits.ts'
import { recordOf } from '../../core/records.ts'
import { ACCOUNTS_MAX } from './ledger.ts'
import { QuotaMemory } from './memory.ts'
import { createQuotaMemory } from './memory-layout.ts'
import { PERMIT_NAMES, type PermitName } from './permit-table.ts'

export type PermitCounts = Readonly<Record<PermitName, number>>

/** Open connections among the permits: a subscription is part of one. */
export function connectionsOf({ wsConnections, grpcStreams }: PermitCounts): number {
  return wsConnections + grpcStreams
}

export type Permit = Disposable & {
  readonly ok: true
  /** Releases the permit; further calls have no effect. */
  release(): void
}

export type NoPermit = {
  readonly ok: false
  readonly reason: 'over-limit'
  readonly limitName: PermitName
  readonly limitSize: number
}

export type Permits = {
  /** Acquires a permit of the subscription, to be released when the connection, subscription or stream closes. */
  acquire(subscriptionId: string, name: PermitName, limits: Limits): Permit | NoPermit
  /** Permits that are taken, in all processes where they are shared; those of the others as last reported. */
  taken(subscriptionId: string): PermitCounts
  /** Permits that all subscriptions together have taken in this process. */
  total(): PermitCounts
}

/**
 * Connection limits of the process, over all its threads; with a shared store, of all processes. A limit lowered below the current count closes
 * nothing, but no further permit is given until enough are released. `wake` makes the thread with the shared store look for requests.
 */
export function createPermits(
  memory: QuotaMemory = new QuotaMemory(createQuotaMemory({ accountsMax: ACCOUNTS_MAX, threads: 1 }), 0),
  wake: () => void = () => {},
): Permits {
  const { permitTable, sharing } = memory
  const requestExchange = () => {
    sharing.request()
    wake()
  }

  class AcquiredPermit implements Permit {
    readonly ok = true
    readonly #cell: number
    readonly #kind: number
    #isTaken = true

    constructor(cell: number, kind: number) {
      this.#cell = cell
      this.#kind = kind
    }

    release(): void {
      if (!this.#isTaken) return
      this.#isTaken = false
      permitTable.add(this.#cell, this.#kind, -1)
    }

    [Symbol.dispose](): void {
      this.release()
    }
  }

  const countsOf = (countOf: (kind: number) => number): PermitCounts =>
    recordOf(PERMIT_NAMES, (_name, kind) => countOf(kind))

  return {
    acquire(subscriptionId, name, limits) {
      const limitSize = limits[name]
      const kind = PERMIT_NAMES.indexOf(name)
      const limit = limitSize ?? Number.POSITIVE_INFINITY
      const cell = memory.acquirePermit(subscriptionId, kind, limit)
      if (cell === 0) {
        // The count of the other processes may be old.
        if (sharing.isReachable) requestExchange()
        return { ok: false, reason: 'over-limit', limitName: name, limitSize: limitSize ?? 0 }
      }
      if (sharing.isDue(cell, kind, permitTable.of(cell, kind), limit)) requestExchange()
      return new AcquiredPermit(cell, kind)
    },
    taken(subscriptionId) {
      const cell = memory.find(subscriptionId)
      return countsOf((kind) => (cell === 0 ? 0 : permitTable.of(cell, kind) + sharing.others(cell, kind)))
    },
    total: () => countsOf((kind) => permitTable.total(kind)),
  }
}
