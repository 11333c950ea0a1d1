import { encodeBase58 } from '../../solana/crypto/base58.ts'
import type { KnownTransaction, Receipt } from './receipt.ts'

/** Within this time the same signature is a duplicate; afterwards a transaction that did not land may be sent again. */
export const DEDUP_MS = 120_000

/** What is kept of a settled receipt that is removed early. */
type Remembered = Pick<Receipt, 'state' | 'acceptedMonotonicMs' | 'wireHash'> & { readonly settledMonotonicMs: number }

/**
 * The signatures of settled transactions whose receipts had to make room, so that none is sent twice. One that landed needs no longer time: its blockhash
 * has expired by then, or its nonce has changed.
 */
export function createKnownSignatures() {
  /** By `signatureKey`, in the order in which their receipts were settled. */
  const all = new Map<string, Remembered>()

  return {
    get(key: string): KnownTransaction | undefined {
      const known = all.get(key)
      return known && { ...known, signature: encodeBase58(Buffer.from(key, 'latin1')), job: undefined }
    },
    add({ key, state, acceptedMonotonicMs, wireHash }: Receipt, settledMonotonicMs: number): void {
      all.set(key, { state, acceptedMonotonicMs, wireHash, settledMonotonicMs })
    },
    delete: (key: string): void => void all.delete(key),
    removeOld(nowMs: number): void {
      for (const [key, { settledMonotonicMs }] of all) {
        if (nowMs - settledMonotonicMs < DEDUP_MS) return
        all.delete(key)
      }
    },
    get size(): number {
      return all.size
    },
  }
}
