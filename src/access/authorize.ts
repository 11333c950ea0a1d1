import { timingSafeEqual } from 'node:crypto'
import type { TokenRefusal } from '../contract/errors.ts'
import type { LimitName, Limits } from '../contract/limits.ts'
import type { NodeUser, ProductKey } from '../contract/products.ts'
import type { Clock } from '../core/clock.ts'
import type { PresentedLogin, PresentedToken } from './credentials.ts'
import type { CallMetrics } from './metrics.ts'
import type { PlanTable } from './plan.ts'
import type { Charge, QuotaAccount, QuotaLedger, QuotaView } from './quota/charge.ts'
import type { AccessSnapshot } from './snapshot/snapshot.ts'
import type { Subscription, UsageInterface } from './store/model.ts'
import { createTermsTable, type Terms } from './terms.ts'
import { hashToken, isTokenText, TOKEN_LENGTH } from './token.ts'
import type { UsageCounter, UsageMeter } from './usage/counter.ts'
import {
  endSecondsOf,
  NEVER_SECONDS,
  opens,
  PRODUCT_BIT,
  productBits,
  refusalOf,
  type TokenRecords,
} from './validity.ts'

/** Callers cached by token text; beyond it the oldest is removed. */
const CALLERS_MAX = 100_000
/** Hashed when no text of a token's length is presented. Its checksum is wrong, so it can never have been issued. */
const DUMMY_TOKEN = `slc_${'0'.repeat(TOKEN_LENGTH - 4)}`

/** An authenticated caller. A connection may hold it for its lifetime: `admit` and `renew` look it up again after the store has changed. */
export type Caller = {
  readonly ok: true
  readonly subscription: Subscription
  readonly customerId: string
  readonly tokenId: string
  readonly tokenSha256: string
  readonly limits: Limits
  /** Whose nodes serve its calls. */
  readonly nodeUser: NodeUser
  /** Its only node product is dedicated-node, and no node is assigned: no call of it can be served. */
  readonly awaitsNode: boolean
}

export type Refused = {
  readonly ok: false
  readonly reason: TokenRefusal
  /** Set where a ticket was refused, and not the token it stands for. */
  readonly isTicket?: true
}

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

export type Admissions = {
  /** The caller of the token, if the token is valid for the product now. */
  authenticate(presented: PresentedToken, product: ProductKey, nowMs: number): Caller | Refused
  /** As `authenticate` for the indexer: token and database login are both always checked, and must belong to one subscription. */
  authenticateIndexer(presented: PresentedToken, login: PresentedLogin, nowMs: number): Caller | Refused
  /** The caller as the store knows it now, by the digest of its token: for tickets, and to end streams of callers that are no longer authorized. */
  renew(tokenSha256: string, product: ProductKey, nowMs: number): Caller | Refused
  /** The refusal of a caller without a node, on the interfaces that need one; undefined for every other caller. */
  refuseWithoutNode(caller: Caller): NotAssigned | undefined
  /** Charges one call. Each item of a batch, each WebSocket request, each gRPC call or re-subscribe is one. */
  admit(caller: Caller, call: Call): Admission
  /** Reverts the charge of an admitted call that was not forwarded. */
  refund(caller: Caller, call: Call): void
  /** Counts payload bytes that were handed to the caller's connection. Cheap enough for every message. */
  countBytes(caller: Caller, at: UsageInterface, bytes: number): void
  /** The same for a subscription that is sent to without a caller. */
  countBytesOf(subscriptionId: string, at: UsageInterface, bytes: number): void
  /** The remaining quota of the caller. */
  quota(caller: Caller): QuotaView
}

export type AdmissionDeps = {
  snapshot(): AccessSnapshot
  plans(): PlanTable
  readonly ledger: QuotaLedger
  readonly usage: UsageCounter
  readonly clock: Clock
  readonly metrics: CallMetrics
  /** Called for each refusal of a known caller. */
  readonly onRefused?: (subscriptionId: string, why: RefusedCall) => void
  /** SHA-256 in hex. An argument so that tests can count the work. */
  readonly hash?: (text: string) => string
  readonly callersMax?: number
}

/** Refused by a limit on an interface, or because of the token for a product. */
export type RefusedCall =
  | { readonly limit: LimitName; readonly interface: UsageInterface }
  | { readonly reason: TokenRefusal | 'not-assigned'; readonly product: ProductKey }

type Entry = Caller & {
  readonly terms: Terms
  readonly meter: UsageMeter
  readonly epoch: number
  /** In seconds, because V8 stores small integers without a heap number. */
  readonly endsAtSeconds: number
  /** As `productBits`. */
  readonly opens: number
  readonly account: QuotaAccount
}

