import type { Call } from '../../access/admission.ts'
import type { Access } from '../../access/call-access.ts'
import type { Caller } from '../../access/callers.ts'
import { methodCost } from '../../access/plan.ts'
import type { Charged } from '../../access/quota/charge.ts'
import type { Clock } from '../../core/clock.ts'
import { createHeldMemory, HeldAmounts } from '../../core/held-amounts.ts'
import type { GrpcCall } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { StreamMeter } from '../metrics.ts'
import { callerRefusal, overLimitRefusal, permitRefusal } from '../refusal.ts'
import { rateLimitHeaders } from '../rpc/http-response.ts'
import { isUnary } from './methods.ts'
import { undecidedBy } from './policy.ts'
import { type CallLimit, callLimitRefusal, endLater, grpcStatusOf } from './refusal.ts'
import { CANCELLED_CALLS, type ResetFloodGuard } from './reset-flood-guard.ts'

export type GeyserAdmission = {
  /** Takes the permit of a stream and charges the call; undefined where it is refused, and ends now or after a delay. */
  admit(call: GrpcCall, caller: Caller, billedCall: Call): Admitted | undefined
  /** Charges a further request of an open call; false where it is refused. */
  chargeAgain(call: EndableCall, caller: Caller, billedCall: Call): boolean
}

export type Admitted = {
  /** For the response: what is left of the quota, and what stays charged. */
  readonly rateLimits: Readonly<Record<string, string>>
  /** Returns the permit. */
  release(): void
  /** Reverts the charge of a call that was not forwarded, once. */
  refund(): void
}

/** How a call that is open is ended. */
export type EndableCall = {
  readonly call: GrpcCall
  stopMessages(): void
  end(status: GrpcStatus): void
}

export type GeyserAdmissionDeps = {
  readonly access: Pick<Access, 'admit' | 'permits' | 'quota' | 'refund'>
  readonly clock: Clock
  readonly meter: Pick<StreamMeter, 'request' | 'refused'>
  readonly resetGuard: Pick<ResetFloodGuard, 'isOverLimit'>
  readonly upstreams: Pick<Upstreams, 'usesShared'>
  /** The open unary calls of all threads; without it they are of this thread alone. */
  readonly unaryCalls?: HeldAmounts | undefined
}

/** Open unary calls of one subscription at shared nodes: a quarter of the streams of one node, with 8 connections of 100 streams. */
export const UNARY_CALLS_MAX = 200
const UNARY_MAXIMA = { total: Number.POSITIVE_INFINITY, key: UNARY_CALLS_MAX }
const UNARY_CALLS: CallLimit = {
  limit: 'grpcUnaryCalls',
  size: UNARY_CALLS_MAX,
  what: 'open unary gRPC calls',
  // They end by themselves.
  retryAfterMs: 1000,
}

const UNLIMITED = { ok: true, release() {} } as const

type RefusedCharge = { readonly ok: false; readonly status: GrpcStatus; readonly isDelayed: boolean }

/** Decides which calls of geyser.Geyser are opened. A refusal by a limit is delayed, because the common client reopens a refused stream at once. */
export function createGeyserAdmission(
  { refusalDelayMs }: { readonly refusalDelayMs: number },
  deps: GeyserAdmissionDeps,
): GeyserAdmission {
  const { access, clock, meter, resetGuard } = deps
  const unaryCalls = deps.unaryCalls ?? new HeldAmounts(createHeldMemory({ threads: 1 }), 0)

  function endAfterDelay(call: GrpcCall, end: () => void): undefined {
    endLater(call, clock, { delayMs: refusalDelayMs }, end)
  }

  /** Why the call is refused before it is charged, and the permit otherwise. */
  function permit(caller: Caller, method: string) {
    const subscription = caller.subscription.id
    if (resetGuard.isOverLimit(subscription)) return overCallLimit(CANCELLED_CALLS, caller, method)
    const unenforced = undecidedBy(method, caller.limits)
    if (unenforced !== undefined) {
      meter.refused(unenforced, { subscription, code: 'invalid-params' })
      const message = `method refused: ${unenforced} of the plan limits what may be selected, and cannot be checked for this method`
      return { ok: false, status: { code: GrpcCode.permissionDenied, message } } as const
    }
    if (isUnary(method)) return deps.upstreams.usesShared(caller.nodeUser) ? permitUnary(caller, method) : UNLIMITED
    const acquired = access.permits.acquire(subscription, 'grpcStreams', caller.limits)
    if (acquired.ok) return acquired
    meter.refused(acquired.limitName)
    return {
      ok: false,
      status: grpcStatusOf(permitRefusal(acquired, methodCost(caller.limits, method)), access.quota(caller)),
    } as const
  }

  function overCallLimit(limit: CallLimit, caller: Caller, method: string) {
    meter.refused(limit.limit, { subscription: caller.subscription.id, code: 'rate-limited' })
    const refusal = callLimitRefusal(limit, methodCost(caller.limits, method))
    return { ok: false, status: grpcStatusOf(refusal, access.quota(caller)) } as const
  }

  function permitUnary(caller: Caller, method: string) {
    const subscription = caller.subscription.id
    if (unaryCalls.take(subscription, 1, UNARY_MAXIMA) !== undefined) return overCallLimit(UNARY_CALLS, caller, method)
    let isTaken = true
    const release = () => {
      if (isTaken) unaryCalls.release(subscription, 1)
      isTaken = false
    }
    return { ok: true, release } as const
  }

  function chargeFor(caller: Caller, billedCall: Call): Charged | RefusedCharge {
    const admission = access.admit(caller, billedCall)
    if (admission.ok) {
      meter.request(billedCall.method)
      return admission
    }
    if (!('limitName' in admission)) {
      const isDelayed = admission.reason === 'not-assigned'
      return { ok: false, status: grpcStatusOf(callerRefusal('grpc', admission)), isDelayed }
    }
    meter.refused(admission.limitName)
    const status = grpcStatusOf(overLimitRefusal(admission, billedCall.method, clock.nowMs()), admission)
    return { ok: false, status, isDelayed: true }
  }

  return {
    admit(call, caller, billedCall) {
      const permitted = permit(caller, billedCall.method)
      if (!permitted.ok) return endAfterDelay(call, () => call.end(permitted.status))
      const release = () => permitted.release()
      const charge = chargeFor(caller, billedCall)
      if (charge.ok) {
        call.onClose(release)
        let rateLimits = rateLimitHeaders(charge, charge.cost)
        let isRefunded = false
        return {
          get rateLimits() {
            return rateLimits
          },
          release,
          refund() {
            if (isRefunded) return
            isRefunded = true
            access.refund(caller, billedCall, charge)
            rateLimits = rateLimitHeaders(access.quota(caller), 0)
          },
        }
      }
      release()
      if (charge.isDelayed) return endAfterDelay(call, () => call.end(charge.status))
      call.end(charge.status)
      return undefined
    },
    chargeAgain(open, caller, billedCall) {
      const charge = chargeFor(caller, billedCall)
      if (charge.ok) return true
      if (charge.isDelayed) {
        open.stopMessages()
        endAfterDelay(open.call, () => open.end(charge.status))
      } else open.end(charge.status)
      return false
    },
  }
}
