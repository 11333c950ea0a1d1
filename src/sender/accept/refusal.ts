import { ERRORS, type ErrorContext } from '../../contract/errors.ts'
import type { TipFault } from '../../solana/transaction/tip.ts'
import type { Decoded } from './decode.ts'

export type RefusalCode =
  | 'invalid-params'
  | 'method-not-found'
  | 'parse-error'
  | 'invalid-request'
  | 'signature-invalid'
  | 'signature-count'
  | 'tip-missing'
  | 'tip-too-small'
  | 'tip-through-lookup-table'
  | 'blockhash-expired'
  | 'payer-cannot-pay'
  | 'nonce-invalid'
  | 'no-path'
  | 'not-recorded'
  | 'rate-limited'
  | 'too-large'

/** Why a transaction or call is refused. Nothing was sent, except as `data.sent` of `not-recorded` states. */
export type Refusal = {
  readonly code: RefusalCode
  readonly message: string
  /** Details for programs. */
  readonly data: Readonly<Record<string, unknown>>
  readonly retryAfterMs?: number
  /** The limit that was reached, for `rate-limited`. */
  readonly limit?: SenderLimitName
}

/** The limits of the sender, by the name that refusals and metrics use. */
export type SenderLimitName =
  | 'perAddressPerSecond'
  | 'signaturesPerAddressPerSecond'
  | 'perPayerPerSecond'
  | 'checkingMax'
  | 'checkDelayMsMax'
  | 'pendingMax'
  | 'pendingPerAddressMax'
  | 'pendingPerPayerMax'
  | 'knownSignaturesMax'
  | 'readsPerAddressPerSecond'
  | 'waitersMax'
  | 'waitersPerAddressMax'

const LIMIT_DESCRIPTIONS: Readonly<Record<SenderLimitName, string>> = {
  perAddressPerSecond: 'transactions per second from one address',
  signaturesPerAddressPerSecond: 'signatures per second from one address',
  perPayerPerSecond: 'transactions per second of one fee payer',
  checkingMax: 'transactions being checked or recorded at once',
  checkDelayMsMax: 'milliseconds of waiting for a check',
  pendingMax: 'pending transactions',
  pendingPerAddressMax: 'pending transactions of one address',
  pendingPerPayerMax: 'pending transactions of one fee payer',
  knownSignaturesMax: 'signatures of the last two minutes beside the receipts',
  readsPerAddressPerSecond: 'requests per second from one address, beside transactions',
  waitersMax: 'receipts waited for at once',
  waitersPerAddressMax: 'receipts waited for by one address at once',
}

/** The tip rule, which every refusal about tip or blockhash includes, so that the caller can build a valid transaction. */
export type TipTerms = { readonly minTipLamports: number; readonly tipAccounts: readonly string[] }

export function refuseUndecodable({ fault, message, limit, size }: Extract<Decoded, { ok: false }>): Refusal {
  if (fault === 'signature-count') {
    return { code: 'signature-count', message: ERRORS['signature-count'].sentence, data: { reason: fault } }
  }
  return { code: 'invalid-params', message, data: { reason: fault, ...(limit === undefined ? {} : { limit, size }) } }
}

const TIP_CODES = {
  'below-minimum': 'tip-too-small',
  'lookup-table': 'tip-through-lookup-table',
  'read-only': 'tip-missing',
  source: 'tip-missing',
  'no-transfer': 'tip-missing',
} as const satisfies Record<TipFault, RefusalCode>

export function refuseTip(fault: TipFault, foundLamports: bigint, terms: TipTerms): Refusal {
  const code = TIP_CODES[fault]
  return { code, message: ERRORS[code].sentence, data: { ...tipData(terms, foundLamports), reason: fault } }
}

export function refuseTipAbove(lamportsMax: number, foundLamports: bigint, terms: TipTerms): Refusal {
  const limit = { reason: 'tip-too-large', limit: 'tipLamportsMax', size: lamportsMax }
  const message = `The tip is larger than the maximum of ${lamportsMax} lamports.`
  return { code: 'invalid-params', message, data: { ...tipData(terms, foundLamports), ...limit } }
}

export function refuseBlockhash(foundLamports: bigint, terms: TipTerms): Refusal {
  return {
    code: 'blockhash-expired',
    message: ERRORS['blockhash-expired'].sentence,
    data: tipData(terms, foundLamports),
  }
}

