import type { Gateway } from '../../../gateway/service.ts'
import { QueryError } from '../../../indexer/query/error.ts'
import type { Indexer } from '../../../indexer/service.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { ControlMethodsOf, GatewayControlProtocol } from '../process/control-protocol.ts'
import type { SenderPart } from './sender.ts'

/*
 * The control methods of the services that run in threads. Not in the files that open the services: the control plane lists these methods, and would load
 * the code of every service with them.
 */

/** A control response is one line, so the list has a maximum. */
export const CONNECTIONS_LISTED_MAX = 1000

export function gatewayMethods({ connections }: Gateway): ControlMethods<GatewayControlProtocol> {
  return {
    // Those of one subscription are selected before the list is cut: others may have more than it holds.
    connections: ({ subscription } = {}) => {
      if (subscription === undefined) return connections.all(CONNECTIONS_LISTED_MAX)
      const own = connections.of(subscription)
      const listed = own.slice(0, CONNECTIONS_LISTED_MAX)
      return { total: own.length, connections: listed.map((each) => ({ ...each, subscription_id: subscription })) }
    },
    'connection-close': ({ name }) => ({ found: connections.closeAny(name) }),
    'connections-of': ({ subscription }) => connections.of(subscription),
    'close-connection-of': ({ subscription, id }) => connections.close(subscription, id),
  }
}

export function indexerMethods(
  indexer: Indexer | undefined,
): ControlMethodsOf<'indexer' | 'indexer-query' | 'indexer-backfill' | 'indexer-backfill-stop'> {
  return {
    indexer: () => indexer?.status() ?? null,
    'indexer-query': async ({ query, format }) => {
      if (indexer === undefined) return null
      try {
        const { body } = await indexer.query(String(query), String(format))
        return { ok: true, text: Buffer.from(body).toString('utf8') }
      } catch (error) {
        if (error instanceof QueryError) return { ok: false, message: error.body.trimEnd() }
        throw error
      }
    },
    'indexer-backfill': ({ from, to }) => ({
      outcome: indexer?.backfill({ from: Number(from), to: Number(to) }),
    }),
    'indexer-backfill-stop': () => {
      indexer?.stopBackfill()
      return {}
    },
  }
}

/** What the control plane shows of the sender. */
export type SenderDetails = Pick<SenderPart, 'tipAccounts' | 'schedule'>

export function senderMethods(sender: SenderPart | undefined): ControlMethodsOf<'tip-stats'> {
  if (sender === undefined) return { 'tip-stats': () => ({ pathStates: [] }) }
  return { 'tip-stats': () => ({ ...sender.stats(), pathStates: sender.paths(), schedule: sender.schedule }) }
}
