import { timingSafeEqual } from 'node:crypto'
import type { TokenRefusal } from '../contract/errors.ts'
import type { Limits } from '../contract/limits.ts'
import type { NodeUser, ProductKey } from '../contract/products.ts'
import type { Clock } from '../core/clock.ts'
import { setBoundedCopy } from './bounded-map.ts'
import type { PresentedLogin, PresentedToken } from './credentials.ts'
import type { CallMetrics } from './metrics.ts'
import type { PlanTable } from './plan.ts'
import type { QuotaAccount, QuotaLedger } from './quota/charge.ts'
import type { AccessSnapshot } from './snapshot/snapshot.ts'
import type { Subscription } from './store/model.ts'
import { createTermsTable, type Terms } from './terms.ts'
import { hashToken, isTokenText, TOKEN_LENGTH } from './token.ts'
import type { UsageCounter, UsageMeter } from './usage/counter.ts'
import {
  endSecondsOf,
  includesProduct,
  NEVER_SECONDS,
  PRODUCT_BIT,
  productBitsOf,
  refusalOf,
  type TokenRecords,
} from './validity.ts'

/** Callers cached by token text; beyond it the oldest is removed. */
export const CALLERS_MAX = 100_000
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

export type Callers = {
  /** The caller of the token, if the token is valid for the product now. */
  authenticate(presented: PresentedToken, product: ProductKey, nowMs: number): Caller | Refused
  /** As `authenticate` for the indexer: token and database login are both always checked, and must belong to one subscription. */
  authenticateIndexer(presented: PresentedToken, login: PresentedLogin, nowMs: number): Caller | Refused
  /** The caller as the store knows it now, by the digest of its token: for tickets, and to end streams of callers that are no longer authorized. */
  renew(tokenSha256: string, product: ProductKey, nowMs: number): Caller | Refused
}

/** Every caller is one: what admission needs to charge it is cached with it. */
export type CachedCaller = Caller & {
  readonly terms: Terms
  readonly meter: UsageMeter
  readonly account: QuotaAccount
  readonly epoch: number
  /** In seconds, because V8 stores small integers without a heap number. */
  readonly endsAtSeconds: number
  /** As `productBitsOf`. */
  readonly productBits: number
}

type CallerCache = Omit<Callers, 'renew'> & {
  renew(tokenSha256: string, product: ProductKey, nowMs: number): CachedCaller | Refused
  /** Whether the caller has not ended, and neither the store nor the plans have changed since it was cached. */
  isCurrent(caller: CachedCaller): boolean
  /** The same caller with its current limits, whatever the state of its token. */
  latest(caller: CachedCaller): CachedCaller
}

type RefusedToken = { readonly reason: TokenRefusal; readonly product: ProductKey }

export type CallersDeps = {
  snapshot(): AccessSnapshot
  plans(): PlanTable
  readonly ledger: QuotaLedger
  readonly usage: Pick<UsageCounter, 'createMeter'>
  readonly clock: Clock
  readonly metrics: Pick<CallMetrics, 'refused'>
  /** Called for each refusal of a known caller. */
  readonly onRefused?: (subscriptionId: string, why: RefusedToken) => void
  /** Called for a caller whose plan is not configured. */
  readonly onMissingPlan?: ((subscription: Subscription) => void) | undefined
  /** SHA-256 in hex. An argument so that tests can count the work. */
  readonly hash?: (text: string) => string
  readonly callersMax?: number
}

/**
 * Finds the caller of a token and checks that the token is valid. A token seen before in this snapshot is found by its text.
 * Every other one costs the same work whatever is wrong with it: one checksum, one hash, one look-up, one comparison.
 */
