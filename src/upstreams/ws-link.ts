import type { Clock } from '../core/clock.ts'
import { openWsClient, type WsClient, type WsLoss } from '../platform/ws/client.ts'
import type { LossReason, NodeMeter } from './metrics.ts'
import type { Server } from './node.ts'
import { type Notification, readNotification } from './ws-frame-id.ts'
import { createWsUnsubscribes } from './ws-unsubscribes.ts'

/** One subscription wanted of a node. `params` is JSON text and goes out as it is. */
export type WsSubscribe = {
  /** For example `accountSubscribe`. */
  readonly method: string
  /** For example `accountUnsubscribe`. */
  readonly unsubscribe: string
  readonly params: string
}

export type WsSubscriptionEvents = {
  /** The node took it; notifications follow. */
  onReady(): void
  /** The node said no; the text is its whole answer. */
  onRefused(response: string): void
  onNotification(frame: Buffer, at: Notification): void
  /** The connection is gone and the subscription with it. */
  onLost(reason: LossReason): void
}

export type WsUpstreamSubscription = {
  readonly upstream: string
  /** The request went out: the node may have seen it. */
  readonly isSent: boolean
  /** Ends it. `isOver` when the node has ended it already, as it does after the last word on a signature. */
  close(isOver?: boolean): void
}

/** One WebSocket connection to a node, shared by many subscriptions. */
export type WsLink = {
  readonly state: 'connecting' | 'open' | 'lost'
  readonly size: number
  subscribe(wanted: WsSubscribe, events: WsSubscriptionEvents): WsUpstreamSubscription
  /** Ends it from this side; its subscriptions are told. */
  cut(reason: LossReason): void
}

export type WsLinkDeps = {
  readonly upstream: string
  readonly server: Server
  readonly clock: Clock
  readonly meter: NodeMeter
  readonly ca?: string | undefined
  readonly stallMs: number
  /** A slot the node announced on this connection. */
  onSlot(slot: number): void
  /** The best slot of the pool, by which a connection that stands still is known. */
  bestSlot(): number
  onOpen(): void
  onLost(reason: LossReason): void
}

type Entry = {
  readonly wanted: WsSubscribe
  readonly events: WsSubscriptionEvents
  state: 'asked' | 'live' | 'closed'
  isSent: boolean
  id: string | undefined
}

const SLOTS = '{"jsonrpc":"2.0","id":0,"method":"slotSubscribe"}'
/** So many slots may the pool be ahead before silence counts as standing still: connections are not equally fast. */
const STALL_SLOTS = 4
/** Silence is seen at most this part of its time too late. */
const LOOKS_PER_STALL = 10
/** A connection that stood for so long was a good one. */
const LIVED_MS = 5000

