import type { Clock } from '../core/clock.ts'
import { openWsClient, type WsClient, type WsLoss } from '../platform/ws/client.ts'
import type { LossReason, NodeMeter } from './metrics.ts'
import type { Endpoint } from './node.ts'
import { type Notification, readNotification } from './ws-frame-id.ts'
import { createWsUnsubscribes } from './ws-unsubscribes.ts'

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

export type WsUpstreamSubscription = {
  readonly upstream: string
  /** The request was sent: the node may have received it. */
  readonly isSent: boolean
  /** Unsubscribes. `isEndedByNode` where the node has ended it already, as after the last notification about a signature. */
  close(isEndedByNode?: boolean): void
}

/** One WebSocket connection to a node, shared by many subscriptions. */
export type WsLink = {
  readonly state: 'connecting' | 'open' | 'lost'
  readonly size: number
  subscribe(request: WsSubscribe, events: WsSubscriptionEvents): WsUpstreamSubscription
  /** Closes the connection; its subscriptions get `onLost`. */
  cut(reason: LossReason): void
}

export type WsLinkDeps = {
  readonly upstream: string
  readonly endpoint: Endpoint
  readonly clock: Clock
  readonly meter: NodeMeter
  readonly ca?: string | undefined
  readonly stallMs: number
  /** A slot the node announced on this connection. */
  onSlot(slot: number): void
  /** The best slot of the pool, to detect a stalled connection. */
  bestSlot(): number
  slotMs(): number
  onOpen(): void
  onLost(reason: LossReason): void
}

type Entry = {
  readonly request: WsSubscribe
  readonly events: WsSubscriptionEvents
  state: 'sent' | 'live' | 'closed'
  isSent: boolean
  id: string | undefined
}

const SLOT_SUBSCRIBE = '{"jsonrpc":"2.0","id":0,"method":"slotSubscribe"}'
/** The pool must be ahead by more than this before silence counts as a stall: connections differ in speed. */
const STALL_AHEAD_MS = 1600
/** A stall is detected at most a tenth of `stallMs` late. */
const CHECKS_PER_STALL = 10
/** A connection that was open this long resets the backoff. */
const STABLE_MS = 5000

