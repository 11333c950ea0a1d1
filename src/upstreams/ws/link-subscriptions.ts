import { setBounded } from '../../core/bounded-map.ts'
import type { LossReason, NodeMeter } from '../metrics.ts'
import type { Notification } from './frame-id.ts'
import { createWsUnsubscribes } from './unsubscribes.ts'

/** A subscribe for a node. `params` is JSON text and is sent as it is. */
export type WsSubscribe = {
  /** For example `accountSubscribe`. */
  readonly method: string
  /** For example `accountUnsubscribe`. */
  readonly unsubscribe: string
  readonly params: string
}

export type WsSubscriptionEvents = {
  /** The node accepted it; notifications follow. */
  onReady(): void
  /** The node refused it; the text is its complete response. */
  onRefused(response: string): void
  onNotification(frame: Buffer, at: Notification): void
  /** The connection is lost, and the subscription with it. */
  onLost(reason: LossReason): void
}

export type LinkSubscription = {
  readonly nodeName: string
  /** The request was sent: the node may have received it. */
  readonly isSent: boolean
  /** Unsubscribes. `isEndedByNode` where the node has ended it already, as after the last notification about a signature. */
  close(isEndedByNode?: boolean): void
}

export type SentSubscription = LinkSubscription & {
  /** Monotonic; undefined until the request is sent. */
  readonly sentAtMs: number | undefined
}

export type LinkSubscriptionsDeps = {
  readonly nodeName: string
  readonly meter: Pick<NodeMeter, 'wsSubscriptions'>
  isOpen(): boolean
  send(request: string): void
  monotonicMs(): number
  /** Whether the connection itself uses this id of the node. */
  isReserved(id: string): boolean
}

/** Time without any response after which a subscribe is overdue; longer than the gateway waits for one. */
const OVERDUE_MS = 3000
/** Overdue subscribes that make the connection stalled. Fewer may be requests that the node drops. */
const OVERDUE_MIN = 8
/** Time after which an abandoned request counts as dropped by the node. */
const ABANDONED_MS = 30_000
/** Dropped requests that are remembered, since the node may still accept them. */
const DROPPED_MAX = 10_000

/** The response of a node to a subscribe: its id for the subscription; undefined where it refused. */
export type WsResponse = { readonly id: number; readonly result: string | undefined }

type Entry = {
  readonly request: WsSubscribe
  readonly events: WsSubscriptionEvents
  state: 'sent' | 'live' | 'closed'
  sentAtMs: number | undefined
  /** The node's id. */
  id: string | undefined
}

