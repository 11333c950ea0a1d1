import type { Call, Caller } from '../access/admit.ts'
import type { Access } from '../access/service.ts'
import type { Clock } from '../core/clock.ts'
import type { GrpcCall } from '../host/grpc-call.ts'
import { GrpcCode, type GrpcStatus } from '../host/grpc-status.ts'
import type { GrpcEnd } from '../host/grpc-stream.ts'
import type { Logger } from '../host/logger.ts'
import type { Upstreams } from '../upstreams/service.ts'
import { createEarlyLeave, TOO_OFTEN } from './early-leave.ts'
import { gateOf } from './geyser-gate.ts'
import { grpcStatusOf } from './grpc-refusal.ts'
import { lostStatus, type Relay, startRelay } from './grpc-relay.ts'
import { refuseOverLimit, refuseSeat, refuseToken, refuseUpstream } from './refusal.ts'
import { budgetHeaders } from './rpc.ts'

export type GeyserOptions = {
  /** Who is over a limit is told after this time: the common client opens a refused stream again at once. */
  readonly refusalDelayMs: number
  /** A call of one answer that has none by then is given up. */
  readonly unaryDeadlineMs: number
  /** Nodes ping every ten seconds: one that is silent for so long is lost. */
  readonly stallMs: number
}

export type GeyserDeps = {
  readonly access: Access
  readonly upstreams: Pick<Upstreams, 'of'>
  readonly log: Logger
  readonly clock: Clock
}

export type Geyser = {
  serve(call: GrpcCall, caller: Caller, method: string): void
  /** Looks at every open call again: whose token is no longer good, and whose node has gone silent. */
  sweep(): void
  readonly openCalls: number
  /** Ends open streams one after another within this time, so that not everybody comes back at once. */
  endStreams(withinMs: number): void
}

/** Methods of one request and one answer. Everything else may be a stream, so it needs a seat. */
const UNARY: ReadonlySet<string> = new Set([
  'SubscribeReplayInfo',
  'Ping',
  'GetLatestBlockhash',
  'GetBlockHeight',
  'GetSlot',
  'IsBlockhashValid',
  'GetVersion',
])

/** Pings are free up to this many in this time; beyond it each is charged like a request. */
const FREE_PINGS = 20
const FREE_PINGS_MS = 10_000

type Open = { caller: Caller; readonly isStream: boolean; readonly relay: Relay }

