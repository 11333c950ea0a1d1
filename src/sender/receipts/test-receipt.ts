import type { Receipt } from './receipt.ts'

/** For tests: the receipt of a newly accepted transaction. */
export function receiptOf(signature: string, given: Partial<Receipt> = {}): Receipt {
  return {
    key: signature,
    signature,
    state: 'accepted',
    acceptedUnixMs: 1000,
    acceptedMonotonicMs: 0,
    settledMonotonicMs: undefined,
    address: 'address',
    feePayer: 'payer',
    tip: { account: 'tip', lamports: 1_000_000n },
    blockhash: 'blockhash',
    wireHash: undefined,
    job: { wire: new Uint8Array(1), body: signature },
    attempts: [],
    attemptsLeftOut: 0,
    landed: undefined,
    expiredHeight: undefined,
    ...given,
  }
}
