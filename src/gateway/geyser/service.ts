import type { Call, Caller } from '../../access/authorize.ts'
import type { Access } from '../../access/service.ts'
import type { ProductKey } from '../../contract/products.ts'
import type { Clock } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcEnd, GrpcStream } from '../../platform/grpc/stream.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Connections } from '../account/connections.ts'
import type { SharedLimits } from '../limits.ts'
import type { BundleMetrics } from '../metrics.ts'
import { refuseCaller, refuseOverLimit, refusePermit, refuseUpstream } from '../refusal.ts'
import { budgetHeaders } from '../rpc/http-response.ts'
import type { DecodedStreams } from './decoded/streams.ts'
import { type DecodedMethod, isDecodedMethod, isUnary } from './methods.ts'
import { undecidedBy } from './policy.ts'
import { endLater, grpcStatusOf } from './refusal.ts'
import { lostStatus, type Relay, startRelay } from './relay.ts'
import { createRequestGate } from './request-gate.ts'
import { createResetFloodGuard, RESET_FLOOD } from './reset-flood-guard.ts'
import { createResume, type Resume } from './resume.ts'

export type GeyserOptions = {
  /** A refusal by a limit is delayed by this time, because the common client reopens a refused stream at once. */
  readonly refusalDelayMs: number
  /** Deadline of a unary call. */
  readonly unaryDeadlineMs: number
  /** Nodes ping every ten seconds: one that sends nothing for this time counts as lost. */
  readonly stallMs: number
}

export type GeyserDeps = {
  readonly access: Access
  readonly upstreams: Pick<Upstreams, 'of'>
  readonly connections: Connections
  readonly metrics: Pick<BundleMetrics, 'grpc' | 'resumes'>
  readonly log: Logger
  readonly clock: Clock
  readonly limits?: SharedLimits | undefined
  /** Serves the methods of decoded shreds; without it they are forwarded like every other. */
  readonly decoded?: Pick<DecodedStreams, 'open' | 'check'> | undefined
}

export type Geyser = {
  /** `remoteAddress` is the client's, behind any trusted proxies. */
  serve(call: GrpcCall, caller: Caller, request: { readonly method: string; readonly remoteAddress: string }): void
  /** Ends open calls whose token is no longer valid, and gives up nodes that have gone silent. */
  sweep(): void
  readonly openCalls: number
  /** Ends open streams one after another within this time, so that clients do not reconnect all at once. */
  endStreams(withinMs: number): void
}

type Admitted = {
  /** For the response: what is left of the budget. */
  readonly budget: Readonly<Record<string, string>>
  /** Returns the permit. */
  release(): void
}

type Open = { caller: Caller; readonly isStream: boolean; readonly relay: Relay; readonly product: ProductKey }