const PRODUCT_OF: Record<UsageInterface, ProductKey> = {
  rpc: 'bundle',
  ws: 'bundle',
  grpc: 'bundle',
  indexer: 'indexer',
  shreds: 'shreds-raw',
}

/**
 * Authenticates and charges synchronously: token, subscription, limits, charge. A token seen before in this snapshot is found by its text.
 * Every other one costs the same work whatever is wrong with it: one checksum, one hash, one look-up, one comparison.
 */
export function createAdmission(deps: AdmissionDeps): Admissions {
  const { ledger, usage, clock, metrics, hash = hashToken, callersMax = CALLERS_MAX } = deps
  const terms = createTermsTable()
  const byText = new Map<string, Entry>()
  const byDigest = new Map<string, Entry>()
  /** Meters of subscriptions that are sent to without a caller. */
  const meters = new Map<string, UsageMeter>()
  let seen = deps.snapshot()
  let plans = deps.plans()
  /** Identifies the snapshot of a caller. A number, so that an old connection does not keep an old snapshot in memory. */
  let epoch = 0

  function snapshot(): AccessSnapshot {
    const current = deps.snapshot()
    if (current !== seen || deps.plans() !== plans) {
      seen = current
      plans = deps.plans()
      epoch += 1
      byText.clear()
      byDigest.clear()
    }
    return current
  }

  function authenticate(presented: PresentedToken, product: ProductKey, nowMs: number): Caller | Refused {
    const current = snapshot()
    if ('token' in presented) {
      const known = byText.get(presented.token)
      if (known !== undefined && nowMs / 1000 <= known.endsAtSeconds && (known.opens & PRODUCT_BIT[product]) !== 0)
        return known
    }
    return count(search(current, presented, product, nowMs))
  }

  function search(
    current: AccessSnapshot,
    presented: PresentedToken,
    product: ProductKey,
    nowMs: number,
  ): Entry | Refused {
    const text = 'token' in presented && presented.token.length === TOKEN_LENGTH ? presented.token : DUMMY_TOKEN
    const isWellFormed = isTokenText(text)
    const digest = hash(text)
    const found = current.byDigest(digest)
    const isSame = isSameDigest(digest, found?.token.sha256 ?? NO_DIGEST)
    if ('refused' in presented) return REFUSED[presented.refused]
    if (!isWellFormed) return REFUSED.malformed
    if (found === undefined || !isSame) return REFUSED.unknown
    const entry = authorize(found, product, nowMs)
    if (entry.ok) remember(byText, text, entry)
    return entry
  }

  function authorize(found: TokenRecords, product: ProductKey, nowMs: number): Entry | Refused {
    const reason = refusalOf(found, product, nowMs)
    if (reason === undefined) return entryOf(found)
    deps.onRefused?.(found.subscription.id, { reason, product })
    return REFUSED[reason]
  }

  function entryOf({ token, subscription, customer }: TokenRecords): Entry {
    const known = byDigest.get(token.sha256)
    if (known !== undefined) return known
    const limits = plans.limitsOf(subscription.plan, subscription.overrides)
    const own = terms.of(limits)
    const mayUseShared = subscription.products.includes('bundle')
    const entry: Entry = {
      ok: true,
      subscription,
      customerId: customer.id,
      tokenId: token.id,
      tokenSha256: token.sha256,
      limits,
      nodeUser: { subscriptionId: subscription.id, mayUseShared },
      awaitsNode: !mayUseShared && opens(subscription, 'bundle') && seen.nodesOf(subscription.id).length === 0,
      terms: own,
      meter: usage.createMeter(subscription.id, token.id),
      epoch,
      opens: productBits(subscription),
      account: ledger.open(subscription.id, own, clock.monotonicMs()),
      endsAtSeconds: endSecondsOf(token, subscription),
    }
    remember(byDigest, token.sha256, entry)
    return entry
  }

  function remember<Value>(known: Map<string, Value>, key: string, entry: Value): void {
    if (known.size >= callersMax) {
      const [oldest] = known.keys()
      if (oldest !== undefined) known.delete(oldest)
    }
    // A copy: the text may be a slice that keeps the complete head of a request in memory.
    known.set(Buffer.from(key, 'latin1').toString('latin1'), entry)
  }

  function renew(tokenSha256: string, product: ProductKey, nowMs: number): Entry | Refused {
    const current = snapshot()
    const found = current.byDigest(tokenSha256)
    return found === undefined ? REFUSED.unknown : authorize(found, product, nowMs)
  }

  /** Most callers have no end, and then the clock is not read. */
  function hasEnded({ endsAtSeconds }: Entry): boolean {
    return endsAtSeconds < NEVER_SECONDS && clock.nowMs() / 1000 > endsAtSeconds
  }

  function isCurrent(entry: Entry): boolean {
    snapshot()
    return entry.epoch === epoch
  }

  /** The same caller with its current limits, whatever the state of its token. */
  function latest(caller: Caller): Entry {
    const entry = caller as Entry
    if (isCurrent(entry)) return entry
    const found = snapshot().byDigest(entry.tokenSha256)
    return found === undefined ? entry : entryOf(found)
  }

  function refuseWithoutNode({ awaitsNode, subscription }: Caller): NotAssigned | undefined {
    if (!awaitsNode) return undefined
    metrics.notAssigned.inc()
    deps.onRefused?.(subscription.id, { reason: 'not-assigned', product: 'dedicated-node' })
    return NOT_ASSIGNED
  }

  function count<Outcome extends Caller | Refused>(outcome: Outcome): Outcome {
    if (!outcome.ok) metrics.refused[outcome.reason].inc()
    return outcome
  }

  return {
    authenticate,

    authenticateIndexer(presented, login, nowMs) {
      const caller = authenticate(presented, 'indexer', nowMs)
      const isGiven = 'username' in login
      const digest = hash(isGiven ? login.password : DUMMY_TOKEN)
      const credential = snapshot().indexerCredential(isGiven ? login.username : '')
      const isSame = isSameDigest(digest, credential?.sha256 ?? NO_DIGEST)
      if (!caller.ok) return caller
      if (!isGiven) return count(REFUSED[login.refused])
      if (credential === undefined || !isSame) return count(REFUSED.unknown)
      if (credential.state !== 'active') return count(REFUSED.revoked)
      return credential.subscriptionId === caller.subscription.id ? caller : count(REFUSED.unknown)
    },

    renew: (tokenSha256, product, nowMs) => count(renew(tokenSha256, product, nowMs)),

    refuseWithoutNode,

    admit(caller, call) {
      let entry = caller as Entry
      if (!isCurrent(entry) || hasEnded(entry)) {
        const renewed = renew(entry.tokenSha256, call.product ?? PRODUCT_OF[call.interface], clock.nowMs())
        if (!renewed.ok) return count(renewed)
        entry = renewed
      }
      if (entry.awaitsNode && (call.product ?? PRODUCT_OF[call.interface]) === 'bundle')
        return refuseWithoutNode(entry) as NotAssigned
      const monotonicMs = clock.monotonicMs()
      const charged = entry.terms.callOf(call.method)
      const outcome = entry.account.charge(entry.terms, charged, monotonicMs)
      if (outcome.ok) {
        usage.countAdmitted(entry.meter, call.interface, outcome.cost, charged.method)
        metrics.admitted[call.interface].inc()
        metrics.units[call.interface].inc(outcome.cost)
      } else {
        usage.countRefused(entry.meter, call.interface, charged.method)
        metrics.limited[outcome.limitName].inc()
        deps.onRefused?.(entry.subscription.id, { limit: outcome.limitName, interface: call.interface })
      }
      return outcome
    },

    refund(caller, call) {
      // Uses the terms under which the call was charged, so that the refund equals the charge.
      const entry = caller as Entry
      const monotonicMs = clock.monotonicMs()
      const taken = entry.terms.callOf(call.method)
      // Charged before it is counted, and counted back before it is refunded: a thread that dies in between has never counted more than it charged.
      usage.countRefunded(entry.meter, call.interface, taken.cost, taken.method)
      entry.account.refund(entry.terms, taken, monotonicMs)
    },

    countBytes: (caller, at, bytes) => usage.countBytes((caller as Entry).meter, at, bytes),

    countBytesOf(subscriptionId, at, bytes) {
      let meter = meters.get(subscriptionId)
      if (meter === undefined) {
        meter = usage.createMeter(subscriptionId, NO_TOKEN)
        remember(meters, subscriptionId, meter)
      }
      usage.countBytes(meter, at, bytes)
    },

    quota(caller) {
      const entry = latest(caller)
      const monotonicMs = clock.monotonicMs()
      return entry.account.view(entry.terms, monotonicMs)
    },
  }
}

/** Bytes are no use of a token, so none needs to be named. */
const NO_TOKEN = ''
const NO_DIGEST = '0'.repeat(64)

function isSameDigest(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1'))
}

const NOT_ASSIGNED: NotAssigned = Object.freeze({ ok: false, reason: 'not-assigned' })

const refused = (reason: TokenRefusal): Refused => Object.freeze({ ok: false, reason })

/** One shared object per reason, so that a refusal allocates nothing. */
const REFUSED: Readonly<Record<TokenRefusal, Refused>> = {
  missing: refused('missing'),
  malformed: refused('malformed'),
  unknown: refused('unknown'),
  revoked: refused('revoked'),
  expired: refused('expired'),
  suspended: refused('suspended'),
  cancelled: refused('cancelled'),
  conflicting: refused('conflicting'),
  'not-in-plan': refused('not-in-plan'),
}