export function openWsLink(deps: WsLinkDeps): WsLink {
  const { clock, endpoint, meter } = deps
  let client: WsClient | undefined
  let lostBy: LossReason | undefined
  let nextId = 1
  /** Subscribes without a response yet, by the id of the request, in the order of the ids. */
  const pending = new Map<number, Entry>()
  /** The same, but closed in the meantime. */
  const abandoned = new Map<number, Entry>()
  /** Live subscriptions by the node's id; a node gives equal subscriptions the same id. */
  const live = new Map<string, Set<Entry>>()
  const entries = new Set<Entry>()
  const unsubscribes = createWsUnsubscribes({
    isUsed: (id) => live.has(id) || id === slotId,
    send: (id, method) => client?.send(`{"jsonrpc":"2.0","id":${nextId++},"method":"${method}","params":[${id}]}`),
  })
  let slotId: string | undefined
  let slot = 0
  let slotAtMs = 0
  let openedAtMs = Number.POSITIVE_INFINITY

  void openWsClient({ headers: endpoint.headers, ca: deps.ca }, { clock, address: endpoint.address }).then(
    (opening) => {
      if (!opening.ok) return lose(opening.loss.cause === 'protocol' ? 'protocol' : 'connect')
      if (lostBy !== undefined) return opening.client.close()
      client = opening.client
      meter.wsConnections.inc()
      openedAtMs = clock.monotonicMs()
      slotAtMs = openedAtMs
      client.onMessage(onFrame)
      client.onClose((loss) => lose(reasonOf(loss)))
      client.send(SLOT_SUBSCRIBE)
      deps.onOpen()
      for (const [id, entry] of pending) send(id, entry)
    },
  )

  const watch = clock.setRepeating(deps.stallMs / CHECKS_PER_STALL, () => {
    if (client === undefined || slotId === undefined || clock.monotonicMs() - slotAtMs < deps.stallMs) return
    // A chain without new slots is no fault of this connection.
    if ((deps.bestSlot() - slot) * deps.slotMs() > STALL_AHEAD_MS) lose('stalled')
  })
  watch.unref?.()

  function lose(reason: LossReason, isCut = false): void {
    if (lostBy !== undefined) return
    lostBy = reason
    watch.cancel()
    // After a loss other nodes are preferred. A node that accepts connections only to drop them is tried at growing intervals.
    if (clock.monotonicMs() - openedAtMs >= STABLE_MS) endpoint.backoff.worked()
    if (!isCut) endpoint.backoff.failed()
    if (client !== undefined) meter.wsConnections.dec()
    client?.close()
    meter.wsLosses[reason].inc()
    deps.onLost(reason)
    const lost = [...entries]
    entries.clear()
    pending.clear()
    abandoned.clear()
    unsubscribes.clear()
    live.clear()
    for (const entry of lost) {
      entry.state = 'closed'
      meter.wsSubscriptions.dec()
      entry.events.onLost(reason)
    }
  }

  function send(id: number, entry: Entry): void {
    const { request } = entry
    entry.isSent = true
    client?.send(`{"jsonrpc":"2.0","id":${id},"method":"${request.method}","params":${request.params}}`)
  }

  function onFrame(frame: Buffer): void {
    const at = readNotification(frame)
    if (at === undefined) onResponse(frame)
    else if (at.subscription === slotId) onSlotFrame(frame)
    // An unknown id: the node had not received the unsubscribe yet.
    else for (const { events } of live.get(at.subscription) ?? []) events.onNotification(frame, at)
  }

  function onSlotFrame(frame: Buffer): void {
    const newest = Number(/"slot":\s*(\d{1,16})/.exec(frame.toString('latin1'))?.[1] ?? 0)
    // A slotSubscribe of a customer has the same id at the node.
    const at = readNotification(frame) as Notification
    for (const { events } of live.get(at.subscription) ?? []) events.onNotification(frame, at)
    if (newest <= slot) return
    slot = newest
    slotAtMs = clock.monotonicMs()
    deps.onSlot(newest)
  }

  function onResponse(frame: Buffer): void {
    const text = frame.toString('utf8')
    const response = parseResponse(text)
    if (response === undefined) return lose('protocol')
    if (response.id === 0) {
      slotId = response.result
      return
    }
    const entry = pending.get(response.id)
    if (entry !== undefined) {
      pending.delete(response.id)
      onSubscribed(entry, response.result, text)
    } else {
      const closed = abandoned.get(response.id)
      if (closed === undefined) return
      abandoned.delete(response.id)
      // Closed before the node's response: unsubscribe at the node too.
      if (response.result !== undefined) unsubscribe(response.result, closed)
    }
    flushUnsubscribes()
  }

  function onSubscribed(entry: Entry, id: string | undefined, response: string): void {
    if (id === undefined) {
      drop(entry)
      entry.events.onRefused(response)
      return
    }
    entry.id = id
    entry.state = 'live'
    const equal = live.get(id)
    if (equal === undefined) live.set(id, new Set([entry]))
    else equal.add(entry)
    entry.events.onReady()
  }

  function drop(entry: Entry): void {
    if (!entries.delete(entry)) return
    entry.state = 'closed'
    meter.wsSubscriptions.dec()
  }

  function unsubscribe(id: string, { request }: Entry): void {
    unsubscribes.add(id, request.unsubscribe, nextId - 1)
    flushUnsubscribes()
  }

  function flushUnsubscribes(): void {
    const [oldest = Number.POSITIVE_INFINITY] = pending.keys()
    unsubscribes.flush(oldest)
  }

  return {
    get state() {
      return lostBy !== undefined ? 'lost' : client === undefined ? 'connecting' : 'open'
    },
    get size() {
      return entries.size
    },
    subscribe(request, events) {
      const entry: Entry = { request, events, state: 'sent', isSent: false, id: undefined }
      const id = nextId++
      entries.add(entry)
      pending.set(id, entry)
      meter.wsSubscriptions.inc()
      if (client !== undefined) send(id, entry)
      return {
        upstream: deps.upstream,
        get isSent() {
          return entry.isSent
        },
        close(isEndedByNode = false) {
          if (entry.state === 'closed') return
          drop(entry)
          if (entry.id === undefined) {
            pending.delete(id)
            if (entry.isSent) abandoned.set(id, entry)
            flushUnsubscribes()
            return
          }
          const equal = live.get(entry.id)
          equal?.delete(entry)
          if (equal?.size !== 0) return
          live.delete(entry.id)
          if (!isEndedByNode) unsubscribe(entry.id, entry)
        },
      }
    },
    cut: (reason) => lose(reason, true),
  }
}

function reasonOf({ cause }: WsLoss): LossReason {
  return cause === 'address' || cause === 'refused' ? 'connect' : cause
}

type Response = { readonly id: number; readonly result: string | undefined }

/** The subscription id is read from the text: a u64 may exceed the safe integers. */
function parseResponse(text: string): Response | undefined {
  let value: { id?: unknown; result?: unknown }
  try {
    value = JSON.parse(text) as { id?: unknown; result?: unknown }
  } catch {
    return undefined
  }
  if (typeof value !== 'object' || value === null || typeof value.id !== 'number') return { id: -1, result: undefined }
  if (typeof value.result !== 'number') return { id: value.id, result: undefined }
  const raw = /"result":\s*(\d{1,20})\s*[,}]/.exec(text)?.[1]
  return { id: value.id, result: raw ?? String(value.result) }
}
