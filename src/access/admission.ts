import type { TokenRefusal } from '../contract/errors.ts'
import type { LimitName } from '../contract/limits.ts'
import type { ProductKey } from '../contract/products.ts'
import { setBoundedCopy } from './bounded-map.ts'
import {
  CALLERS_MAX,
  type CachedCaller,
  type Caller,
  type Callers,
  type CallersDeps,
  createCallers,
  type Refused,
} from './callers.ts'
import type { CallMetrics } from './metrics.ts'
import type { Charge, Charged, QuotaView } from './quota/charge.ts'
import type { UsageInterface } from './store/model.ts'
import type { UsageCounter, UsageMeter } from './usage/counter.ts'

export type Call = {
  readonly interface: UsageInterface
  readonly method: string
  /** The product that allows the call, where it is not that of the interface. */
  readonly product?: ProductKey
}

/** The token is valid, but the subscription has no node. */
export type NotAssigned = { readonly ok: false; readonly reason: 'not-assigned' }

/** A refused call, by token, by limit or for lack of a node, is not charged and must not be forwarded. */
export type Admission = Charge | Refused | NotAssigned

export type CallAdmission = Callers & {
  /** The refusal of a caller without a node, on the interfaces that need one; undefined for every other caller. */
  refuseWithoutNode(caller: Caller): NotAssigned | undefined
  /** Charges one call. Each item of a batch, each WebSocket request, each gRPC call or re-subscribe is one. */
  admit(caller: Caller, call: Call): Admission
  /**
   * Reverts the charge of an admitted call that was not forwarded. Without the charge, the call counts as charged under the terms of this caller, as it
   * was where it was admitted right after the caller was authenticated.
   */
  refund(caller: Caller, call: Call, charged?: Charged): void
  /** Counts payload bytes that were handed to the caller's connection. Cheap enough for every message. */
  countBytes(caller: Caller, at: UsageInterface, bytes: number): void
  /** The same for a subscription that is sent to without a caller. */
  countBytesOf(subscriptionId: string, at: UsageInterface, bytes: number): void
  /** The remaining quota of the caller. */
  quota(caller: Caller): QuotaView
}

/** Refused by a limit on an interface, or because of the token for a product. */
export type RefusedCall =
  | { readonly limit: LimitName; readonly interface: UsageInterface }
  | { readonly reason: TokenRefusal | 'not-assigned'; readonly product: ProductKey }

export type CallAdmissionDeps = Omit<CallersDeps, 'onRefused'> & {
  readonly usage: UsageCounter
  readonly metrics: CallMetrics
  /** Called for each refusal of a known caller. */
  readonly onRefused?: (subscriptionId: string, why: RefusedCall) => void
}

const PRODUCT_OF: Record<UsageInterface, ProductKey> = {
  rpc: 'bundle',
  ws: 'bundle',
  grpc: 'bundle',
  indexer: 'indexer',
  shreds: 'shreds-raw',
}

/** Bytes are no use of a token, so none needs to be named. */
const NO_TOKEN = ''

const NOT_ASSIGNED: NotAssigned = Object.freeze({ ok: false, reason: 'not-assigned' })

/** Authenticates callers, and charges their calls synchronously: token, subscription, limits, charge. */
export function createCallAdmission(deps: CallAdmissionDeps): CallAdmission {
  const { usage, clock, metrics, callersMax = CALLERS_MAX } = deps
  const { authenticate, authenticateIndexer, renew, isCurrent, latest } = createCallers(deps)
  /** Meters of subscriptions that are sent to without a caller. */
  const meters = new Map<string, UsageMeter>()
  /** The caller of a charge, where it is not the one that was presented: its terms had changed. */
  const renewedFor = new WeakMap<Charged, CachedCaller>()

  function refuseWithoutNode({ awaitsNode, subscription }: Caller): NotAssigned | undefined {
    if (!awaitsNode) return undefined
    metrics.notAssigned.inc()
    deps.onRefused?.(subscription.id, { reason: 'not-assigned', product: 'dedicated-node' })
    return NOT_ASSIGNED
  }

  return {
    authenticate,
    authenticateIndexer,
    renew,
    refuseWithoutNode,

    admit(caller, call) {
      let current = caller as CachedCaller
      if (!isCurrent(current)) {
        const renewed = renew(current.tokenSha256, call.product ?? PRODUCT_OF[call.interface], clock.nowMs())
        if (!renewed.ok) return renewed
        current = renewed
      }
      if (current.awaitsNode && (call.product ?? PRODUCT_OF[call.interface]) === 'bundle')
        return refuseWithoutNode(current) as NotAssigned
      const monotonicMs = clock.monotonicMs()
      const charged = current.terms.callOf(call.method)
      const outcome = current.account.charge(current.terms, charged, monotonicMs)
      if (outcome.ok) {
        if (current !== caller) renewedFor.set(outcome, current)
        usage.countAdmitted(current.meter, call.interface, outcome.cost, charged.method)
        metrics.admitted[call.interface].inc()
        metrics.units[call.interface].inc(outcome.cost)
      } else {
        usage.countRefused(current.meter, call.interface, charged.method)
        metrics.limited[outcome.limitName].inc()
        deps.onRefused?.(current.subscription.id, { limit: outcome.limitName, interface: call.interface })
      }
      return outcome
    },

    refund(caller, call, charged) {
      // Uses the terms under which the call was charged, so that the refund equals the charge.
      const renewed = charged && renewedFor.get(charged)
      const { terms, meter, account } = renewed ?? (caller as CachedCaller)
      const monotonicMs = clock.monotonicMs()
      const taken = terms.callOf(call.method)
      // Charged before it is counted, and counted back before it is refunded: a thread that dies in between has never counted more than it charged.
      usage.countRefunded(meter, call.interface, taken.cost, taken.method)
      account.refund(terms, taken, monotonicMs)
    },

    countBytes: (caller, at, bytes) => usage.countBytes((caller as CachedCaller).meter, at, bytes),

    countBytesOf(subscriptionId, at, bytes) {
      let meter = meters.get(subscriptionId)
      if (meter === undefined) {
        meter = usage.createMeter(subscriptionId, NO_TOKEN)
        setBoundedCopy(meters, subscriptionId, meter, callersMax)
      }
      usage.countBytes(meter, at, bytes)
    },

    quota(caller) {
      const { account, terms } = latest(caller as CachedCaller)
      return account.view(terms, clock.monotonicMs())
    },
  }
}
