import type { Clock } from '../../core/clock.ts'
import type { Random } from '../../core/random.ts'

/** Connections that take a permit of the plan. A kept-alive RPC connection takes none and is not listed. */
export type ConnectionInterface = 'ws' | 'grpc'

/** A WebSocket close code or a gRPC status; absent where the client just disconnected. */
export type ConnectionEnd = { readonly code: number; readonly message?: string | undefined }

/** One open connection, as its server registers it. */
export type OpenConnection = {
  readonly subscriptionId: string
  readonly interface: ConnectionInterface
  readonly remoteAddress: string
  /** Live subscriptions of a WebSocket, filters of a gRPC stream. */
  subscriptions(): number
  bytesOut(): number
  /** How often a gRPC stream has moved to another node. */
  moves?(): number
  /** Closes it on request of its owner or the operator, with a code that is not one of a fault. */
  close(): void
}

/** The same in the JSON fields of the API. */
export type ConnectionReport = {
  readonly id: string
  readonly interface: ConnectionInterface
  readonly since: string
  readonly age_seconds: number
  readonly remote_address: string
  readonly subscriptions: number
  readonly bytes_out: number
  /** How often a gRPC stream has moved to another node, after which updates were sent again. */
  readonly moves?: number
}

export type OperatorConnectionReport = ConnectionReport & { readonly subscription_id: string }

/** The open connections of this process, by an id that only their owner and the operator see. */
export type Connections = {
  /** Lists the connection until the returned function is called, with how it ended where that is known. */
  enter(connection: OpenConnection): (end?: ConnectionEnd) => void
  of(subscriptionId: string): ConnectionReport[]
  /** Closes a connection of this subscription; false for an unknown one and for one of another subscription alike. */
  close(subscriptionId: string, id: string): boolean
  /** For the operator: the oldest first, and the total. */
  all(max: number): { readonly total: number; readonly connections: readonly OperatorConnectionReport[] }
  /** For the operator: closes a connection of any subscription. */
  closeAny(id: string): boolean
}

/** 96 bits, so that an id cannot be guessed. */
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
      ...(connection.moves === undefined ? {} : { moves: connection.moves() }),
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
    all(max) {
      const connections: OperatorConnectionReport[] = []
      for (const [id, entry] of entries) {
        if (connections.length >= max) break
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