export function openWsLink(deps: WsLinkDeps): WsLink {
  const { clock, server, meter } = deps
  let client: WsClient | undefined
  let lostBy: LossReason | undefined
  let nextId = 1
  /** Asked for and not answered, by the id of the request, in the order of the ids. */
  const asked = new Map<number, Entry>()
  /** The same, but closed meanwhile. */
  const abandoned = new Map<number, Entry>()
  /** Live ones by the node's id; equal subscriptions get the same id of a node. */
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

  void openWsClient({ headers: server.headers, ca: deps.ca }, { clock, address: server.address }).then((opening) => {
    if (!opening.ok) return lose(opening.loss.cause === 'protocol' ? 'protocol' : 'connect')
    if (lostBy !== undefined) return opening.client.close()
    client = opening.client
    meter.wsConnections.inc()
    openedAtMs = clock.monotonicMs()
    slotAtMs = openedAtMs
    client.onMessage(onFrame)
    client.onClose((loss) => lose(reasonOf(loss)))
    client.send(SLOTS)
    deps.onOpen()
    for (const [id, entry] of asked) send(id, entry)
  })

  const watch = clock.setRepeating(deps.stallMs / LOOKS_PER_STALL, () => {
    if (client === undefined || slotId === undefined || clock.monotonicMs() - slotAtMs < deps.stallMs) return
    // A chain that stands still is no fault of this connection.
    if (deps.bestSlot() > slot + STALL_SLOTS) lose('stalled')
  })
  watch.unref?.()

  function lose(reason: LossReason, isCut = false): void {
    if (lostBy !== undefined) return
    lostBy = reason
    watch.cancel()
    // Right after a loss other nodes come first. One that takes connections only to drop them is tried ever more seldom.
    if (clock.monotonicMs() - openedAtMs >= LIVED_MS) server.backoff.worked()
    if (!isCut) server.backoff.failed()
    if (client !== undefined) meter.wsConnections.dec()
    client?.close()
    meter.wsLosses[reason].inc()
    deps.onLost(reason)
    const reported = [...entries]
    entries.clear()
    asked.clear()
    abandoned.clear()
    unsubscribes.clear()
    live.clear()
    for (const entry of reported) {
      entry.state = 'closed'
      meter.wsSubscriptions.dec()
      entry.events.onLost(reason)
    }
  }

  function send(id: number, entry: Entry): void {
    const { wanted } = entry
    entry.isSent = true
    client?.send(`{"jsonrpc":"2.0","id":${id},"method":"${wanted.method}","params":${wanted.params}}`)
  }

  function onFrame(frame: Buffer): void {
    const at = readNotification(frame)
    if (at === undefined) onResponse(frame)
    else if (at.subscription === slotId) onSlotFrame(frame)
    // An id nobody has any more: the node had not heard of the end yet.
    else for (const { events } of live.get(at.subscription) ?? []) events.onNotification(frame, at)
  }

  function onSlotFrame(frame: Buffer): void {
    const reported = Number(/"slot":\s*(\d{1,16})/.exec(frame.toString('latin1'))?.[1] ?? 0)
    // A customer's own slotSubscribe has the same id at the node.
    const at = readNotification(frame) as Notification
    for (const { events } of live.get(at.subscription) ?? []) events.onNotification(frame, at)
    if (reported <= slot) return
    slot = reported
    slotAtMs = clock.monotonicMs()
    deps.onSlot(reported)
  }

  function onResponse(frame: Buffer): void {
    const text = frame.toString('utf8')
    const response = parseResponse(text)
    if (response === undefined) return lose('protocol')
    if (response.id === 0) {
      slotId = response.result
      return
    }
    const entry = asked.get(response.id)
    if (entry !== undefined) {
      asked.delete(response.id)
      onSubscribed(entry, response.result, text)
    } else {
      const left = abandoned.get(response.id)
      if (left === undefined) return
      abandoned.delete(response.id)
      // Closed before the node answered: end it there too.
      if (response.result !== undefined) end(response.result, left)
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

  function end(id: string, { wanted }: Entry): void {
    unsubscribes.add(id, wanted.unsubscribe, nextId - 1)
    flushUnsubscribes()
  }

  function flushUnsubscribes(): void {
    const [oldest = Number.POSITIVE_INFINITY] = asked.keys()
    unsubscribes.flush(oldest)
  }

  return {
    get state() {
      return lostBy !== undefined ? 'lost' : client === undefined ? 'connecting' : 'open'
    },
    get size() {
      return entries.size
    },
    subscribe(wanted, events) {
      const entry: Entry = { wanted, events, state: 'asked', isSent: false, id: undefined }
      const id = nextId++
      entries.add(entry)
      asked.set(id, entry)
      meter.wsSubscriptions.inc()
      if (client !== undefined) send(id, entry)
      return {
        upstream: deps.upstream,
        get isSent() {
          return entry.isSent
        },
        close(isOver = false) {
          if (entry.state === 'closed') return
          drop(entry)
          if (entry.id === undefined) {
            asked.delete(id)
            if (entry.isSent) abandoned.set(id, entry)
            flushUnsubscribes()
            return
          }
          const equal = live.get(entry.id)
          equal?.delete(entry)
          if (equal?.size !== 0) return
          live.delete(entry.id)
          if (!isOver) end(entry.id, entry)
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

/** Ids of subscriptions are taken from the text: a u64 may be larger than a number is exact. */
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
