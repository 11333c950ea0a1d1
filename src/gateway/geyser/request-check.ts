import type { Limits } from '../../contract/limits.ts'
import type { MessageLimits } from '../../platform/grpc/call.ts'
import { GrpcCode, type GrpcStatus } from '../../platform/grpc/status.ts'
import { checkAddresses } from './addresses.ts'
import { requestBytesMax } from './methods.ts'
import { type PolicyPass, policyOf } from './policy.ts'

/** Decides for each request of one call whether it is forwarded. */
export type RequestCheck = {
  /** Where it is false, the call has been ended or will be. */
  accepts(request: Uint8Array): boolean
  readonly messageLimits: MessageLimits
  /** Filters of the last accepted request. */
  readonly filters: number
}

export type RequestCheckDeps = {
  readonly method: string
  readonly isStream: boolean
  /** Limits of the current plan, which may have changed since the call began. */
  readonly limits: () => Limits
  readonly monotonicMs: () => number
  /** Whether the requests go to a node, which may know more fields than are known here. */
  readonly isForwarded: boolean
  /** What else a request must satisfy. */
  readonly check?: ((request: Uint8Array) => Problem | undefined) | undefined
  /** Charges a request after the first; false where that is refused, and the call ends. */
  readonly charge: () => boolean
  readonly onAccepted: (request: Uint8Array, verdict: PolicyPass) => void
  /** Called before the call ends. The charge of a call is for its first request, so it is due back where that is refused, unless too many are. */
  readonly onRefused: (refused: RefusedMessage) => void
  readonly end: (status: GrpcStatus) => void
}

type Problem = { readonly rule: string; readonly message: string }

export type RefusedMessage = {
  readonly rule: string
  readonly code: 'invalid-params' | 'too-large'
  readonly isFirst: boolean
  /** Bytes of the message that were read, inflated. */
  readonly bytes: number
}

/** Pings that are not charged within this time; further ones are charged like a request. */
const FREE_PINGS = 20
const FREE_PINGS_MS = 10_000

/** Checks each request against the plan and charges it. What is refused is not forwarded; whether the call stays charged is for `onRefused`. */
export function createRequestCheck(deps: RequestCheckDeps): RequestCheck {
  const { method, isStream, limits, monotonicMs, isForwarded } = deps
  const policy = policyOf(method)
  let filters = 0
  let isFirst = true
  let pings = 0
  let pingsSinceMs = monotonicMs()

  function isFreePing(): boolean {
    const nowMs = monotonicMs()
    if (nowMs - pingsSinceMs >= FREE_PINGS_MS) {
      pingsSinceMs = nowMs
      pings = 0
    }
    return ++pings <= FREE_PINGS
  }

  function refuse({ rule, message }: Problem, bytes: number): false {
    deps.onRefused({ rule, code: 'invalid-params', isFirst, bytes })
    deps.end({ code: GrpcCode.invalidArgument, message })
    return false
  }

  function accept(request: Uint8Array, verdict: PolicyPass): true {
    if (!verdict.isPing) filters = Object.values(verdict.filters).reduce((sum, count) => sum + count, 0)
    deps.onAccepted(request, verdict)
    return true
  }

  return {
    get filters() {
      return filters
    },
    messageLimits: {
      bytesMax: () => requestBytesMax(method, limits()),
      // One that is too large as it arrives is not read beyond its prefix.
      onRefused: ({ limit, bytes = 0 }) =>
        deps.onRefused({
          rule: limit ?? 'readable',
          code: limit === undefined ? 'invalid-params' : 'too-large',
          isFirst,
          bytes,
        }),
    },
    accepts(request) {
      const verdict = policy(request, limits(), isForwarded)
      if (!verdict.ok) return refuse(verdict, request.length)
      const problem = checkAddresses(method, request) ?? deps.check?.(request)
      if (problem !== undefined) return refuse(problem, request.length)
      if (!isStream && !isFirst) {
        deps.end({ code: GrpcCode.internal, message: 'more than one request for a unary call' })
        return false
      }
      if (verdict.isPing && isFreePing()) return true
      // The charge of the call covers its first request.
      if (isFirst && !verdict.isPing) {
        isFirst = false
        return accept(request, verdict)
      }
      return deps.charge() && accept(request, verdict)
    },
  }
}
