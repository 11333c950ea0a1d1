import type { Call } from '../../access/admission.ts'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import type { FreeRefusals } from '../../access/free-refusals.ts'
import type { ProductKey } from '../../contract/products.ts'
import type { Clock, Timer } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import type { LimitedLog } from '../../platform/telemetry/limited-log.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import { grpcRefusalOf } from '../../upstreams/grpc-link.ts'
import type { UpstreamNode } from '../../upstreams/node.ts'
import type { Connections } from '../account/connections.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { callerRefusal, upstreamRefusal } from '../refusal.ts'
import type { Admitted, GeyserAdmission } from './admission.ts'
import type { DecodedRefusal } from './decoded/streams.ts'
import { grpcStatusOf } from './refusal.ts'
import { lostStatus, StreamRelay } from './relay.ts'
import { createRequestCheck, type RefusedMessage, type RequestCheck } from './request-check.ts'
import type { ResetFloodGuard } from './reset-flood-guard.ts'
import type { NextNode, Resume } from './resume.ts'

/** An admitted call and its stream at a node or of decoded shreds. */
export type OpenedCall = {
  readonly call: GrpcCall
  readonly caller: Caller
  readonly billedCall: Call & { readonly product: ProductKey }
  readonly admitted: Admitted
  readonly isStream: boolean
  readonly remoteAddress: string
  /** When the call began. */
  readonly beganMs: number
  readonly stream: GrpcStream
  /** Undefined for decoded shreds, and for a unary call until it is opened at a node. */
  readonly node: UpstreamNode | undefined
  /** Set where the call may continue at another node. */
  readonly resume: Resume | undefined
  /** What a request must satisfy besides the plan. */
  readonly check: ((request: Uint8Array) => DecodedRefusal | undefined) | undefined
}

export type GeyserCallOptions = {
  /** Deadline of a unary call. */
  readonly unaryDeadlineMs: number
  /** Nodes ping every ten seconds: one that sends nothing for this time counts as lost. */
  readonly stallMs: number
}

export type GeyserCallDeps = {
  readonly access: Access
  readonly admission: GeyserAdmission
  readonly freeRefusals: FreeRefusals
  readonly connections: Connections
  readonly metrics: Pick<GatewayMetrics, 'grpc' | 'resumes'>
  readonly resetGuard: Pick<ResetFloodGuard, 'cancel'>
  /** Limits the log lines about a refused credential. */
  readonly credentialLog: LimitedLog
  readonly log: Logger
  readonly clock: Clock
  /** Called exactly once. */
  onEnd(call: GeyserCall): void
}

/** A call of geyser.Geyser from its opening to its end: its requests are checked and charged, and its token and node are watched. */
export class GeyserCall {
  readonly isStream: boolean
  readonly #opened: OpenedCall
  readonly #options: GeyserCallOptions
  readonly #deps: GeyserCallDeps
  readonly #relay: StreamRelay
  readonly #deadline: Timer | undefined
  readonly #leave: ((status?: GrpcStatus) => void) | undefined
  /** As the store knew it at the last check. */
  #caller: Caller
  /** The node of the call now, and since when. */
  #node: UpstreamNode | undefined
  #atNodeSinceMs: number
  #hasRequest = false

  constructor(opened: OpenedCall, options: GeyserCallOptions, deps: GeyserCallDeps) {
    this.isStream = opened.isStream
    this.#opened = opened
    this.#options = options
    this.#deps = deps
    this.#caller = opened.caller
    this.#node = opened.node
    this.#atNodeSinceMs = deps.clock.monotonicMs()
    const requestCheck = this.#createRequestCheck()
    this.#relay = this.#createRelay(requestCheck)
    if (opened.isStream) this.#leave = this.#enter(requestCheck)
    else this.#deadline = deps.clock.setTimer(options.unaryDeadlineMs, () => this.#onDeadline())
  }

  /** The call may end within it: the store may have changed, and the node may be lost, while it was being connected to. */
  start(): void {
    this.#relay.start()
    this.check()
  }

  /** The request of the call, which is unary, is complete. */
  onRequestComplete(): void {
    this.#hasRequest = true
  }

  /** The call, which is unary, was opened at a node. */
  onUnaryOpened(node: UpstreamNode): void {
    this.#node = node
    this.#atNodeSinceMs = this.#deps.clock.monotonicMs()
  }

  end(status: GrpcStatus): void {
    this.#relay.end(status)
  }

  /** Whether another node could continue the call now, without a gap or a partial message. */
  get isMovable(): boolean {
    return this.#opened.resume?.canContinue === true && !this.#relay.isWithinMessage
  }

