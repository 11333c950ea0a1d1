import type { CustomerLog } from '../../access/customer-log.ts'
import type { Clock } from '../../core/clock.ts'
import { GrpcCode } from '../../platform/grpc/status.ts'
import type { ConnectionEnd, Connections, OpenConnection } from './connections.ts'

const CLOSE_REASONS: Readonly<Record<number, string>> = {
  1000: 'closed',
  1001: 'client went away',
  1002: 'broken frames',
  1005: 'closed without a code',
  1006: 'connection lost',
  1007: 'not UTF-8',
  1008: 'against the rules',
  1009: 'message too large',
  1011: 'internal error',
  1012: 'moved or restarting',
  1013: 'too slow',
  4401: 'token no longer valid',
  4429: 'over a limit',
}
const GRPC_NAMES = new Map<number, string>(Object.entries(GrpcCode).map(([name, code]) => [code, name]))
/** A node's message may be long; the log has its beginning. */
const MESSAGE_CHARACTERS_MAX = 160

/** The same list of connections, which also writes each connect and disconnect to the customer's log. */
export function logConnections(
  connections: Connections,
  { customerLog, clock }: { customerLog: Pick<CustomerLog, 'log'>; clock: Clock },
): Connections {
  return {
    ...connections,
    enter(connection) {
      const leave = connections.enter(connection)
      const openedMs = clock.monotonicMs()
      const { subscriptionId: subscription, interface: server } = connection
      const remote = { remote: connection.remoteAddress }
      customerLog.log({ subscription, message: 'connected', kind: { interface: server }, details: remote })
      return (end) => {
        const seconds = Math.round((clock.monotonicMs() - openedMs) / 1000)
        const kind = { interface: server, ...endFields(connection, end) }
        const details = { ...remote, seconds, bytesOut: connection.bytesOut() }
        customerLog.log({ subscription, message: 'disconnected', kind, details })
        leave(end)
      }
    },
  }
}

function endFields(
  { interface: server }: OpenConnection,
  end: ConnectionEnd | undefined,
): Record<string, string | number> {
  if (end === undefined) return { reason: 'client went away' }
  const { code, message = '' } = end
  const name = server === 'ws' ? CLOSE_REASONS[code] : GRPC_NAMES.get(code)
  const reason = message === '' || message === name ? (name ?? 'closed') : message
  return { code, reason: reason.slice(0, MESSAGE_CHARACTERS_MAX) }
}