export type PayerFault = {
  readonly payer: string
  readonly lamports: bigint
  readonly required: bigint
  /** `owner`: the account belongs to a program, and only accounts of the System Program can pay fees. */
  readonly reason: 'not-found' | 'owner' | 'lamports'
}

export function refusePayer({ payer, lamports, required, reason }: PayerFault): Refusal {
  return {
    code: 'payer-cannot-pay',
    message: ERRORS['payer-cannot-pay'].sentence,
    data: { payer, lamports: Number(lamports), requiredLamports: Number(required), reason },
  }
}

/** `value`: the account has a different nonce than the transaction. `authority`: its authority does not sign. */
export type NonceFault = 'not-found' | 'not-a-nonce' | 'value' | 'authority'

export function refuseNonce(nonceAccount: string, reason: NonceFault): Refusal {
  return { code: 'nonce-invalid', message: ERRORS['nonce-invalid'].sentence, data: { nonceAccount, reason } }
}

/** The code and the first words are those of a node. */
export function refuseLookupTable(
  lookupTable: string,
  reason: 'lookup-table-not-found' | 'lookup-table-owner',
): Refusal {
  const message =
    reason === 'lookup-table-owner'
      ? 'Transaction loads an address table account with an invalid owner'
      : "Transaction loads an address table account that doesn't exist; if it was created just now, send the transaction again in a second"
  return { code: 'invalid-params', message, data: { reason, lookupTable } }
}

/** `required` and `found` are the names other senders use. */
function tipData({ minTipLamports, tipAccounts }: TipTerms, found: bigint): Refusal['data'] {
  const foundLamports = Number(found)
  return { minTipLamports, foundLamports, tipAccounts, required: minTipLamports, found: foundLamports }
}

export function refuseLimit(limit: SenderLimitName, size: number, retryAfterMs: number): Refusal {
  return {
    code: 'rate-limited',
    message: `limit reached: ${size} ${LIMIT_DESCRIPTIONS[limit]}`,
    data: { reason: 'rate', limit, size, retryAfterMs: Math.ceil(retryAfterMs) },
    retryAfterMs,
    limit,
  }
}

export function refuseBatch(size: number): Refusal {
  return {
    code: 'too-large',
    message: `limit reached: ${size} calls in one batch`,
    data: { limit: 'batchItems', size },
  }
}

/** What is no JSON or no call, with the message of the JSON-RPC 2.0 specification. */
export function refuseBody(code: 'parse-error' | 'invalid-request'): Refusal {
  const { sentence, fix } = ERRORS[code]
  return { code, message: sentence, data: { fix } }
}

/** None of these paths, by the names that receipts use, is open. */
export function refuseNoPath(paths: readonly string[]): Refusal {
  return { ...refusePlain('no-path'), data: { reason: 'paths-closed', paths } }
}

export function refusePlain(code: 'signature-invalid' | 'no-path' | 'method-not-found'): Refusal {
  return { code, message: ERRORS[code].sentence, data: {} }
}

export function refuseBundles(method: string): Refusal {
  const message = `${method} is not offered: bundles are not sent here; send each transaction with sendTransaction`
  return { code: 'method-not-found', message, data: { method } }
}

/** A transaction that cannot be recorded is refused, because it would be lost at a restart; `wasSent` when it had been sent already. */
export function refuseNotRecorded(wasSent: boolean): Refusal {
  return {
    code: 'not-recorded',
    message: ERRORS['not-recorded'].sentence,
    data: { reason: 'journal', sent: wasSent },
    retryAfterMs: 1000,
  }
}

/** The `error` member of a JSON-RPC response. */
export function errorOf(
  refusal: Refusal,
  { requestId, docsUrl }: ErrorContext,
): { code: number; message: string; data: string } {
  return {
    code: ERRORS[refusal.code].jsonRpc,
    message: refusal.message,
    data: JSON.stringify({ ...refusal.data, request_id: requestId, docs_url: docsUrl?.(refusal.code) }),
  }
}

/** Whole seconds below 120, the only form that the common Solana clients honour. */
export function retryAfterOf({ retryAfterMs = 0 }: Refusal): number {
  return Math.min(119, Math.max(1, Math.ceil(retryAfterMs / 1000)))
}