/** Calls of geyser.Geyser: charged, joined to a node of the subscription, and every request of a stream checked against the plan. */
export function createGeyser(options: GeyserOptions, { access, upstreams, log, clock }: GeyserDeps): Geyser {
  const open = new Set<Open>()
  const early = createEarlyLeave(clock)
  let isEnding = false

  function refuseLater(call: GrpcCall, end: () => void): void {
    const timer = clock.setTimer(options.refusalDelayMs, end)
    call.onClose(() => timer.cancel())
    call.onShutdown(end)
  }

  /** Charges a call; undefined when it may not pass, with the status to end it by given to `refuse`. */
  function charge(caller: Caller, what: Call, refuse: (status: GrpcStatus, isLimit: boolean) => void) {
    const admission = access.admit(caller, what)
    if (admission.ok) return admission
    if ('limitName' in admission)
      refuse(grpcStatusOf(refuseOverLimit(admission, what.method, clock.nowMs()), admission), true)
    else refuse(grpcStatusOf(refuseToken(admission.reason)), false)
    return undefined
  }

  async function serve(call: GrpcCall, caller: Caller, method: string): Promise<void> {
    const isStream = !UNARY.has(method)
    const what: Call = { interface: 'grpc', method }
    if (early.isTooOften(caller.subscription.id)) {
      return refuseLater(call, () => call.end({ code: GrpcCode.resourceExhausted, message: TOO_OFTEN }))
    }
    const seat = isStream ? access.slots.acquire(caller.subscription.id, 'grpcStreams', caller.limits) : undefined
    if (seat?.ok === false) {
      const status = grpcStatusOf(refuseSeat(seat), access.quota(caller))
      return refuseLater(call, () => call.end(status))
    }
    const admission = charge(caller, what, (status, isLimit) => {
      seat?.release()
      if (isLimit) refuseLater(call, () => call.end(status))
      else call.end(status)
    })
    if (admission === undefined) return
    call.onClose(() => seat?.release())

    const opened = await upstreams.of(caller.subscription.id).grpc.open(call.path, singleValues(call.metadata))
    if (!opened.ok) {
      access.refund(caller, what)
      seat?.release()
      return call.end(grpcStatusOf(refuseUpstream('no-upstream'), access.quota(caller)))
    }
    const openedMs = clock.monotonicMs()
    if (call.isOver) return early.leave(opened.stream, openedMs, caller.subscription.id)

    const gate = gateOf(method)
    let isFirst = true
    let pings = 0
    let pingsSinceMs = clock.monotonicMs()

    function isFreePing(): boolean {
      const nowMs = clock.monotonicMs()
      if (nowMs - pingsSinceMs >= FREE_PINGS_MS) {
        pingsSinceMs = nowMs
        pings = 0
      }
      return ++pings <= FREE_PINGS
    }

    function accepts(message: Uint8Array): boolean {
      if (gate === undefined) return true
      const verdict = gate(message, entry.caller.limits)
      if (!verdict.ok) {
        // Refused means not charged: what the opening cost was for this request.
        if (isFirst) access.refund(caller, what)
        relay.end({ code: GrpcCode.invalidArgument, message: verdict.message })
        return false
      }
      if (verdict.isPing && isFreePing()) return true
      // The opening of the stream has paid for its first request.
      if (isFirst && !verdict.isPing) {
        isFirst = false
        return true
      }
      const again = charge(entry.caller, what, (status, isLimit) => {
        if (!isLimit) return relay.end(status)
        relay.hush()
        refuseLater(call, () => relay.end(status))
      })
      return again !== undefined
    }

    const relay = startRelay({
      call,
      upstream: opened.stream,
      metadata: budgetHeaders(admission, admission.cost),
      monotonicMs: () => clock.monotonicMs(),
      accepts,
      onUpstreamEnd: (end) => relay.end(statusFor(end, opened.upstream.name)),
      onOver(isAtNode) {
        if (isAtNode) early.leave(opened.stream, openedMs, caller.subscription.id)
        seat?.release()
        deadline?.cancel()
        open.delete(entry)
      },
    })
    const entry: Open = { caller, isStream, relay }
    const deadline = isStream
      ? undefined
      : clock.setTimer(options.unaryDeadlineMs, () => relay.end(grpcStatusOf(refuseUpstream('upstream-timeout'))))
    open.add(entry)
    // The store may have moved on while the node was being reached.
    check(entry)
    if (isEnding && isStream) relay.end(SHUTTING_DOWN)
  }

  /** The node's word goes to the customer, except where it is about the gateway's own credential. */
  function statusFor({ status, isFromServer }: GrpcEnd, node: string): GrpcStatus {
    if (!isFromServer || status.code !== GrpcCode.unauthenticated) return status
    log.warn({ upstream: node }, 'the node does not accept the credential it is given')
    return lostStatus(undefined)
  }

  function check(entry: Open): void {
    const { caller, isStream, relay } = entry
    const renewed = access.renew(caller.tokenSha256, 'bundle', clock.nowMs())
    if (!renewed.ok) return relay.end(grpcStatusOf(refuseToken(renewed.reason)))
    entry.caller = renewed
    const { heardMs } = relay
    if (isStream && heardMs !== undefined && clock.monotonicMs() - heardMs > options.stallMs) {
      relay.end({ code: GrpcCode.unavailable, message: 'the node behind this stream has gone silent' })
    }
  }

  return {
    serve(call, caller, method) {
      serve(call, caller, method).catch((err: unknown) => {
        log.error({ err }, 'gRPC call failed')
        call.end({ code: GrpcCode.internal, message: 'something broke inside the gateway' })
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
        // The first goes at once.
        if (at === 0) end()
        else clock.setTimer((withinMs * at) / streams.length, end)
      })
    },
  }
}

/** In the words of the node's own server. */
const SHUTTING_DOWN: GrpcStatus = { code: GrpcCode.unavailable, message: 'server is shutting down try again later' }

function singleValues(metadata: GrpcCall['metadata']): Record<string, string> {
  const single: Record<string, string> = {}
  for (const [name, value] of Object.entries(metadata)) if (typeof value === 'string') single[name] = value
  return single
}
