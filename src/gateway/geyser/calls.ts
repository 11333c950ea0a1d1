import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { createFreeRefusals } from '../../access/free-refusals.ts'
import type { Clock } from '../../core/clock.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { GrpcStream } from '../../platform/grpc/stream.ts'
import { createSlicedChecks } from '../../platform/process/sliced-checks.ts'
import { createLimitedLog } from '../../platform/telemetry/limited-log.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Connections } from '../account/connections.ts'
import type { SharedLimits } from '../limits.ts'
import type { GatewayMetrics } from '../metrics.ts'
import { upstreamRefusal } from '../refusal.ts'
import { createGeyserAdmission } from './admission.ts'
import { openWithCompleteRequest } from './complete-request.ts'
import type { DecodedStreams } from './decoded/streams.ts'
import { GeyserCall, type GeyserCallOptions, type OpenedCall } from './geyser-call.ts'
import { type DecodedMethod, isDecodedMethod, isUnary } from './methods.ts'
import { grpcStatusOf, SHUTTING_DOWN } from './refusal.ts'
import { createResetFloodGuard } from './reset-flood-guard.ts'
import { createResume } from './resume.ts'

export type GeyserCallsOptions = GeyserCallOptions & {
  /** A refusal by a limit is delayed by this time, because the common client reopens a refused stream at once. */
  readonly refusalDelayMs: number
}

export type GeyserCallsDeps = {
  readonly access: Access
  readonly upstreams: Pick<Upstreams, 'of' | 'usesShared'>
  readonly connections: Connections
  readonly metrics: Pick<GatewayMetrics, 'grpc' | 'resumes'>
  readonly log: Logger
  readonly clock: Clock
  readonly limits?: SharedLimits | undefined
  /** Serves the methods of decoded shreds; without it they are forwarded like every other. */
  readonly decoded?: Pick<DecodedStreams, 'open' | 'check'> | undefined
}

export type GeyserCalls = Disposable & {
  /** `remoteAddress` is the client's, behind any trusted proxies. */
  serve(call: GrpcCall, caller: Caller, request: { readonly method: string; readonly remoteAddress: string }): void
  /** Ends open calls whose token is no longer valid, and gives up nodes that have gone silent; in slices of time. */
  sweep(): void
  readonly openCalls: number
  /** Ends open streams one after another within this time, so that clients do not reconnect all at once. */
  endStreams(withinMs: number): void
}

/** An admitted call without a stream yet. */
type PendingCall = Pick<OpenedCall, 'call' | 'caller' | 'admitted'> & {
  readonly metadata: Readonly<Record<string, string>>
  /** Set once it has a stream, whose node may be drained before. */
  geyserCall?: GeyserCall
}

