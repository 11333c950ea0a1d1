import type { Clock } from '../../core/clock.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { nonceAccountIndex } from '../../solana/transaction/durable-nonce.ts'
import type { TipRule } from '../../solana/transaction/tip.ts'
import { type ParsedTransaction, SIGNATURES_MAX } from '../../solana/transaction/types.ts'
import { type Dispatch, sendBody } from '../dispatch/dispatch.ts'
import type { SenderLimits } from '../options.ts'
import { createCounts } from '../receipts/counts.ts'
import type { Journal } from '../receipts/journal.ts'
import { DEDUP_MS } from '../receipts/known-signatures.ts'
import {
  hasSameWire,
  isSettled,
  type KnownTransaction,
  type Receipt,
  recordWireHash,
  signatureKey,
  wireHashOf,
} from '../receipts/receipt.ts'
import type { Receipts } from '../receipts/receipts.ts'
import { type Awaitable, mapAwaitable } from './awaitable.ts'
import { createBase58Cache } from './base58-cache.ts'
import type { Decoded } from './decode.ts'
import type { Landing, Texts } from './landing.ts'
import {
  type Refusal,
  refuseLimit,
  refuseNoPath,
  refuseNotRecorded,
  refusePlain,
  refuseUndecodable,
  type TipTerms,
} from './refusal.ts'
import type { SignatureVerifier, Verdict } from './signature-verifier.ts'
import { findTip, type Tip } from './tip-terms.ts'

export type Acceptance =
  | { readonly ok: true; readonly signature: string; readonly isNew: boolean }
  | { readonly ok: false; readonly refusal: Refusal }

export type AcceptDeps = {
  readonly rule: TipRule
  readonly terms: TipTerms
  readonly receipts: Receipts
  readonly dispatch: Dispatch
  readonly landing: Landing
  readonly verifier: Pick<SignatureVerifier, 'verify' | 'delayMs'>
  readonly journal: Pick<Journal, 'isOpen' | 'isDoubtful' | 'recordAccepted'>
  onDispatched(tookMs: number, receipt: Receipt): void
  /** A transaction is refused because no path is open. */
  onNoPath(): void
  readonly clock: Clock
}

/**
 * Accepts and sends one transaction of one address, recognizes a duplicate, or refuses it. Synchronous when nothing has to be waited for.
 *
 * `decode` is called after the address was found to be within its limit, and not at all beyond it: decoding costs more than refusing.
 */
export type Accept = (decode: () => Decoded, address: string) => Acceptance | Promise<Acceptance>

const RETRY_MS = 1000

