/**
 * Delays the end of a subscription at a node until every subscribe sent before it is answered. A node gives equal subscriptions one id, and what
 * the gateway holds apart may be equal to the node: an unsubscribe that follows such a subscribe would end it unnoticed.
 */
export type WsUnsubscribes = {
  /** The subscription with this id ends once all requests up to `lastRequest` are answered. */
  add(id: string, unsubscribe: string, lastRequest: number): void
  /** Sends what is due. `oldestUnanswered` is the first request still to be answered; Infinity where there is none. */
  flush(oldestAwaitingResponse: number): void
  clear(): void
}

export function createWsUnsubscribes(deps: {
  /** Whether the id is in use again, so that it must not end. */
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
    flush(oldestAwaitingResponse) {
      for (const [id, { unsubscribe, lastRequest }] of waiting) {
        if (oldestAwaitingResponse <= lastRequest) return
        waiting.delete(id)
        if (!deps.isUsed(id)) deps.send(id, unsubscribe)
      }
    },
    clear: () => waiting.clear(),
  }
}
