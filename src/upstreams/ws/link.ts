import type { Clock, Timer } from '../../core/clock.ts'
import { openWsClient, type WsClient, type WsLoss } from '../../platform/ws/client.ts'
import type { LossReason, NodeMeter } from '../metrics.ts'
import type { Endpoint } from '../node.ts'
import { readNotification } from './frame-id.ts'
import {
  LinkSubscriptions,
  type SentSubscription,
  type WsResponse,
  type WsSubscribe,
  type WsSubscriptionEvents,
} from './link-subscriptions.ts'

/** One WebSocket connection to a node, shared by many subscriptions. */
export type WsLink = {
  readonly state: 'connecting' | 'open' | 'lost'
  readonly size: number
  /** With those closed of which the node may not know yet. */
  readonly sizeAtNode: number
  subscribe(request: WsSubscribe, events: WsSubscriptionEvents): SentSubscription
  /** Closes the connection; its subscriptions get `onLost`. */
  cut(reason: LossReason): void
}

export type WsLinkDeps = {
  readonly nodeName: string
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

const SLOT_SUBSCRIBE_ID = 0
const SLOT_SUBSCRIBE = `{"jsonrpc":"2.0","id":${SLOT_SUBSCRIBE_ID},"method":"slotSubscribe"}`
/** The pool must be ahead by more than this before silence counts as a stall: connections differ in speed. */
const STALL_AHEAD_MS = 1600
/** A stall is detected at most a tenth of `stallMs` late. */
const CHECKS_PER_STALL = 10
/** A connection that was open this long resets the backoff. */
const STABLE_MS = 5000

/** Begins to connect; the state is `connecting` until that has succeeded or failed. */
export function openWsLink(deps: WsLinkDeps): WsLink {
  return new NodeWsLink(deps)
}

type LinkState =
  | { readonly kind: 'connecting' }
  | { readonly kind: 'open'; readonly client: WsClient; readonly sinceMs: number }
  | { readonly kind: 'lost' }

class NodeWsLink implements WsLink {
  readonly #deps: WsLinkDeps
  readonly #subscriptions: LinkSubscriptions
  readonly #stallCheck: Timer
  #state: LinkState = { kind: 'connecting' }
  /** The node's id of the slot subscription that every connection has. */
  #slotId: string | undefined
  /** The newest slot on this connection, and when it came. */
  #slot = 0
  #slotAtMs = 0

  constructor(deps: WsLinkDeps) {
    const { nodeName, meter, clock } = deps
    this.#deps = deps
    this.#subscriptions = new LinkSubscriptions({
      nodeName,
      meter,
      isOpen: () => this.#state.kind === 'open',
      send: (request) => this.#send(request),
      monotonicMs: () => clock.monotonicMs(),
      isReserved: (id) => id === this.#slotId,
    })
    this.#stallCheck = clock.setRepeating(deps.stallMs / CHECKS_PER_STALL, () => this.#checkStall())
    this.#stallCheck.unref?.()
    void this.#connect()
  }

  get state(): WsLink['state'] {
    return this.#state.kind
  }

  get size(): number {
    return this.#subscriptions.size
  }

  get sizeAtNode(): number {
    return this.#subscriptions.sizeAtNode
  }

  subscribe(request: WsSubscribe, events: WsSubscriptionEvents): SentSubscription {
    return this.#subscriptions.add(request, events)
  }

  cut(reason: LossReason): void {
    this.#lose(reason, true)
  }

  async #connect(): Promise<void> {
    const { clock, endpoint, ca, meter } = this.#deps
    const opening = await openWsClient({ headers: endpoint.headers, ca }, { clock, address: endpoint.address })
    if (!opening.ok) return this.#lose(opening.loss.cause === 'protocol' ? 'protocol' : 'connect')
    const { client } = opening
    if (this.#state.kind === 'lost') return client.close()
    const sinceMs = clock.monotonicMs()
    this.#state = { kind: 'open', client, sinceMs }
    this.#slotAtMs = sinceMs
    meter.wsConnections.inc()
    client.onMessage((frame) => this.#onFrame(frame))
    client.onClose((loss) => this.#lose(reasonOf(loss)))
    client.send(SLOT_SUBSCRIBE)
    this.#deps.onOpen()
    this.#subscriptions.sendPending()
  }

  #send(request: string): void {
    if (this.#state.kind === 'open') this.#state.client.send(request)
  }

  #checkStall(): void {
    const deps = this.#deps
    if (this.#subscriptions.isOverdue(deps.clock.monotonicMs())) return this.#lose('stalled')
    const isAwaited = this.#state.kind === 'open' && this.#slotId !== undefined
    if (!isAwaited || deps.clock.monotonicMs() - this.#slotAtMs < deps.stallMs) return
    // A chain without new slots is no fault of this connection.
    if ((deps.bestSlot() - this.#slot) * deps.slotMs() > STALL_AHEAD_MS) this.#lose('stalled')
  }

  #lose(reason: LossReason, isCut = false): void {
    const before = this.#state
    if (before.kind === 'lost') return
    const { clock, endpoint, meter } = this.#deps
    this.#state = { kind: 'lost' }
    this.#stallCheck.cancel()
    // After a loss other nodes are preferred. A node that accepts connections only to drop them is tried at growing intervals.
    if (before.kind === 'open' && clock.monotonicMs() - before.sinceMs >= STABLE_MS) endpoint.backoff.recordSuccess()
    if (!isCut) endpoint.backoff.recordFailure()
    if (before.kind === 'open') {
      meter.wsConnections.dec()
      before.client.close()
    }
    meter.wsLosses[reason].inc()
    // Before the subscriptions are closed: it reads their number.
    this.#deps.onLost(reason)
    this.#subscriptions.lose(reason)
  }

  #onFrame(frame: Buffer): void {
    const at = readNotification(frame)
    if (at === undefined) return this.#onResponse(frame)
    // A slotSubscribe of a customer has the same id at the node as ours.
    this.#subscriptions.onNotification(frame, at)
    if (at.subscription === this.#slotId) this.#onSlotFrame(frame)
  }

  #onSlotFrame(frame: Buffer): void {
    const newest = Number(/"slot":\s*(\d{1,16})/.exec(frame.toString('latin1'))?.[1] ?? 0)
    if (newest <= this.#slot) return
    this.#slot = newest
    this.#slotAtMs = this.#deps.clock.monotonicMs()
    this.#deps.onSlot(newest)
  }

  #onResponse(frame: Buffer): void {
    const text = frame.toString('utf8')
    const response = parseResponse(text)
    if (response === undefined) this.#lose('protocol')
    else if (response.id === SLOT_SUBSCRIBE_ID) this.#slotId = response.result
    else this.#subscriptions.onResponse(response, text)
  }
}

function reasonOf({ cause }: WsLoss): LossReason {
  return cause === 'address' || cause === 'refused' ? 'connect' : cause
}

/** The subscription id is read from the text: a u64 may exceed the safe integers. */
function parseResponse(text: string): WsResponse | undefined {
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