  /** Ends the call if its token is no longer valid, and gives up a node that has gone silent. */
  check(): void {
    const { access, clock } = this.#deps
    const renewed = access.renew(this.#caller.tokenSha256, this.#opened.billedCall.product, clock.nowMs())
    const refusal = !renewed.ok ? renewed : this.#isDecoded ? undefined : access.refuseWithoutNode(renewed)
    if (refusal !== undefined) return this.end(grpcStatusOf(callerRefusal('grpc', refusal)))
    if (!renewed.ok) return
    this.#caller = renewed
    // Decoded streams have no node behind them: where no shreds come, entries just do not come either.
    if (!this.isStream || this.#isDecoded) return
    const { lastDataMs } = this.#relay
    if (lastDataMs !== undefined && clock.monotonicMs() - lastDataMs > this.#options.stallMs)
      this.#relay.loseNode('silent')
  }

  get #isDecoded(): boolean {
    return this.#opened.billedCall.product !== 'bundle'
  }

  #onDeadline(): void {
    if (!this.#hasRequest) return this.end(NOT_REQUESTED)
    // No node has got the request.
    if (this.#node === undefined) this.#opened.admitted.refund()
    this.end(TIMED_OUT)
  }

  #createRequestCheck(): RequestCheck {
    const { billedCall, isStream, check, resume } = this.#opened
    return createRequestCheck({
      method: billedCall.method,
      isStream,
      limits: () => this.#caller.limits,
      monotonicMs: () => this.#deps.clock.monotonicMs(),
      isForwarded: !this.#isDecoded,
      check,
      charge: () => this.#chargeAgain(),
      onAccepted: (request, verdict) => resume?.onRequest(request, verdict),
      onRefused: (refused) => this.#onRefused(refused),
      end: (status) => this.end(status),
    })
  }

  #createRelay({ messageLimits, accepts }: RequestCheck): StreamRelay {
    const { call, caller, stream, admitted, resume } = this.#opened
    const { access, clock, metrics } = this.#deps
    return new StreamRelay({
      call,
      nodeStream: stream,
      metadata: () => admitted.rateLimits,
      monotonicMs: () => clock.monotonicMs(),
      meter: metrics.grpc,
      onSent: (bytes) => access.countBytes(caller, 'grpc', bytes),
      messageLimits,
      accepts,
      onUpstreamEnd: (end) => this.end(this.#statusFor(end)),
      onError: (err) => this.#deps.log.error({ err }, 'stream of a lost node could not be continued'),
      resume: resume && { ...resume, next: () => this.#continueAtNext(resume) },
      onEnd: (atNode, status) => this.#onEnd(atNode, status),
    })
  }

  /** Lists the stream among the open connections of its subscription. */
  #enter(requestCheck: RequestCheck): (status?: GrpcStatus) => void {
    const { caller, remoteAddress } = this.#opened
    this.#deps.metrics.grpc.open.inc()
    return this.#deps.connections.enter({
      subscriptionId: caller.subscription.id,
      interface: 'grpc',
      remoteAddress,
      subscriptions: () => requestCheck.filters,
      bytesOut: () => this.#relay.bytesOut,
      moves: () => this.#relay.moves,
      close: () => this.end(CLOSED_BY_OWNER),
    })
  }

  #chargeAgain(): boolean {
    const { call, billedCall } = this.#opened
    const relay = this.#relay
    const open = { call, stopMessages: () => relay.stopMessages(), end: (status: GrpcStatus) => relay.end(status) }
    return this.#deps.admission.chargeAgain(open, this.#caller, billedCall)
  }

  #onRefused({ rule, code, isFirst, bytes }: RefusedMessage): void {
    const { metrics, freeRefusals } = this.#deps
    const { caller, admitted } = this.#opened
    const subscription = caller.subscription.id
    if (isFirst && freeRefusals.take(subscription, bytes)) admitted.refund()
    metrics.grpc.refused(rule, { subscription, code })
  }

  async #continueAtNext({ next }: Resume): Promise<NextNode | undefined> {
    const { log, metrics, clock } = this.#deps
    // Only calls at nodes are resumed.
    if (this.#node === undefined) return undefined
    const found = await next()
    const fields = {
      upstream: this.#node.name,
      next: found?.node.name,
      subscription: this.#opened.caller.subscription.id,
      fromSlot: found?.fromSlot,
      endedBanks: found?.ended.banks,
    }
    log.info(fields, found === undefined ? 'stream of a lost node ended' : 'stream of a lost node resumed at another')
    metrics.resumes[found === undefined ? 'ended' : 'resumed'].inc()
    if (found === undefined) return undefined
    this.#node = found.node
    this.#atNodeSinceMs = clock.monotonicMs()
    return found
  }

  /** The node's status goes to the customer, except where it refuses the gateway. A call that it has not begun is not charged then. */
  #statusFor(end: GrpcEnd): GrpcStatus {
    const { log, metrics, credentialLog } = this.#deps
    const refusal = grpcRefusalOf(end)
    if (isLagged(end.status)) metrics.grpc.slow.inc()
    if (refusal === undefined) return end.status
    const upstream = this.#node?.name
    if (refusal === 'credential')
      credentialLog((left) => log.warn({ upstream, ...left }, 'the node refuses the configured credential'), upstream)
    if (end.isTrailersOnly !== true) return lostStatus(undefined)
    this.#opened.admitted.refund()
    return REFUSED
  }

  #onEnd(atNode: GrpcStream | undefined, status: GrpcStatus | undefined): void {
    const { clock, metrics, onEnd } = this.#deps
    if (atNode !== undefined) this.#cancel(atNode)
    this.#opened.admitted.release()
    this.#leave?.(status)
    if (this.isStream) metrics.grpc.open.dec()
    else metrics.grpc.tookMs(clock.monotonicMs() - this.#opened.beganMs)
    this.#deadline?.cancel()
    onEnd(this)
  }

  /** The guard protects nodes, which decoded streams do not use. */
  #cancel(stream: GrpcStream): void {
    if (this.#node === undefined) return stream.cancel()
    this.#deps.resetGuard.cancel(stream, this.#atNodeSinceMs, this.#opened.caller.subscription.id)
  }
}

const REFUSED = grpcStatusOf(upstreamRefusal('no-upstream'))
const TIMED_OUT = grpcStatusOf(upstreamRefusal('upstream-timeout'))
const NOT_REQUESTED: GrpcStatus = { code: GrpcCode.deadlineExceeded, message: 'the request was not complete in time' }
const CLOSED_BY_OWNER: GrpcStatus = { code: GrpcCode.cancelled, message: 'closed by the owner of the subscription' }

/** A node ends the stream of a client that did not read with INTERNAL and a message that begins with `lagged`. */
function isLagged({ code, message = '' }: GrpcStatus): boolean {
  return code === GrpcCode.internal && message.startsWith('lagged')
}
