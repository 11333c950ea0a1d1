import type { Caller, Refused } from '../../access/callers.ts'
import type { NodeUser } from '../../contract/products.ts'
import { WsCloseCode } from '../../platform/ws/close-codes.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Connections } from '../account/connections.ts'
import type { StreamMeter } from '../metrics.ts'
import { type PubSubClient, type PubSubClientDeps, servePubSubClient } from './client.ts'
import type { AdmittedHandshake } from './handshake.ts'

/** The clients of the server that are connected. */
export type PubSubClients = {
  serve(connection: WsConnection, handshake: AdmittedHandshake): void
  /** Checks the tokens of all clients again, each token once, however many connections it has. */
  renewAll(): void
}

export type PubSubClientsDeps = PubSubClientDeps & {
  readonly upstreams: Pick<Upstreams, 'of'>
  readonly connections: Pick<Connections, 'enter'>
  readonly meter: StreamMeter
}

export function createPubSubClients(deps: PubSubClientsDeps): PubSubClients {
  const { access, upstreams, connections, clock, meter } = deps
  /** With whether the subscription had dedicated nodes when the client connected. */
  const clients = new Map<PubSubClient, boolean>()

  function hasDedicatedNodes(user: NodeUser): boolean {
    return upstreams.of(user) !== upstreams.of(undefined)
  }

  return {
    serve(connection, { caller, permit, requestId, wantsGaps, remoteAddress }) {
      const client = servePubSubClient(connection, { caller, wantsGaps, requestId }, deps)
      clients.set(client, hasDedicatedNodes(caller.nodeUser))
      meter.open.inc()
      connection.onSent((bytes) => access.countBytes(caller, 'ws', bytes))
      const leave = connections.enter({
        subscriptionId: caller.subscription.id,
        interface: 'ws',
        remoteAddress,
        subscriptions: () => client.subscriptions,
        bytesOut: () => connection.bytesOut,
        // Solana clients do not reconnect after 1000, which is what the owner wants here.
        close: () => connection.close(WsCloseCode.normal, 'closed by the owner of the subscription'),
      })
      connection.onClose((code, message) => {
        clients.delete(client)
        permit.release()
        meter.open.dec()
        leave({ code, message })
      })
    },
    renewAll() {
      const known = new Map<string, Caller | Refused>()
      for (const [client, hadDedicatedNodes] of [...clients]) {
        const { tokenSha256 } = client
        const caller = known.get(tokenSha256) ?? access.renew(tokenSha256, 'bundle', clock.nowMs())
        known.set(tokenSha256, caller)
        client.renew(caller)
        // In the other direction no move is needed: losing the dedicated nodes moves its subscriptions to the shared ones.
        if (!hadDedicatedNodes && hasDedicatedNodes(client.nodeUser)) client.move()
      }
    },
  }
}
