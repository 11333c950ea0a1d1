import type { Gateway } from '../../../gateway/service.ts'
import type { SlotRange } from '../../../indexer/ingest/slot-ranges.ts'
import { QueryError } from '../../../indexer/query/error.ts'
import type { Indexer } from '../../../indexer/service.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { SenderPart } from './sender.ts'
import { nameParam } from './upstreams.ts'

/*
 * The control methods of the services that run in threads. Not in the files that open the services: the control plane lists these methods, and would load
 * the code of every service with them.
 */

/** A control response is one line, so the list has a maximum. */
export const CONNECTIONS_LISTED_MAX = 1000

export function gatewayMethods({ connections }: Gateway): ControlMethods {
  return {
    // Those of one subscription are selected before the list is cut: others may have more than it holds.
    connections: (params) => {
      const { subscription } = (params ?? {}) as { subscription?: string }
      if (subscription === undefined) return connections.all(CONNECTIONS_LISTED_MAX)
      const own = connections.of(subscription)
      const listed = own.slice(0, CONNECTIONS_LISTED_MAX)
      return { total: own.length, connections: listed.map((each) => ({ ...each, subscription_id: subscription })) }
    },
    'connection-close': (params) => ({ found: connections.closeAny(nameParam(params)) }),
    // Requested by another gateway thread, for a customer.
    'connections-of': (params) => connections.of((params as { subscription: string }).subscription),
    'close-connection-of': (params) => {
      const { subscription, id } = params as { subscription: string; id: string }
      return connections.close(subscription, id)
    },
  }
}

export function indexerMethods(indexer: Indexer | undefined): ControlMethods {
  return {
    indexer: () => indexer?.status() ?? null,
    'indexer-query': async (params) => {
      const { query, format } = params as { query: string; format: string }
      if (indexer === undefined) return null
      try {
        const { body } = await indexer.query(String(query), String(format))
        return { ok: true, text: Buffer.from(body).toString('utf8') }
      } catch (error) {
        if (error instanceof QueryError) return { ok: false, message: error.body.trimEnd() }
        throw error
      }
    },
    'indexer-backfill': (params) => {
      const { from, to } = params as SlotRange
      return { outcome: indexer?.backfill({ from: Number(from), to: Number(to) }) }
    },
    'indexer-backfill-stop': () => {
      indexer?.stopBackfill()
      return {}
    },
  }
}

/** What the control plane shows of the sender. */
export type SenderDetails = Pick<SenderPart, 'tipAccounts' | 'schedule'>

export function senderMethods(sender: SenderPart | undefined): ControlMethods {
  return { 'tip-stats': () => ({ ...sender?.stats(), pathStates: sender?.paths() ?? [], schedule: sender?.schedule }) }
}
