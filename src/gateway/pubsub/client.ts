import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { type DocsUrl, ERRORS } from '../../contract/errors.ts'
import type { NodeUser } from '../../contract/products.ts'
import type { Clock } from '../../core/clock.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { RefusalRecorder } from '../../platform/telemetry/refusal-log.ts'
import { WsCloseCode } from '../../platform/ws/close-codes.ts'
import type { WsConnection } from '../../platform/ws/connection.ts'
import type { ListenerMeter } from '../metrics.ts'
import { errorResponse, recordRefusals, refuseSize } from '../refusal.ts'
import type { Forward } from '../rpc/forward.ts'
import { readRpcBody } from '../rpc/request.ts'
import { createWsCalls } from './calls.ts'
import { HeldResponses } from './held-responses.ts'
import { type CloseReason, createRespond, type Reply } from './respond.ts'
import { bytesFrame } from './splice.ts'
import { createClientSubscriptions } from './subscriptions.ts'
import type { Gap } from './upstream-subscription.ts'
import type { UpstreamSubscriptions } from './upstream-subscriptions.ts'

export type PubSubClientDeps = {
  readonly access: Access
  readonly upstreamSubscriptions: UpstreamSubscriptions
  readonly forward: Forward
  readonly heldBytes: HeldBytes
  readonly clock: Clock
  readonly log: Logger
  readonly meter: Pick<ListenerMeter, 'request' | 'refused'>
  readonly gapsReported: { inc(): void }
  readonly docsUrl?: DocsUrl | undefined
  readonly refusals?: RefusalRecorder | undefined
}

export type WsHandshake = { readonly caller: Caller; readonly wantsGaps: boolean; readonly requestId: string }

export type PubSubClient = {
  readonly tokenSha256: string
  readonly nodeUser: NodeUser
  /** Number of live subscriptions. */
  readonly subscriptions: number
  /** Takes over the caller as the store has it now; closes with 4401 where its token is no longer valid, with 1013 where it has no node. */
  renew(caller: ReturnType<Access['renew']>): void
  /** Closes with 1012 because the subscription has other nodes now; the client reconnects to them. */
  move(): void
}

/** Messages that are not charged: pings, invalid requests, getRateLimits. */
const FREE_PER_SECOND = 20
const FREE_BURST = 200

/** Serves one connection: requests in, responses and notifications out. */
export function servePubSubClient(
  connection: WsConnection,
  handshake: WsHandshake,
  deps: PubSubClientDeps,
): PubSubClient {
  const { access, clock, log, meter } = deps
  const { requestId } = handshake
  let { caller } = handshake
  const onRefused = recordRefusals(deps.refusals, 'ws', caller.subscription.id)
  const request = { requestId, docsUrl: deps.docsUrl, onRefused }
  let free = FREE_BURST
  let freeAtMs = clock.monotonicMs()
  const { forward, heldBytes } = deps
  const calls = createWsCalls({ access, forward, request, connection, meter, heldBytes })
  const subscriptions = createClientSubscriptions({
    access,
    upstreamSubscriptions: deps.upstreamSubscriptions,
    connection,
    sendGap: handshake.wantsGaps ? sendGap : undefined,
    onOverflow: () => connection.close(WsCloseCode.tryAgainLater, 'too slow'),
  })
  const respond = createRespond({
    ...{ access, clock, meter, request, calls, subscriptions, takeFree, closeRefused },
    caller: () => caller,
  })

  function sendGap(subscription: number, result: Gap): void {
    deps.gapsReported.inc()
    connection.send(JSON.stringify({ jsonrpc: '2.0', method: 'gapNotification', params: { subscription, result } }))
  }

  function takeFree(): boolean {
    const nowMs = clock.monotonicMs()
    free = Math.min(FREE_BURST, free + ((nowMs - freeAtMs) / 1000) * FREE_PER_SECOND)
    freeAtMs = nowMs
    if (free >= 1) {
      free -= 1
      return true
    }
    meter.refused('freeMessages')
    connection.close(WsCloseCode.policyViolation, 'too many messages that are no requests')
    return false
  }

  async function onMessage(text: string): Promise<void> {
    const body = readRpcBody(text, { batchItems: caller.limits.batchItems }, request)
    if (body.kind === 'refused') {
      if (takeFree()) connection.send(body.response)
      return
    }
    if (body.kind === 'too-many') {
      meter.refused('batchItems', { subscription: caller.subscription.id, code: 'too-large' })
      if (takeFree()) connection.send(errorResponse(refuseSize('batchItems', body.limit), request, 'null'))
      return
    }
    using held = new HeldResponses(heldBytes, { owner: caller.subscription.id, isBatch: body.batch })
    const responding = body.items.map((item) => respond(item, held))
    const replies = (await Promise.all(responding)).filter((reply) => reply !== undefined)
    const [first] = replies
    if (first === undefined || !connection.isOpen) return
    if (!body.batch) connection.sendFrame(bytesFrame(bytesOf(first.text)))
    else connection.sendFrame(bytesFrame(joinReplies(replies)))
    for (const { onSent } of replies) onSent?.()
  }

  function closeRefused(reason: CloseReason): void {
    if (reason === 'not-assigned') connection.close(ERRORS['not-assigned'].close, 'no node is assigned')
    else connection.close(ERRORS.unauthorized.close, `token ${reason}`)
  }

  connection.onMessage((text) => {
    // A client may send until it receives the close frame.
    if (!connection.isOpen) return undefined
    return onMessage(text).catch((err: unknown) => {
      log.error({ err, request_id: requestId }, 'WebSocket message could not be handled')
      connection.close(WsCloseCode.internalError, 'internal error')
    })
  })
  connection.onClose(() => subscriptions[Symbol.dispose]())

  return {
    tokenSha256: caller.tokenSha256,
    get nodeUser() {
      return caller.nodeUser
    },
    get subscriptions() {
      return subscriptions.size
    },
    renew(current) {
      if (!current.ok) return closeRefused(current.reason)
      caller = current
      const refusal = access.refuseWithoutNode(caller)
      if (refusal !== undefined) closeRefused(refusal.reason)
    },
    move: () => connection.close(WsCloseCode.serviceRestart, 'moved to other nodes'),
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