/** Serves calls of geyser.Geyser: admits each, opens it at a node of the subscription or at the decoded shreds, and relays it until its end. */
export function createGeyserCalls(options: GeyserCallsOptions, deps: GeyserCallsDeps): GeyserCalls {
  const { access, upstreams, connections, metrics, log, clock } = deps
  const credentialLog = createLimitedLog(clock)
  const resetGuard = createResetFloodGuard(clock, deps.limits?.earlyCancels)
  const unaryCalls = deps.limits?.held.unaryCalls
  const admission = createGeyserAdmission(options, {
    access,
    clock,
    meter: metrics.grpc,
    resetGuard,
    unaryCalls,
    upstreams,
  })
  const freeRefusals = createFreeRefusals(clock, deps.limits?.buckets.freeRefusals)
  const openCalls = new Set<GeyserCall>()
  const checks = createSlicedChecks((call: GeyserCall) => {
    if (openCalls.has(call)) call.check()
  })
  const onEnd = (call: GeyserCall) => void openCalls.delete(call)
  let isEnding = false

  function fail(call: GrpcCall, err: unknown): void {
    log.error({ err }, 'gRPC call failed')
    call.end({ code: GrpcCode.internal, message: 'internal error' })
  }

  function refundNoUpstream({ caller, admitted }: PendingCall): GrpcStatus {
    admitted.refund()
    return grpcStatusOf(upstreamRefusal('no-upstream'), access.quota(caller))
  }

  /** For a call that is over by the time it is opened at a node. */
  function cancelOpened(stream: GrpcStream, { caller }: PendingCall): void {
    resetGuard.cancel(stream, clock.monotonicMs(), caller.subscription.id)
  }

  function openUnary(pending: PendingCall): GrpcStream {
    const { call, caller, metadata } = pending
    return openWithCompleteRequest({
      async open() {
        // A client that leaves ends its request too.
        if (call.isOver) return { ok: false, status: { code: GrpcCode.cancelled } }
        pending.geyserCall?.onRequestComplete()
        const found = await upstreams.of(caller.nodeUser).grpc.open(call.path, metadata)
        if (!found.ok) return { ok: false, status: refundNoUpstream(pending) }
        pending.geyserCall?.onUnaryOpened(found.node)
        return found
      },
      cancel: (stream) => cancelOpened(stream, pending),
      onError: (error) => fail(call, error),
    })
  }

  async function serve(call: GrpcCall, caller: Caller, method: string, remoteAddress: string): Promise<void> {
    const beganMs = clock.monotonicMs()
    const isStream = !isUnary(method)
    const decoded = isDecodedMethod(method) ? deps.decoded : undefined
    const billedCall = {
      interface: 'grpc',
      method,
      product: decoded === undefined ? 'bundle' : 'shreds-decoded',
    } as const
    const admitted = admission.admit(call, caller, billedCall)
    if (admitted === undefined) return

    const upstream = () => upstreams.of(caller.nodeUser)
    const metadata = singleValues(call.metadata)
    const pending: PendingCall = { call, caller, admitted, metadata }
    const mayMove = method === 'Subscribe' && caller.limits.grpcResume
    const isMovable = mayMove ? () => pending.geyserCall?.isMovable === true : undefined
    const found =
      decoded !== undefined
        ? { ok: true as const, stream: decoded.open(method as DecodedMethod), node: undefined }
        : isStream
          ? await upstream().grpc.open(call.path, metadata, { isStream, isMovable })
          : { ok: true as const, stream: openUnary(pending), node: undefined }
    if (!found.ok) {
      admitted.release()
      return call.end(refundNoUpstream(pending))
    }
    const { stream, node } = found
    if (call.isOver && node === undefined) return stream.cancel()
    if (call.isOver) return cancelOpened(stream, pending)

    const resume =
      isMovable !== undefined && node !== undefined
        ? createResume({ node, upstream, path: call.path, metadata, isMovable, clock })
        : undefined
    const check = decoded && ((request: Uint8Array) => decoded.check(method as DecodedMethod, request))
    const opened = { call, caller, billedCall, admitted, isStream, remoteAddress, beganMs, stream, node, resume, check }
    const geyserCall = new GeyserCall(opened, options, {
      access,
      admission,
      freeRefusals,
      connections,
      metrics,
      resetGuard,
      credentialLog,
      log,
      clock,
      onEnd,
    })
    pending.geyserCall = geyserCall
    openCalls.add(geyserCall)
    geyserCall.start()
    if (isEnding && isStream) geyserCall.end(SHUTTING_DOWN)
  }

  return {
    serve(call, caller, { method, remoteAddress }) {
      serve(call, caller, method, remoteAddress).catch((error: unknown) => fail(call, error))
    },
    sweep: () => checks.check(openCalls),
    get openCalls() {
      return openCalls.size
    },
    endStreams(withinMs) {
      isEnding = true
      const streams = [...openCalls].filter(({ isStream }) => isStream)
      streams.forEach((stream, at) => {
        const end = () => stream.end(SHUTTING_DOWN)
        if (at === 0) end()
        else clock.setTimer((withinMs * at) / streams.length, end)
      })
    },
    [Symbol.dispose]: () => checks[Symbol.dispose](),
  }
}

function singleValues(metadata: GrpcCall['metadata']): Record<string, string> {
  const single: Record<string, string> = {}
  for (const [name, value] of Object.entries(metadata)) if (typeof value === 'string') single[name] = value
  return single
}