/** Serves calls of geyser.Geyser: charges each, relays it to a node of the subscription, and checks every request against the plan. */
export function createGeyser(options: GeyserOptions, deps: GeyserDeps): Geyser {
  const { access, upstreams, connections, log, clock } = deps
  const { grpc: meter, resumes } = deps.metrics
  const open = new Set<Open>()
  const resetGuard = createResetFloodGuard(clock, deps.limits?.earlyCancels)
  let isEnding = false

  function refuseLater(call: GrpcCall, end: () => void): undefined {
    endLater(call, clock, { delayMs: options.refusalDelayMs }, end)
  }

  /** Charges a call; undefined where it is refused, after `refuse` was called with the status. */
  function charge(caller: Caller, charged: Call, refuse: (status: GrpcStatus, isDelayed: boolean) => void) {
    const admission = access.admit(caller, charged)
    if (admission.ok) {
      meter.request(charged.method)
      return admission
    }
    if ('limitName' in admission) {
      meter.refused(admission.limitName)
      refuse(grpcStatusOf(refuseOverLimit(admission, charged.method, clock.nowMs()), admission), true)
    } else refuse(grpcStatusOf(refuseCaller('grpc', admission)), admission.reason === 'not-assigned')
    return undefined
  }

  /** Takes the permit of a stream and charges the call; undefined where it is refused. */
  function admit(call: GrpcCall, caller: Caller, charged: Call): Admitted | undefined {
    const { method } = charged
    const subscription = caller.subscription.id
    if (resetGuard.isOverLimit(subscription)) {
      meter.refused('cancelledCalls', { subscription, code: 'rate-limited' })
      return refuseLater(call, () => call.end({ code: GrpcCode.resourceExhausted, message: RESET_FLOOD }))
    }
    const unenforced = undecidedBy(method, caller.limits)
    if (unenforced !== undefined) {
      meter.refused(unenforced, { subscription, code: 'invalid-params' })
      const message = `method refused: ${unenforced} of the plan limits what may be selected, and cannot be checked for this method`
      return refuseLater(call, () => call.end({ code: GrpcCode.permissionDenied, message }))
    }
    const permit = isUnary(method) ? undefined : access.permits.acquire(subscription, 'grpcStreams', caller.limits)
    if (permit?.ok === false) {
      meter.refused(permit.limitName)
      const status = grpcStatusOf(refusePermit(permit), access.quota(caller))
      return refuseLater(call, () => call.end(status))
    }
    const release = () => permit?.release()
    const admission = charge(caller, charged, (status, isDelayed) => {
      release()
      if (isDelayed) refuseLater(call, () => call.end(status))
      else call.end(status)
    })
    if (admission === undefined) return undefined
    call.onClose(release)
    return { budget: budgetHeaders(admission, admission.cost), release }
  }

  async function serve(call: GrpcCall, caller: Caller, method: string, remoteAddress: string): Promise<void> {
    const beganMs = clock.monotonicMs()
    const isStream = !isUnary(method)
    const decoded = isDecodedMethod(method) ? deps.decoded : undefined
    const product = decoded === undefined ? 'bundle' : 'shreds-decoded'
    const charged: Call = { interface: 'grpc', method, product }
    const admitted = admit(call, caller, charged)
    if (admitted === undefined) return

    const upstream = () => upstreams.of(caller.nodeUser)
    const metadata = singleValues(call.metadata)
    const opened =
      decoded === undefined
        ? await upstream().grpc.open(call.path, metadata, { isStream })
        : { ok: true as const, stream: decoded.open(method as DecodedMethod), upstream: undefined }
    if (!opened.ok) {
      access.refund(caller, charged)
      admitted.release()
      return call.end(grpcStatusOf(refuseUpstream('no-upstream'), access.quota(caller)))
    }
    let openedMs = clock.monotonicMs()
    let node = opened.upstream
    /** The guard protects nodes, which decoded streams do not use. */
    const cancel = (stream: GrpcStream) =>
      decoded === undefined ? resetGuard.cancel(stream, openedMs, caller.subscription.id) : stream.cancel()
    if (call.isOver) return cancel(opened.stream)

    const resume =
      method === 'Subscribe' && caller.limits.grpcResume
        ? createResume({ upstream, path: call.path, metadata, clock })
        : undefined
    const gate = createRequestGate({
      method,
      isStream,
      limits: () => entry.caller.limits,
      monotonicMs: () => clock.monotonicMs(),
      check: decoded && ((request) => decoded.check(method as DecodedMethod, request)),
      charge() {
        const again = charge(entry.caller, charged, (status, isDelayed) => {
          if (!isDelayed) return relay.end(status)
          relay.stopMessages()
          refuseLater(call, () => relay.end(status))
        })
        return again !== undefined
      },
      onAccepted: (request, verdict) => resume?.onRequest(request, verdict),
      onRefused({ rule, code, isFirst }) {
        if (isFirst) access.refund(caller, charged)
        meter.refused(rule, { subscription: caller.subscription.id, code })
      },
      end: (status) => relay.end(status),
    })

    async function continueAtNext({ next }: Resume, lastSlot: number | undefined) {
      // Only calls at nodes are resumed.
      if (node === undefined) return undefined
      const found = await next(node, lastSlot)
      const moved = { fromSlot: found?.fromSlot, endedBanks: found?.ended.banks }
      const fields = { upstream: node.name, next: found?.upstream.name, subscription: caller.subscription.id, ...moved }
      log.info(fields, found === undefined ? 'stream of a lost node ended' : 'stream of a lost node resumed at another')
      resumes[found === undefined ? 'ended' : 'resumed'].inc()
      if (found === undefined) return undefined
      node = found.upstream
      openedMs = clock.monotonicMs()
      return found
    }

    const relay = startRelay({
      call,
      upstream: opened.stream,
      metadata: admitted.budget,
      monotonicMs: () => clock.monotonicMs(),
      meter,
      onSent: (bytes) => access.countBytes(caller, 'grpc', bytes),
      messageLimits: gate.messageLimits,
      accepts: gate.accepts,
      onUpstreamEnd: (end) => relay.end(statusFor(end, node?.name)),
      resume: resume && { ...resume, next: (lastSlot) => continueAtNext(resume, lastSlot) },
      onEnd(atNode, status) {
        if (atNode !== undefined) cancel(atNode)
        admitted.release()
        leave?.(status)
        if (isStream) meter.open.dec()
        else meter.tookMs(clock.monotonicMs() - beganMs)
        deadline?.cancel()
        open.delete(entry)
      },
    })
    const entry: Open = { caller, isStream, relay, product }
    const deadline = isStream
      ? undefined
      : clock.setTimer(options.unaryDeadlineMs, () => relay.end(grpcStatusOf(refuseUpstream('upstream-timeout'))))
    open.add(entry)
    if (isStream) meter.open.inc()
    const leave = isStream
      ? connections.enter({
          subscriptionId: caller.subscription.id,
          interface: 'grpc',
          remoteAddress,
          subscriptions: () => gate.filters,
          bytesOut: () => relay.bytesOut,
          moves: () => relay.moves,
          close: () => relay.end(CLOSED_BY_OWNER),
        })
      : undefined
    // The store may have changed while the node was being connected to.
    check(entry)
    if (isEnding && isStream) relay.end(SHUTTING_DOWN)
  }

  /** The node's status goes to the customer, except where it is about the gateway's own credential. */
  function statusFor({ status, isFromServer }: GrpcEnd, node: string | undefined): GrpcStatus {
    if (isLagged(status)) meter.slow.inc()
    if (!isFromServer || status.code !== GrpcCode.unauthenticated) return status
    log.warn({ upstream: node }, 'the node refuses the configured credential')
    return lostStatus(undefined)
  }

  function check(entry: Open): void {
    const { caller, isStream, relay, product } = entry
    const renewed = access.renew(caller.tokenSha256, product, clock.nowMs())
    const refusal = !renewed.ok ? renewed : product === 'bundle' ? access.refuseWithoutNode(renewed) : undefined
    if (refusal !== undefined) return relay.end(grpcStatusOf(refuseCaller('grpc', refusal)))
    if (!renewed.ok) return
    entry.caller = renewed
    const { lastDataMs } = relay
    // Decoded streams have no node behind them: where no shreds come, entries just do not come either.
    const mayStall = isStream && product === 'bundle'
    if (mayStall && lastDataMs !== undefined && clock.monotonicMs() - lastDataMs > options.stallMs)
      relay.loseNode('silent')
  }

  return {
    serve(call, caller, { method, remoteAddress }) {
      serve(call, caller, method, remoteAddress).catch((err: unknown) => {
        log.error({ err }, 'gRPC call failed')
        call.end({ code: GrpcCode.internal, message: 'internal error' })
      })
    },
    sweep() {
      for (const entry of [...open]) check(entry)
    },
    get openCalls() {
      return open.size
    },
    endStreams(withinMs) {
      isEnding = true
      const streams = [...open].filter(({ isStream }) => isStream)
      streams.forEach(({ relay }, at) => {
        const end = () => relay.end(SHUTTING_DOWN)
        if (at === 0) end()
        else clock.setTimer((withinMs * at) / streams.length, end)
      })
    },
  }
}

const CLOSED_BY_OWNER: GrpcStatus = { code: GrpcCode.cancelled, message: 'closed by the owner of the subscription' }
/** The text of a node's own server. */
const SHUTTING_DOWN: GrpcStatus = { code: GrpcCode.unavailable, message: 'server is shutting down try again later' }

/** A node ends the stream of a client that did not read with INTERNAL and a message that begins with `lagged` (bundle.md section 8). */
function isLagged({ code, message = '' }: GrpcStatus): boolean {
  return code === GrpcCode.internal && message.startsWith('lagged')
}

function singleValues(metadata: GrpcCall['metadata']): Record<string, string> {
  const single: Record<string, string> = {}
  for (const [name, value] of Object.entries(metadata)) if (typeof value === 'string') single[name] = value
  return single
}
