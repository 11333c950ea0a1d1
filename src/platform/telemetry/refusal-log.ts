import { setBounded } from '../../core/bounded-map.ts'
import type { Clock } from '../../core/clock.ts'
import { redactText } from '../../core/redact.ts'
import type { LogSource } from './log-tap.ts'

/** A refused request, with the id that its response carries. */
export type RefusedRequest = {
  readonly requestId: string
  readonly interface: 'rpc' | 'ws' | 'grpc' | 'indexer' | 'sender' | 'execution'
  /** Undefined where the token was refused or the interface needs none. */
  readonly subscription?: string | undefined
  /** The name of the error, as in the error index. */
  readonly error?: string | undefined
  readonly limit?: string | undefined
  readonly reason?: string | undefined
  readonly message?: string | undefined
  readonly status?: number | undefined
}

/** Where a service records the requests it refuses. */
export type RefusalRecorder = { record(refused: RefusedRequest): void }

/** The last refused requests in memory, so that `logs tail --request ID` finds them. The log itself has one line per second and limit. */
export type RefusalLog = RefusalRecorder & {
  /** Refusals with this id, as lines of the log. */
  of(requestId: string): LogSource
}

/** Requests of subscriptions kept, about 200 bytes each. */
const OF_SUBSCRIPTIONS_MAX = 10_000
/** Requests without a valid token kept. Separate, so that they cannot push out those of subscriptions. */
const OF_OTHERS_MAX = 2000
const TEXT_CHARACTERS_MAX = 200

type Noted = RefusedRequest & { readonly timeMs: number }

export function createRefusalLog({ clock }: { readonly clock: Pick<Clock, 'nowMs'> }): RefusalLog {
  /** Oldest first, by request and reason: the calls of a batch and of a WebSocket have one request id, and one entry for each limit. */
  const ofSubscriptions = new Map<string, Noted>()
  const ofOthers = new Map<string, Noted>()
  const readers = new Set<{ readonly requestId: string; read(line: string): void }>()
  return {
    record(refused) {
      const isOwned = refused.subscription !== undefined
      const kept = isOwned ? ofSubscriptions : ofOthers
      const key = `${refused.requestId} ${refused.interface} ${refused.error ?? refused.status} ${refused.limit ?? ''}`
      if (kept.has(key)) return
      const message = refused.message === undefined ? undefined : copyOf(refused.message)
      const recorded = { ...refused, requestId: copyOf(refused.requestId), message, timeMs: clock.nowMs() }
      setBounded(kept, key, recorded, isOwned ? OF_SUBSCRIPTIONS_MAX : OF_OTHERS_MAX)
      for (const { requestId, read } of readers) if (requestId === refused.requestId) read(printRefusal(recorded))
    },
    of: (requestId) => ({
      recent: () =>
        [...ofSubscriptions.values(), ...ofOthers.values()]
          .filter((recorded) => recorded.requestId === requestId)
          .toSorted((a, b) => a.timeMs - b.timeMs)
          .map(printRefusal),
      listen(read) {
        const reader = { requestId, read }
        readers.add(reader)
        return { [Symbol.dispose]: () => void readers.delete(reader) }
      },
    }),
  }
}

/** The beginning of a text as a copy: a slice would keep the request that it is part of in memory. */
function copyOf(text: string): string {
  return Buffer.from(text.slice(0, TEXT_CHARACTERS_MAX)).toString()
}

/** Masked here and not when it is recorded, because few are ever read. */
function printRefusal({ timeMs, requestId, message, interface: server, ...fields }: Noted): string {
  const detail = message === undefined ? undefined : redactText(message)
  const record = { level: 'info', time: new Date(timeMs).toISOString(), part: PARTS[server], interface: server }
  return `${JSON.stringify({ ...record, ...fields, detail, request_id: requestId, msg: 'refused' })}\n`
}

const PARTS: Readonly<Record<RefusedRequest['interface'], string>> = {
  rpc: 'bundle',
  ws: 'bundle',
  grpc: 'bundle',
  indexer: 'indexer',
  sender: 'sender',
  execution: 'execution',
}