export function createAccept(limits: SenderLimits, deps: AcceptDeps): Accept {
  const { receipts, dispatch, clock } = deps
  const nowMs = () => clock.monotonicMs()
  const addresses = createKeyedBuckets({ perSecond: limits.perAddressPerSecond, burst: limits.perAddressBurst }, nowMs)
  const signatures = createKeyedBuckets(signatureBudget(limits), nowMs)
  const textOf = createBase58Cache()
  const payers = createKeyedBuckets({ perSecond: limits.perPayerPerSecond, burst: limits.perPayerBurst }, nowMs)
  /** Transactions being checked, by `signatureKey`, so that concurrent duplicates share one check. */
  const checking = new Map<string, { readonly wire: Uint8Array; readonly outcome: Promise<Acceptance> }>()
  const checkingByAddress = createCounts()

  return (decode, address) => {
    const startedMs = nowMs()
    const taken = addresses.take(address)
    if (!taken.ok) return refuse(refuseLimit('perAddressPerSecond', limits.perAddressPerSecond, taken.retryAfterMs))
    const decoded = decode()
    if (!decoded.ok) return refuse(refuseUndecodable(decoded))
    const { wire, transaction, base64 } = decoded
    const tip = findTip(transaction, deps)
    if (!tip.ok) return tip

    const key = signatureKey(transaction.signatures[0] as Uint8Array)
    // First those whose journal line is not written yet: a duplicate gets the same outcome.
    const same = checking.get(key)
    if (same !== undefined && Buffer.compare(same.wire, wire) === 0) {
      return same.outcome.then((outcome) => (outcome.ok ? { ...outcome, isNew: false } : outcome))
    }
    const known = receipts.findKnown(key)
    if (known !== undefined && !mayRepeat(known) && hasSameWire(known, wire))
      return { ok: true, signature: known.signature, isNew: false }

    const overload = checkCapacity(address)
    if (overload !== undefined) return refuse(overload)
    const budget = signatures.take(address, transaction.signatures.length)
    if (!budget.ok) {
      const { perSecond } = signatureBudget(limits)
      return refuse(refuseLimit('signaturesPerAddressPerSecond', perSecond, budget.retryAfterMs))
    }
    const job = { address, key, wire, transaction, base64, tip, startedMs }
    const outcome = checkAndSend(job)
    if (!(outcome instanceof Promise)) return outcome
    // Different bytes with the same signature are checked separately; at most one of them is valid.
    return countUntil(outcome, job, same === undefined ? key : `${key} ${wireHashOf(wire)}`)
  }

  /** Counts the transaction as being checked until its outcome is there, which waits for the journal too. */
  function countUntil(outcome: Promise<Acceptance>, { address, wire }: CheckJob, key: string): Promise<Acceptance> {
    const counted = outcome.finally(() => {
      checking.delete(key)
      checkingByAddress.add(address, -1)
    })
    checking.set(key, { wire, outcome: counted })
    checkingByAddress.add(address, 1)
    return counted
  }

  /** Refuses before the signature check, which is expensive: the wait for a check is bounded, so that accepted transactions are sent at once. */
  function checkCapacity(address: string): Refusal | undefined {
    const { checkingMax, checkDelayMsMax, pendingMax, pendingPerAddressMax } = limits
    if (!dispatch.isOpen) {
      deps.onNoPath()
      return refuseNoPath(dispatch.paths)
    }
    if (!deps.journal.isOpen) return refuseNotRecorded(false)
    if (checking.size >= checkingMax) return refuseLimit('checkingMax', checkingMax, RETRY_MS)
    if (deps.verifier.delayMs > checkDelayMsMax) return refuseLimit('checkDelayMsMax', checkDelayMsMax, RETRY_MS)
    if (receipts.isFull) return refuseLimit('knownSignaturesMax', limits.knownSignaturesMax, RETRY_MS)
    if (receipts.pending + checking.size >= pendingMax) return refuseLimit('pendingMax', pendingMax, RETRY_MS)
    if (receipts.pendingOfAddress(address) + checkingByAddress.of(address) >= pendingPerAddressMax)
      return refuseLimit('pendingPerAddressMax', pendingPerAddressMax, RETRY_MS)
    return undefined
  }

  /** Synchronous up to the dispatch, unless the verifier or the chain has to be waited for. */
  function checkAndSend(job: CheckJob): Awaitable<Acceptance> {
    return mapAwaitable(verify(job), (verdict) => sendChecked(job, verdict))
  }

  function verify({ wire, transaction }: CheckJob): Awaitable<Verdict | 'full'> {
    let done: (verdict: Verdict) => void
    const verdict = deps.verifier.verify(wire, transaction, (later) => done(later))
    if (verdict !== 'pending') return verdict
    return new Promise((resolve) => {
      done = resolve
    })
  }

  function sendChecked(job: CheckJob, verdict: Verdict | 'full'): Awaitable<Acceptance> {
    if (verdict !== 'good') return refuse(refuseVerdict(verdict))
    const { transaction, tip } = job
    const texts = {
      feePayer: textOf(transaction.staticKeys[0] as Uint8Array),
      blockhash: textOf(transaction.recentBlockhash),
      lookupTables: transaction.addressTableLookups.map(({ accountKey }) => textOf(accountKey)),
    }
    return mapAwaitable(deps.landing.check(transaction, tip, texts), (refusal) =>
      refusal === undefined ? sendLandable(job, texts) : refuse(refusal),
    )
  }

  function sendLandable(job: CheckJob, texts: Texts): Awaitable<Acceptance> {
    const known = receipts.findKnown(job.key)
    if (known !== undefined && !mayRepeat(known)) return { ok: true, signature: known.signature, isNew: false }
    const overLimit = chargePayer(texts.feePayer)
    if (overLimit !== undefined) return refuse(overLimit)
    return recordAndDispatch(createReceipt(job, texts), job.startedMs)
  }

  function refuseVerdict(verdict: Exclude<Verdict | 'full', 'good'>): Refusal {
    if (verdict === 'full') return refuseLimit('checkingMax', limits.checkingMax, RETRY_MS)
    if (verdict === 'late') return refuseLimit('checkDelayMsMax', limits.checkDelayMsMax, RETRY_MS)
    return refusePlain('signature-invalid')
  }

  /** After the signature check, so that a client cannot use up the budget of another payer. */
  function chargePayer(feePayer: string): Refusal | undefined {
    const { pendingPerPayerMax, perPayerPerSecond } = limits
    if (receipts.pendingOfPayer(feePayer) >= pendingPerPayerMax)
      return refuseLimit('pendingPerPayerMax', pendingPerPayerMax, RETRY_MS)
    const taken = payers.take(feePayer)
    return taken.ok ? undefined : refuseLimit('perPayerPerSecond', perPayerPerSecond, taken.retryAfterMs)
  }

  function createReceipt(job: CheckJob, { feePayer, blockhash }: Texts): Receipt {
    const { key, wire, transaction, tip } = job
    let signature: string | undefined
    return {
      key,
      // Made when the journal needs it, after the dispatch.
      get signature() {
        signature ??= encodeBase58(Buffer.from(key, 'latin1'))
        return signature
      },
      state: 'accepted',
      acceptedUnixMs: clock.nowMs(),
      acceptedMonotonicMs: nowMs(),
      settledMonotonicMs: undefined,
      address: job.address,
      feePayer,
      tip: { account: textOf(tip.account), lamports: tip.lamports },
      blockhash: nonceAccountIndex(transaction) === undefined ? blockhash : undefined,
      wireHash: undefined,
      // A copy: `wire` is a view of a shared 64 KiB buffer and would keep all of it in memory.
      job: { wire: new Uint8Array(wire), body: sendBody(job.base64 ?? base64Of(wire)) },
      attempts: [],
      attemptsLeftOut: 0,
      landed: undefined,
      expiredHeight: undefined,
    }
  }

  /** A slow disk delays the response, not the transaction; but after a failed write the journal must succeed before anything is sent. */
  async function recordAndDispatch(receipt: Receipt, startedMs: number): Promise<Acceptance> {
    const recordedBefore = deps.journal.isDoubtful ? deps.journal.recordAccepted(receipt) : undefined
    if (recordedBefore !== undefined && !(await recordedBefore)) return refuse(refuseNotRecorded(false))
    receipts.add(receipt)
    dispatch.start(receipt)
    const tookMs = nowMs() - startedMs
    // The packets to the leaders leave in a microtask that is queued by now; the journal and the counts come after it.
    await Promise.resolve()
    const recorded = recordedBefore ?? deps.journal.recordAccepted(receipt)
    recordWireHash(receipt)
    deps.onDispatched(tookMs, receipt)
    return (await recorded) ? { ok: true, signature: receipt.signature, isNew: true } : refuse(refuseNotRecorded(true))
  }

  /** A transaction that did not land may be sent again after DEDUP_MS. */
  function mayRepeat(receipt: KnownTransaction): boolean {
    if (receipt.state === 'unknown') return true
    if (!isSettled(receipt) || receipt.state === 'landed') return false
    return nowMs() - receipt.acceptedMonotonicMs >= DEDUP_MS
  }
}

/** Limits signatures, not only transactions: each costs about 0.2 ms to check, and a transaction has up to twelve. */
function signatureBudget(limits: SenderLimits): { readonly perSecond: number; readonly burst: number } {
  const { perAddressPerSecond, perAddressBurst } = limits
  const perSecond = limits.signaturesPerAddressPerSecond ?? Math.max(SIGNATURES_MAX, 2 * perAddressPerSecond)
  return { perSecond, burst: Math.max(perSecond, perAddressBurst) }
}

type CheckJob = {
  readonly address: string
  readonly key: string
  readonly wire: Uint8Array
  readonly transaction: ParsedTransaction
  readonly base64: string | undefined
  readonly tip: Tip
  readonly startedMs: number
}

function base64Of(wire: Uint8Array): string {
  return Buffer.from(wire.buffer, wire.byteOffset, wire.length).toString('base64')
}

function refuse(refusal: Refusal): Acceptance {
  return { ok: false, refusal }
}
