/**
 * Delays an unsubscribe until every subscribe sent before it has its response. A node gives equal subscriptions one id, and subscriptions
 * that differ for the gateway may be equal for the node: an unsubscribe sent after such a subscribe would silently end it.
 */
export type WsUnsubscribes = {
  /** Unsubscribes once all requests up to `lastRequest` have a response. */
  add(id: string, unsubscribe: string, lastRequest: number): void
  /** Sends what is due. `oldestPending` is the first request without a response; Infinity where there is none. */
  flush(oldestPending: number): void
  clear(): void
  /** Those that wait. */
  readonly size: number
}

export function createWsUnsubscribes(deps: {
  /** Whether the id is in use again and must be kept. */
  isUsed(id: string): boolean
  send(id: string, unsubscribe: string): void
}): WsUnsubscribes {
  /** In the order of `lastRequest`. */
  const waiting = new Map<string, { readonly unsubscribe: string; readonly lastRequest: number }>()

  return {
    add(id, unsubscribe, lastRequest) {
      waiting.delete(id)
      waiting.set(id, { unsubscribe, lastRequest })
    },
    flush(oldestPending) {
      for (const [id, { unsubscribe, lastRequest }] of waiting) {
        if (oldestPending <= lastRequest) return
        waiting.delete(id)
        if (!deps.isUsed(id)) deps.send(id, unsubscribe)
      }
    },
    clear: () => waiting.clear(),
    get size() {
      return waiting.size
    },
  }
}
