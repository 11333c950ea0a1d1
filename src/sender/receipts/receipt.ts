/** What a path is given to send. */
export type Job = {
  readonly signature: string
  readonly wire: Uint8Array
  /** The body of sendTransaction, made once for all paths that post it: one character a byte. */
  readonly body: string
}

export type AttemptResponse = 'taken' | 'refused' | 'failed' | 'busy'

/** What became of sending a transaction once, on one path to one target. */
export type AttemptReport = {
  readonly path: string
  /** A node's or relay's name, or a leader's identity. */
  readonly to: string
  readonly response: AttemptResponse
  /** Empty where there is nothing to add. */
  readonly says: string
}

export type Attempt = AttemptReport & { readonly firstMs: number; readonly lastMs: number; readonly times: number }

export type Landed = {
  readonly slot: number
  readonly confirmation: 'processed' | 'confirmed' | 'finalized'
  /** The chain's own error; null when the transaction succeeded. */
  readonly error: unknown
  readonly atMs: number
}

/**
 * `accepted`: checked, no path has taken it yet. `sent`: at least one has. `landed`: in a block, with or without an error. `expired`:
 * its blockhash is too old and it is in no block. `ended`: the configured end came first. `unknown`: the service was restarted while it
 * was on its way; it is looked for on the chain and not sent again.
 */
export type ReceiptState = 'accepted' | 'sent' | 'landed' | 'expired' | 'ended' | 'unknown'

export type Receipt = {
  readonly signature: string
  state: ReceiptState
  /** Wall clock. */
  readonly acceptedMs: number
  /** Monotonic. */
  readonly acceptedAtMs: number
  finishedAtMs: number | undefined
  /** Of the client; undefined for one of before a restart. */
  readonly address: string | undefined
  readonly feePayer: string | undefined
  readonly tip: { readonly account: string; readonly lamports: bigint } | undefined
  /** Undefined for a durable nonce, which does not expire by itself. */
  readonly blockhash: string | undefined
  /** Tells a repeated transaction from another one with the same first signature. */
  readonly wireHash: string
  /** Gone once the transaction is settled. */
  job: Job | undefined
  attempts: Attempt[]
  attemptsLeftOut: number
  landed: Landed | undefined
  expiredHeight: number | undefined
}

/** The receipt as its reader gets it. */
export function printReceipt(receipt: Receipt): object {
  const { signature, state, acceptedMs, feePayer, tip, attempts, attemptsLeftOut, landed, expiredHeight } = receipt
  return {
    signature,
    state,
    final: isSettled(receipt),
    accepted_at: isoTime(acceptedMs),
    fee_payer: feePayer ?? null,
    tip: tip === undefined ? null : { account: tip.account, lamports: Number(tip.lamports), moved: hasMoved(receipt) },
    landed:
      landed === undefined
        ? null
        : {
            slot: landed.slot,
            confirmation: landed.confirmation,
            error: landed.error ?? null,
            at: isoTime(landed.atMs),
          },
    expired_at_height: expiredHeight ?? null,
    attempts: attempts.map(({ path, to, response, says, firstMs, lastMs, times }) => ({
      path,
      to,
      answer: response,
      ...(says === '' ? {} : { says }),
      first_at: isoTime(firstMs),
      last_at: isoTime(lastMs),
      times,
    })),
    ...(attemptsLeftOut > 0 ? { attempts_left_out: attemptsLeftOut } : {}),
    ...(state === 'unknown' ? { says: UNKNOWN_MESSAGE } : {}),
  }
}

const UNKNOWN_MESSAGE =
  'the service was restarted while this transaction was on its way; it is not sent again, so look for it on the chain before you repeat it'

/** Whether a reader can stop waiting. */
export function isSettled({ state }: Receipt): boolean {
  return state !== 'accepted' && state !== 'sent'
}

/** A tip is paid by a transaction that lands and succeeds; null while that can still happen. */
function hasMoved({ state, landed }: Receipt): boolean | null {
  if (landed !== undefined) return landed.error === null
  return state === 'expired' ? false : null
}

function isoTime(ms: number): string {
  return new Date(ms).toISOString()
}