/** The subscriptions of one WebSocket connection to a node: matches responses and notifications to them by their ids. */
export class LinkSubscriptions {
  readonly #deps: LinkSubscriptionsDeps
  /** Subscribes without a response yet, by the id of the request, in the order of the ids. */
  readonly #pending = new Map<number, Entry>()
  /** The same, but closed in the meantime. */
  readonly #abandoned = new Map<number, Entry>()
  /** Those without a response for long: their methods to unsubscribe. */
  readonly #dropped = new Map<number, string>()
  /** Live subscriptions by the node's id; a node gives equal subscriptions the same id. */
  readonly #live = new Map<string, Set<Entry>>()
  readonly #entries = new Set<Entry>()
  readonly #unsubscribes = createWsUnsubscribes({
    isUsed: (id) => this.#live.has(id) || this.#deps.isReserved(id),
    send: (id, method) =>
      this.#deps.send(`{"jsonrpc":"2.0","id":${this.#nextId++},"method":"${method}","params":[${id}]}`),
  })
  #nextId = 1
  /** The time of the last response, to whatever request. */
  #respondedAtMs = Number.NEGATIVE_INFINITY

  constructor(deps: LinkSubscriptionsDeps) {
    this.#deps = deps
  }

  get size(): number {
    return this.#entries.size
  }

  /** The same, and those closed of which the node may not know yet. `wsSubscriptionsMax` limits it, and with it all that is kept here. */
  get sizeAtNode(): number {
    return this.#entries.size + this.#abandoned.size + this.#unsubscribes.size
  }

  /** The node leaves subscribes without a response. */
  isOverdue(nowMs: number): boolean {
    this.#forgetAbandoned(nowMs)
    let overdue = 0
    for (const entries of [this.#pending, this.#abandoned]) {
      for (const { sentAtMs = Number.POSITIVE_INFINITY } of entries.values())
        if (sentAtMs > this.#respondedAtMs && nowMs - sentAtMs >= OVERDUE_MS) overdue += 1
    }
    return overdue >= OVERDUE_MIN
  }

  /** Sent at once where the connection is open, else by `sendPending`. */
  add(request: WsSubscribe, events: WsSubscriptionEvents): SentSubscription {
    const entry: Entry = { request, events, state: 'sent', sentAtMs: undefined, id: undefined }
    const requestId = this.#nextId++
    this.#entries.add(entry)
    this.#pending.set(requestId, entry)
    this.#deps.meter.wsSubscriptions.inc()
    this.#send(requestId, entry)
    return {
      nodeName: this.#deps.nodeName,
      get isSent() {
        return entry.sentAtMs !== undefined
      },
      get sentAtMs() {
        return entry.sentAtMs
      },
      close: (isEndedByNode = false) => this.#close(requestId, entry, isEndedByNode),
    }
  }

  sendPending(): void {
    for (const [requestId, entry] of this.#pending) this.#send(requestId, entry)
  }

  /** `text` is the complete response. */
  onResponse({ id, result }: WsResponse, text: string): void {
    this.#respondedAtMs = this.#deps.monotonicMs()
    const entry = this.#pending.get(id)
    if (entry !== undefined) {
      this.#pending.delete(id)
      this.#onSubscribed(entry, result, text)
    } else {
      const unsubscribe = this.#abandoned.get(id)?.request.unsubscribe ?? this.#dropped.get(id)
      if (unsubscribe === undefined) return
      this.#abandoned.delete(id)
      this.#dropped.delete(id)
      // Closed before the node's response: unsubscribe at the node too.
      if (result !== undefined) this.#unsubscribe(result, unsubscribe)
    }
    this.#flushUnsubscribes()
  }

  /** An unknown id: the node had not received the unsubscribe yet. */
  onNotification(frame: Buffer, at: Notification): void {
    for (const { events } of this.#live.get(at.subscription) ?? []) events.onNotification(frame, at)
  }

  /** The connection is lost. */
  lose(reason: LossReason): void {
    const lost = [...this.#entries]
    this.#entries.clear()
    this.#pending.clear()
    this.#abandoned.clear()
    this.#dropped.clear()
    this.#unsubscribes.clear()
    this.#live.clear()
    for (const entry of lost) {
      entry.state = 'closed'
      this.#deps.meter.wsSubscriptions.dec()
      entry.events.onLost(reason)
    }
  }

  #send(requestId: number, entry: Entry): void {
    const { method, params } = entry.request
    if (!this.#deps.isOpen()) return
    // Before it is sent: that may end the connection of a node that does not read.
    entry.sentAtMs = this.#deps.monotonicMs()
    this.#deps.send(`{"jsonrpc":"2.0","id":${requestId},"method":"${method}","params":${params}}`)
  }

  #onSubscribed(entry: Entry, id: string | undefined, response: string): void {
    if (id === undefined) {
      this.#drop(entry)
      entry.events.onRefused(response)
      return
    }
    entry.id = id
    entry.state = 'live'
    const equal = this.#live.get(id)
    if (equal === undefined) this.#live.set(id, new Set([entry]))
    else equal.add(entry)
    entry.events.onReady()
  }

  #close(requestId: number, entry: Entry, isEndedByNode: boolean): void {
    if (entry.state === 'closed') return
    this.#drop(entry)
    if (entry.id === undefined) {
      this.#pending.delete(requestId)
      if (entry.sentAtMs !== undefined) this.#abandoned.set(requestId, entry)
      this.#flushUnsubscribes()
      return
    }
    const equal = this.#live.get(entry.id)
    equal?.delete(entry)
    if (equal?.size !== 0) return
    this.#live.delete(entry.id)
    if (!isEndedByNode) this.#unsubscribe(entry.id, entry.request.unsubscribe)
  }

  #forgetAbandoned(nowMs: number): void {
    for (const [requestId, { sentAtMs = nowMs, request }] of this.#abandoned) {
      if (nowMs - sentAtMs < ABANDONED_MS) continue
      this.#abandoned.delete(requestId)
      setBounded(this.#dropped, requestId, request.unsubscribe, DROPPED_MAX)
    }
  }

  #drop(entry: Entry): void {
    if (!this.#entries.delete(entry)) return
    entry.state = 'closed'
    this.#deps.meter.wsSubscriptions.dec()
  }

  #unsubscribe(id: string, method: string): void {
    this.#unsubscribes.add(id, method, this.#nextId - 1)
    this.#flushUnsubscribes()
  }

  #flushUnsubscribes(): void {
    const [oldest = Number.POSITIVE_INFINITY] = this.#pending.keys()
    this.#unsubscribes.flush(oldest)
  }
}
