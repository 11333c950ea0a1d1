import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'

/** What stays open between requests and takes a seat of the plan. A kept RPC connection takes none, so it is not listed. */
export type ConnectionInterface = 'ws' | 'grpc'

/** How a connection ended: a WebSocket's close code, a gRPC status; nothing where the client just went. */
export type ConnectionEnd = { readonly code: number; readonly message?: string | undefined }

/** One open connection as its door knows it. */
export type OpenConnection = {
  readonly subscriptionId: string
  readonly interface: ConnectionInterface
  readonly remoteAddress: string
  /** Live subscriptions of a WebSocket, filters of a gRPC stream. */
  readonly subscriptions: () => number
  readonly bytesOut: () => number
  /** Ends it, told apart from a fault: its owner or the operator wants it gone. */
  readonly close: () => void
}

/** The same as it is told, in the words of the wire. */
export type ConnectionReport = {
  readonly id: string
  readonly interface: ConnectionInterface
  readonly since: string
  readonly age_seconds: number
  readonly remote_address: string
  readonly subscriptions: number
  readonly bytes_out: number
}

export type OperatorConnectionReport = ConnectionReport & { readonly subscription_id: string }

/** The open connections of this process, by an id that is told to their owner alone. */
export type Connections = {
  /** Lists the connection until the answer is called, with how it ended where that is known. */
  enter(connection: OpenConnection): (end?: ConnectionEnd) => void
  of(subscriptionId: string): ConnectionReport[]
  /** Ends a connection of this subscription; false for one that is not there and for one of somebody else alike. */
  close(subscriptionId: string, id: string): boolean
  /** For the operator: the oldest first, and how many there are in all. */
  all(most: number): { readonly total: number; readonly connections: readonly OperatorConnectionReport[] }
  /** For the operator: whoever's it is. */
  closeAny(id: string): boolean
}

/** 96 bits: an id cannot be guessed, and one that was guessed would still be another's. */
const ID_BYTES = 12

type Entry = { readonly connection: OpenConnection; readonly openedMs: number; readonly sinceMs: number }

export function createConnections({ clock, random }: { clock: Clock; random: Random }): Connections {
  const entries = new Map<string, Entry>()
  const bySubscription = new Map<string, Set<string>>()

  function report(id: string, { connection, openedMs, sinceMs }: Entry): ConnectionReport {
    return {
      id,
      interface: connection.interface,
      since: new Date(sinceMs).toISOString(),
      age_seconds: Math.floor((clock.monotonicMs() - openedMs) / 1000),
      remote_address: connection.remoteAddress,
      subscriptions: connection.subscriptions(),
      bytes_out: connection.bytesOut(),
    }
  }

  return {
    enter(connection) {
      const { subscriptionId } = connection
      const id = `con_${Buffer.from(random.bytes(ID_BYTES)).toString('hex')}`
      const own = bySubscription.get(subscriptionId) ?? new Set()
      entries.set(id, { connection, openedMs: clock.monotonicMs(), sinceMs: clock.nowMs() })
      bySubscription.set(subscriptionId, own.add(id))
      return () => {
        entries.delete(id)
        own.delete(id)
        if (own.size === 0 && bySubscription.get(subscriptionId) === own) bySubscription.delete(subscriptionId)
      }
    },
    of: (subscriptionId) =>
      [...(bySubscription.get(subscriptionId) ?? [])].map((id) => report(id, entries.get(id) as Entry)),
    close(subscriptionId, id) {
      const entry = entries.get(id)
      if (entry?.connection.subscriptionId !== subscriptionId) return false
      entry.connection.close()
      return true
    },
    all(most) {
      const connections: OperatorConnectionReport[] = []
      for (const [id, entry] of entries) {
        if (connections.length >= most) break
        connections.push({ ...report(id, entry), subscription_id: entry.connection.subscriptionId })
      }
      return { total: entries.size, connections }
    },
    closeAny(id) {
      const entry = entries.get(id)
      entry?.connection.close()
      return entry !== undefined
    },
  }
}
