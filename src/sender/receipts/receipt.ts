import { hash } from 'node:crypto'
import { decodeBase58 } from '../../solana/crypto/base58.ts'

/** A transaction to send on a path. */
export type Job = {
  readonly wire: Uint8Array
  /** The JSON-RPC body of sendTransaction, built once for all HTTP paths; ASCII only. */
  readonly body: string
}

export type AttemptResponse = 'taken' | 'refused' | 'failed' | 'busy'

/** The result of sending a transaction once, on one path to one target. */
export type AttemptReport = {
  readonly path: string
  /** A node's or relay's name, or a leader's identity. */
  readonly to: string
  readonly response: AttemptResponse
  /** Details of the response; may be empty. */
  readonly message: string
}

export type Attempt = AttemptReport & {
  readonly firstUnixMs: number
  readonly lastUnixMs: number
  readonly times: number
}

export type Landed = {
  readonly slot: number
  readonly confirmation: 'processed' | 'confirmed' | 'finalized'
  /** The chain's own error; null when the transaction succeeded. */
  readonly error: unknown
  readonly unixMs: number
}

/**
 * `accepted`: checked, no path has taken it yet. `sent`: at least one path has. `landed`: in a block, with or without an error. `expired`:
 * its blockhash has expired and it is in no block. `ended`: `endMs` passed first. Both may land yet. `unknown`: the service restarted while it was in flight, or a fork
 * dropped its block when it was no longer sent; it is looked up on the chain and not sent again.
 */
export type ReceiptState = 'accepted' | 'sent' | 'landed' | 'expired' | 'ended' | 'unknown'

export type Receipt = {
  /** The first signature as `signatureKey` makes it. */
  readonly key: string
  /** The first signature in base58. */
  readonly signature: string
  state: ReceiptState
  readonly acceptedUnixMs: number
  readonly acceptedMonotonicMs: number
  settledMonotonicMs: number | undefined
  /** The client's address; undefined for a receipt from before a restart. */
  readonly address: string | undefined
  readonly feePayer: string | undefined
  readonly tip: { readonly account: string; readonly lamports: bigint } | undefined
  /** Undefined for a durable nonce, which does not expire. */
  readonly blockhash: string | undefined
  /** Undefined before `recordWireHash`; empty for a receipt from before a restart. */
  wireHash: string | undefined
  /** Undefined once the transaction is settled. */
  job: Job | undefined
  attempts: Attempt[]
  attemptsLeftOut: number
  landed: Landed | undefined
  expiredHeight: number | undefined
}

/** What recognizes a duplicate: a receipt, or what is left of one. */
export type KnownTransaction = Pick<Receipt, 'signature' | 'state' | 'acceptedMonotonicMs' | 'wireHash' | 'job'>

/** The receipt as JSON. `answer` and `says` are the former names of `response` and `message`, until 0.2. */
export function printReceipt(receipt: Receipt): object {
  const { signature, state, acceptedUnixMs, feePayer, tip, attempts, attemptsLeftOut, landed, expiredHeight } = receipt
  return {
    signature,
    state,
    final: isSettled(receipt),
    accepted_at: isoTime(acceptedUnixMs),
    fee_payer: feePayer ?? null,
    tip: tip === undefined ? null : { account: tip.account, lamports: Number(tip.lamports), moved: hasMoved(receipt) },
    landed:
      landed === undefined
        ? null
        : {
            slot: landed.slot,
            confirmation: landed.confirmation,
            error: landed.error ?? null,
            at: isoTime(landed.unixMs),
          },
    expired_at_height: expiredHeight ?? null,
    attempts: attempts.map(({ path, to, response, message, firstUnixMs, lastUnixMs, times }) => ({
      path,
      to,
      response,
      answer: response,
      ...(message === '' ? {} : withMessage(message)),
      first_at: isoTime(firstUnixMs),
      last_at: isoTime(lastUnixMs),
      times,
    })),
    ...(attemptsLeftOut > 0 ? { attempts_left_out: attemptsLeftOut } : {}),
    ...(state === 'unknown' ? withMessage(UNKNOWN_MESSAGE) : state === 'ended' ? withMessage(ENDED_MESSAGE) : {}),
  }
}

function withMessage(message: string): object {
  return { message, says: message }
}

const UNKNOWN_MESSAGE =
  'the service restarted while this transaction was in flight, or a fork dropped its block when it was no longer sent; look for it on the chain before you repeat it'

const ENDED_MESSAGE =
  'it is no longer sent, but may land until its blockhash has expired or its nonce has changed; this receipt is corrected then'

/** The bytes of a signature as the key of maps: base58 costs ten times as much. */
export function signatureKey(signature: Uint8Array): string {
  return Buffer.from(signature.buffer, signature.byteOffset, signature.length).toString('latin1')
}

/** The key of a signature in base58, of which every text stands for other bytes. */
export function signatureKeyOf(base58: string): string {
  return signatureKey(decodeBase58(base58))
}

export function wireHashOf(wire: Uint8Array): string {
  return hash('sha256', wire, 'base64')
}

/** Distinguishes a duplicate from another transaction with the same first signature. */
export function hasSameWire({ job, wireHash }: KnownTransaction, wire: Uint8Array): boolean {
  return job === undefined ? wireHash === wireHashOf(wire) : Buffer.compare(job.wire, wire) === 0
}

/** Made at once, after the dispatch: thousands of transactions may be settled at the same moment. */
export function recordWireHash(receipt: Receipt): void {
  if (receipt.job !== undefined) receipt.wireHash = wireHashOf(receipt.job.wire)
}

/** Whether the state is final, except that a fork may revert `landed`, and that what has expired, ended or is unknown may have landed. */
export function isSettled({ state }: Pick<Receipt, 'state'>): boolean {
  return state !== 'accepted' && state !== 'sent'
}

/** The error of a transaction that failed before a restart; the journal does not have the chain's own. */
export const UNREAD_ERROR = 'the transaction failed; the error is on the chain'

/** Whether both are the same execution. Two banks of one slot may execute a transaction with different results, of which one remains. */
export function isSameLanding(known: Pick<Landed, 'slot' | 'error'>, seen: Pick<Landed, 'slot' | 'error'>): boolean {
  if (known.slot !== seen.slot) return false
  if (known.error === UNREAD_ERROR) return seen.error !== null
  return JSON.stringify(known.error) === JSON.stringify(seen.error)
}

/** Whether the tip was paid: only by a transaction that lands and succeeds; null while that can still happen. */
function hasMoved({ state, landed }: Receipt): boolean | null {
  if (landed !== undefined) return landed.error === null
  return state === 'expired' ? false : null
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
