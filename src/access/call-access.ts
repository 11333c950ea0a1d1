import { ERRORS } from '../contract/errors.ts'
import type { ProductKey } from '../contract/products.ts'
import type { Clock } from '../core/clock.ts'
import type { Logger } from '../platform/telemetry/logger.ts'
import { type CallAdmission, createCallAdmission, type RefusedCall } from './admission.ts'
import type { Caller, Refused } from './callers.ts'
import type { PresentedToken } from './credentials.ts'
import { createCustomerLog } from './customer-log.ts'
import type { CallMetrics } from './metrics.ts'
import type { PlanTable } from './plan.ts'
import type { QuotaLedger } from './quota/charge.ts'
import type { QuotaMemory } from './quota/memory.ts'
import { createPermits, type Permits } from './quota/permits.ts'
import type { AccessSnapshot } from './snapshot/snapshot.ts'
import type { Subscription } from './store/model.ts'
import type { UsageCounter } from './usage/counter.ts'
import { createWsTickets, type Ticket } from './ws-ticket.ts'

/** Authenticates callers, admits and charges calls. Used by every interface, in every thread. */
export type Access = CallAdmission & {
  snapshot(): AccessSnapshot
  readonly permits: Permits
  plans(): PlanTable
  /** Calls the listener after the store or the plans have changed, so that it can `renew` the callers of open streams. */
  onChange(listener: () => void): Disposable
  /** A ticket that authenticates WebSocket connections of clients that cannot set headers. */
  issueTicket(caller: Caller, nowMs: number): Ticket
  authenticateTicket(ticket: string, product: ProductKey, nowMs: number): Caller | Refused
}

export type CallAccessDeps = {
  readonly log: Logger
  readonly clock: Clock
  readonly metrics: CallMetrics
  readonly memory: QuotaMemory
  readonly ledger: QuotaLedger
  readonly usage: UsageCounter
  readonly ticketKey: Uint8Array
  /** Has the permits of other processes looked up, where the quota is shared. */
  requestPermits(): void
  snapshot(): AccessSnapshot
  plans(): PlanTable
  /** Called for a caller whose plan is not configured. */
  onMissingPlan(subscription: Subscription): void
}

export type CallAccess = Access &
  Disposable & {
    /** Calls the listeners of `onChange`. */
    notifyChange(): void
  }

/** Access as one thread has it, over what all threads share. */
export function createCallAccess(deps: CallAccessDeps): CallAccess {
  const { log, clock, metrics, memory, ledger, usage, snapshot, plans } = deps
  const listeners = new Set<() => void>()
  const permits = createPermits(memory, deps.requestPermits)
  const tickets = createWsTickets(deps.ticketKey)
  const customerLog = createCustomerLog({ log, clock })
  const admission = createCallAdmission({
    snapshot,
    plans,
    ledger,
    usage,
    clock,
    metrics,
    onMissingPlan: deps.onMissingPlan,
    onRefused: (subscription, why) => customerLog.log({ subscription, message: 'refused', kind: refusalFields(why) }),
  })
  return {
    ...admission,
    snapshot,
    plans,
    permits: {
      ...permits,
      acquire(subscriptionId, name, limits) {
        const permit = permits.acquire(subscriptionId, name, limits)
        if (!permit.ok) {
          metrics.limited[name].inc()
          const kind = { limit: name, size: permit.limitSize, code: ERRORS['rate-limited'].jsonRpc }
          customerLog.log({ subscription: subscriptionId, message: 'refused', kind })
        }
        return permit
      },
    },
    onChange(listener) {
      listeners.add(listener)
      return { [Symbol.dispose]: () => void listeners.delete(listener) }
    },
    notifyChange() {
      for (const listener of listeners) listener()
    },
    issueTicket: (caller, nowMs) => tickets.issue(caller.tokenSha256, nowMs),
    authenticateTicket(ticket, product, nowMs) {
      const checked = tickets.check(ticket, nowMs)
      if (checked.ok) return admission.renew(checked.tokenSha256, product, nowMs)
      metrics.refused[checked.reason].inc()
      return { ...checked, isTicket: true }
    },
    [Symbol.dispose]: () => customerLog[Symbol.dispose](),
  }
}

/** Authenticates a WebSocket handshake with tickets in its query. A ticket beside a token has to be that token's own. */
export function authenticateHandshake(
  access: Pick<Access, 'authenticate' | 'authenticateTicket'>,
  { presented, tickets }: { readonly presented: PresentedToken; readonly tickets: readonly string[] },
  product: ProductKey,
  nowMs: number,
): Caller | Refused {
  const [ticket, ...more] = tickets
  if (ticket === undefined) return access.authenticate(presented, product, nowMs)
  if (more.length > 0) return access.authenticate({ refused: 'conflicting' }, product, nowMs)
  const byTicket = access.authenticateTicket(ticket, product, nowMs)
  if ('refused' in presented && presented.refused === 'missing') return byTicket
  const byToken = access.authenticate(presented, product, nowMs)
  if (byTicket.ok && byToken.ok && byTicket.tokenSha256 === byToken.tokenSha256) return byToken
  return access.authenticate({ refused: 'conflicting' }, product, nowMs)
}

/** The log fields of a refusal. */
function refusalFields(why: RefusedCall): Record<string, string | number> {
  if ('limit' in why) return { interface: why.interface, limit: why.limit, code: ERRORS['rate-limited'].jsonRpc }
  const code = why.reason === 'not-assigned' ? ERRORS['not-assigned'].jsonRpc : ERRORS.unauthorized.jsonRpc
  return { product: why.product, reason: why.reason, code }
}
