import { hash } from 'node:crypto'
import type { Clock } from '../core/clock.ts'
import { encodeBase58 } from '../solana/base58.ts'
import { checkTip, type TipRule, usesDurableNonce } from '../solana/tip.ts'
import type { ParsedTransaction } from '../solana/transaction-types.ts'
import type { Decoded } from './decode.ts'
import { type Dispatch, sendBody } from './dispatch.ts'
import type { Freshness } from './freshness.ts'
import { createKeyedBuckets } from './keyed-buckets.ts'
import type { SenderLimits } from './options.ts'
import { isSettled, type Receipt } from './receipt.ts'
import type { Receipts } from './receipts.ts'
import {
  type Refusal,
  refuseBlockhash,
  refuseLimit,
  refusePlain,
  refuseTip,
  refuseUndecodable,
  type TipTerms,
} from './refusal.ts'

export type Acceptance =
  | { readonly ok: true; readonly signature: string; readonly isNew: boolean }
  | { readonly ok: false; readonly refusal: Refusal }

export type AcceptDeps = {
  readonly rule: TipRule
  readonly terms: TipTerms
  readonly receipts: Receipts
  readonly dispatch: Dispatch
  readonly freshness: Freshness
  verify(transaction: ParsedTransaction): Promise<boolean>
  /** Resolves when the transaction will not be forgotten by a crash. */
  record(receipt: Receipt): Promise<void>
  onAccepted(receipt: Receipt, tookMs: number): void
  readonly clock: Clock
}

/** One transaction from one address: taken and sent, known already, or refused with nothing sent. */
export type Accept = (decode: () => Decoded, address: string) => Promise<Acceptance>

/** The same signature within this time is the same transaction; afterwards an unlucky one may be tried again. */
const DEDUP_MS = 120_000
const RETRY_MS = 1000

export function createAccept(limits: SenderLimits, deps: AcceptDeps): Accept {
  const { rule, terms, receipts, dispatch, clock } = deps
  const nowMs = () => clock.monotonicMs()
  const addresses = createKeyedBuckets({ perSecond: limits.perAddressPerSecond, burst: limits.perAddressBurst }, nowMs)
  const payers = createKeyedBuckets({ perSecond: limits.perPayerPerSecond, burst: limits.perPayerBurst }, nowMs)
  /** Under check, by signature, so that two who send the same at once share one check. */
  const checking = new Map<string, { readonly wireHash: string; readonly outcome: Promise<Acceptance> }>()

  return async (decode, address) => {
    const startedMs = nowMs()
    const place = addresses.take(address)
    if (!place.ok) return refuse(refuseLimit('perAddressPerSecond', limits.perAddressPerSecond, place.retryAfterMs))
    const decoded = decode()
    if (!decoded.ok) return refuse(refuseUndecodable(decoded))
    const { wire, transaction } = decoded
    const tip = checkTip(transaction, rule)
    if (!tip.ok) return refuse(refuseTip(tip.fault, tip.foundLamports, terms))

    const signature = encodeBase58(transaction.signatures[0] as Uint8Array)
    const wireHash = hash('sha256', wire, 'base64')
    const known = receipts.get(signature)
    if (known !== undefined && known.wireHash === wireHash && !mayRepeat(known))
      return { ok: true, signature, isNew: false }
    const same = checking.get(signature)
    if (same !== undefined && same.wireHash === wireHash) {
      const outcome = await same.outcome
      return outcome.ok ? { ...outcome, isNew: false } : outcome
    }

    if (!dispatch.isOpen) return refuse(refusePlain('no-path'))
    if (checking.size >= limits.checkingMax) return refuse(refuseLimit('checkingMax', limits.checkingMax, RETRY_MS))
    if (receipts.pending + checking.size >= limits.pendingMax) {
      return refuse(refuseLimit('pendingMax', limits.pendingMax, RETRY_MS))
    }
    const job = { signature, wire, wireHash, transaction, tip, startedMs }
    // Somebody else's bytes under the same signature are checked beside it; they cannot both be good.
    const key = same === undefined ? signature : `${signature} ${wireHash}`
    const outcome = checkAndSend(job).finally(() => checking.delete(key))
    checking.set(key, { wireHash, outcome })
    return outcome
  }

  async function checkAndSend(job: CheckJob): Promise<Acceptance> {
    const { signature, wire, wireHash, transaction, tip, startedMs } = job
    if (!(await deps.verify(transaction))) return refuse(refusePlain('signature-invalid'))
    const isNonce = usesDurableNonce(transaction)
    if (!isNonce && (await deps.freshness.check(transaction.recentBlockhash)) === 'expired') {
      return refuse(refuseBlockhash(tip.lamports, terms))
    }
    const known = receipts.get(signature)
    if (known !== undefined && !mayRepeat(known)) return { ok: true, signature, isNew: false }
    // Only now is it certain that the payer signed: nobody can use up the budget of another.
    const feePayer = encodeBase58(transaction.staticKeys[0] as Uint8Array)
    const place = payers.take(feePayer)
    if (!place.ok) return refuse(refuseLimit('perPayerPerSecond', limits.perPayerPerSecond, place.retryAfterMs))
    const receipt: Receipt = {
      signature,
      state: 'accepted',
      acceptedMs: clock.nowMs(),
      acceptedAtMs: nowMs(),
      finishedAtMs: undefined,
      feePayer,
      tip: { account: encodeBase58(tip.account), lamports: tip.lamports },
      blockhash: isNonce ? undefined : encodeBase58(transaction.recentBlockhash),
      wireHash,
      job: { signature, wire, body: sendBody(wire) },
      attempts: [],
      attemptsLeftOut: 0,
      landed: undefined,
      expiredHeight: undefined,
    }
    receipts.add(receipt)
    dispatch.start(receipt)
    deps.onAccepted(receipt, nowMs() - startedMs)
    await deps.record(receipt)
    return { ok: true, signature, isNew: true }
  }

  /** One that landed is done; one that did not may be sent again, if its sender wants to, once the window has passed. */
  function mayRepeat(receipt: Receipt): boolean {
    if (receipt.state === 'unknown') return true
    if (!isSettled(receipt) || receipt.state === 'landed') return false
    return nowMs() - receipt.acceptedAtMs >= DEDUP_MS
  }
}

type CheckJob = {
  readonly signature: string
  readonly wire: Uint8Array
  readonly wireHash: string
  readonly transaction: ParsedTransaction
  readonly tip: { readonly account: Uint8Array; readonly lamports: bigint }
  readonly startedMs: number
}

function refuse(refusal: Refusal): Acceptance {
  return { ok: false, refusal }
}
