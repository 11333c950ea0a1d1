import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { FreeRefusals } from '../../access/free-refusals.ts'
import { type DocsUrl, ERRORS } from '../../contract/errors.ts'
import type { KeyedBuckets } from '../../core/keyed-buckets.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { WsCloseCode } from '../../platform/ws/close-codes.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import type { ListenerMeter } from '../metrics.ts'
import { errorResponse, type RefusableRequest, type Refusal, sizeRefusal } from '../refusal.ts'
import type { Forward } from '../rpc/forward.ts'
import { readRpcBody } from '../rpc/request.ts'
import { WsCalls } from './calls.ts'
import { HeldResponses } from './held-responses.ts'
import type { CloseReason, PubSubRequestHandler, Reply, RequestingClient } from './request-handler.ts'
import { bytesFrame } from './splice.ts'
import { ClientSubscriptions, type SubscribedClient } from './subscriptions.ts'
import type { Gap } from './upstream-subscription.ts'
import type { UpstreamSubscriptions } from './upstream-subscriptions.ts'

export type PubSubClientDeps = {
  readonly access: Access
  readonly requestHandler: PubSubRequestHandler
  readonly upstreamSubscriptions: UpstreamSubscriptions
  readonly forward: Forward
  readonly heldBytes: HeldBytes
  readonly freeRefusals: FreeRefusals
  /** By subscription, with the limits `FREE_MESSAGES`. */
  readonly freeMessages: Pick<KeyedBuckets, 'charge'>
  readonly log: Logger
  readonly meter: Pick<ListenerMeter, 'request' | 'refused'>
  readonly gapsReported: { inc(): void }
  readonly docsUrl?: DocsUrl | undefined
  readonly onRefused: RefusableRequest['onRefused']
}

export type WsHandshake = { readonly caller: Caller; readonly wantsGaps: boolean; readonly requestId: string }

/** Requests that are not charged, of one subscription: pings, invalid ones, refused ones, getRateLimits. */
export const FREE_MESSAGES = { burst: 1000, perSecond: 500 }

/** One connection: requests in, responses and notifications out. */
export class PubSubClient implements RequestingClient, SubscribedClient {
  readonly connection: WsConnection
  /** Of the request that opened the connection. */
  readonly requestId: string
  readonly wantsGaps: boolean
  readonly calls: WsCalls
  readonly subscriptions: ClientSubscriptions
  readonly #deps: PubSubClientDeps
  #caller: Caller

  constructor(connection: WsConnection, { caller, wantsGaps, requestId }: WsHandshake, deps: PubSubClientDeps) {
    this.connection = connection
    this.wantsGaps = wantsGaps
    this.requestId = requestId
    this.#deps = deps
    this.#caller = caller
    this.calls = new WsCalls(this, deps)
    this.subscriptions = new ClientSubscriptions(this, deps)
    connection.onMessage((text) => this.#onMessage(text))
    connection.onClose(() => this.subscriptions[Symbol.dispose]())
    // To connect again does not end a pause.
    this.#countFree(0)
  }

  get caller(): Caller {
    return this.#caller
  }

  get docsUrl(): DocsUrl | undefined {
    return this.#deps.docsUrl
  }

  onRefused(refusal: Refusal, requestId: string): void {
    const subscription = refusal.subscription ?? this.#caller.subscription.id
    this.#deps.onRefused?.({ ...refusal, subscription }, requestId)
  }

  /** Takes over the caller as the store has it now; closes with 4401 where its token is no longer valid, with 1013 where it has no node. */
  renew(current: ReturnType<Access['renew']>): void {
    if (!current.ok) return this.closeRefused(current.reason)
    this.#caller = current
    const refusal = this.#deps.access.refuseWithoutNode(current)
    if (refusal !== undefined) this.closeRefused(refusal.reason)
  }

  /** Closes with 1012 because the subscription has other nodes now; the client reconnects to them. */
  move(): void {
    this.connection.close(WsCloseCode.serviceRestart, 'moved to other nodes')
  }

  sendGap(subscription: number, result: Gap): void {
    this.#deps.gapsReported.inc()
    const params = { subscription, result }
    this.connection.send(JSON.stringify({ jsonrpc: '2.0', method: 'gapNotification', params }))
  }

  onOverflow(): void {
    this.connection.close(WsCloseCode.tryAgainLater, 'too slow')
  }

  countFree(): void {
    this.#countFree(1)
  }

  closeRefused(reason: CloseReason): void {
    if (reason === 'not-assigned') this.connection.close(ERRORS['not-assigned'].close, 'no node is assigned')
    else this.connection.close(ERRORS.unauthorized.close, `token ${reason}`)
  }

  #countFree(requests: number): void {
    const { freeMessages, meter } = this.#deps
    const waitMs = freeMessages.charge(this.#caller.subscription.id, requests)
    if (waitMs === 0) return
    meter.refused('freeMessages')
    this.connection.pauseReading(waitMs)
  }

  #onMessage(text: string): Promise<void> | undefined {
    // A client may send until it receives the close frame.
    if (!this.connection.isOpen) return undefined
    return this.#respond(text).catch((err: unknown) => {
      this.#deps.log.error({ err, request_id: this.requestId }, 'WebSocket message could not be handled')
      this.connection.close(WsCloseCode.internalError, 'internal error')
    })
  }

  async #respond(text: string): Promise<void> {
    const { connection } = this
    const { meter, heldBytes, requestHandler } = this.#deps
    const { limits, subscription } = this.#caller
    const body = readRpcBody(text, { batchItems: limits.batchItems }, this)
    if (body.kind === 'refused') {
      this.countFree()
      return connection.send(body.response)
    }
    if (body.kind === 'too-many') {
      meter.refused('batchItems', { subscription: subscription.id, code: 'too-large' })
      this.countFree()
      return connection.send(errorResponse(sizeRefusal('batchItems', body.limit), this, 'null'))
    }
    using scope = new DisposableStack()
    const held = scope.use(new HeldResponses(heldBytes, { owner: subscription.id, isBatch: body.batch }))
    const responding = body.items.map((item) => requestHandler.respond(this, item, held))
    const replies = (await Promise.all(responding)).filter((reply) => reply !== undefined)
    const [first] = replies
    if (first === undefined || !connection.isOpen) return
    const frame = bytesFrame(body.batch ? joinReplies(replies) : bytesOf(first.text))
    connection.sendFrame(frame, scope.move())
    for (const { onSent } of replies) onSent?.()
  }
}

function bytesOf(text: string | Buffer): Buffer {
  return typeof text === 'string' ? Buffer.from(text) : text
}

function joinReplies(replies: readonly Reply[]): Buffer {
  const parts: Buffer[] = []
  for (const { text } of replies) parts.push(Buffer.from(parts.length === 0 ? '[' : ','), bytesOf(text))
  return Buffer.concat([...parts, Buffer.from(']')])
}