export function createCallers(deps: CallersDeps): CallerCache {
  const { ledger, usage, clock, metrics, hash = hashToken, callersMax = CALLERS_MAX } = deps
  const terms = createTermsTable()
  const byText = new Map<string, CachedCaller>()
  const byDigest = new Map<string, CachedCaller>()
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

  /** As `authenticate`, without counting a refusal. */
  function find(presented: PresentedToken, product: ProductKey, nowMs: number): Caller | Refused {
    const current = snapshot()
    if ('token' in presented) {
      const known = byText.get(presented.token)
      if (
        known !== undefined &&
        nowMs / 1000 <= known.endsAtSeconds &&
        (known.productBits & PRODUCT_BIT[product]) !== 0
      )
        return known
    }
    return findByToken(current, presented, product, nowMs)
  }

  function findByToken(
    current: AccessSnapshot,
    presented: PresentedToken,
    product: ProductKey,
    nowMs: number,
  ): CachedCaller | Refused {
    const text = 'token' in presented && presented.token.length === TOKEN_LENGTH ? presented.token : DUMMY_TOKEN
    const isWellFormed = isTokenText(text)
    const digest = hash(text)
    const found = current.byDigest(digest)
    const isSame = isSameDigest(digest, found?.token.sha256 ?? NO_DIGEST)
    if ('refused' in presented) return REFUSED[presented.refused]
    if (!isWellFormed) return REFUSED.malformed
    if (found === undefined || !isSame) return REFUSED.unknown
    const caller = authorize(found, product, nowMs)
    if (caller.ok) setBoundedCopy(byText, text, caller, callersMax)
    return caller
  }

  function authorize(found: TokenRecords, product: ProductKey, nowMs: number): CachedCaller | Refused {
    const reason = refusalOf(found, product, nowMs)
    if (reason === undefined) return callerOf(found)
    deps.onRefused?.(found.subscription.id, { reason, product })
    return REFUSED[reason]
  }

  function callerOf({ token, subscription, customer }: TokenRecords): CachedCaller {
    const known = byDigest.get(token.sha256)
    if (known !== undefined) return known
    if (!plans.has(subscription.plan)) deps.onMissingPlan?.(subscription)
    const limits = plans.limitsOf(subscription.plan, subscription.overrides)
    const own = terms.of(limits)
    const mayUseShared = subscription.products.includes('bundle')
    const caller: CachedCaller = {
      ok: true,
      subscription,
      customerId: customer.id,
      tokenId: token.id,
      tokenSha256: token.sha256,
      limits,
      nodeUser: { subscriptionId: subscription.id, mayUseShared },
      awaitsNode:
        !mayUseShared && includesProduct(subscription, 'bundle') && seen.nodesOf(subscription.id).length === 0,
      terms: own,
      meter: usage.createMeter(subscription.id, token.id),
      epoch,
      productBits: productBitsOf(subscription),
      account: ledger.open(subscription.id, own, clock.monotonicMs()),
      endsAtSeconds: endSecondsOf(token, subscription),
    }
    setBoundedCopy(byDigest, token.sha256, caller, callersMax)
    return caller
  }

  function isOfThisEpoch(caller: CachedCaller): boolean {
    snapshot()
    return caller.epoch === epoch
  }

  /** Most callers have no end, and then the clock is not read. */
  function hasEnded({ endsAtSeconds }: CachedCaller): boolean {
    return endsAtSeconds < NEVER_SECONDS && clock.nowMs() / 1000 > endsAtSeconds
  }

  function count<Outcome extends Caller | Refused>(outcome: Outcome): Outcome {
    if (!outcome.ok) metrics.refused[outcome.reason].inc()
    return outcome
  }

  return {
    authenticate: (presented, product, nowMs) => count(find(presented, product, nowMs)),

    authenticateIndexer(presented, login, nowMs) {
      const caller = find(presented, 'indexer', nowMs)
      const isGiven = 'username' in login
      const digest = hash(isGiven ? login.password : DUMMY_TOKEN)
      const credential = snapshot().indexerCredential(isGiven ? login.username : '')
      const isSame = isSameDigest(digest, credential?.sha256 ?? NO_DIGEST)
      // First, because the response explains what is wrong with a login: it must not show whether the token is valid.
      if (!isGiven) return count(REFUSED[login.refused])
      if (!caller.ok) return count(caller)
      if (credential === undefined || !isSame) return count(REFUSED.unknown)
      if (credential.state !== 'active') return count(REFUSED.revoked)
      return credential.subscriptionId === caller.subscription.id ? caller : count(REFUSED.unknown)
    },

    renew(tokenSha256, product, nowMs) {
      const found = snapshot().byDigest(tokenSha256)
      return count(found === undefined ? REFUSED.unknown : authorize(found, product, nowMs))
    },

    isCurrent: (caller) => isOfThisEpoch(caller) && !hasEnded(caller),

    latest(caller) {
      if (isOfThisEpoch(caller)) return caller
      const found = snapshot().byDigest(caller.tokenSha256)
      return found === undefined ? caller : callerOf(found)
    },
  }
}

const NO_DIGEST = '0'.repeat(64)

function isSameDigest(a: string, b: string): boolean {
  return timingSafeEqual(Buffer.from(a, 'latin1'), Buffer.from(b, 'latin1'))
}

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
