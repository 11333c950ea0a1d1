import { verify } from 'node:crypto'
import { importPublicKey, isSmallOrder } from '../../solana/crypto/ed25519.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'

/** Verifies all signatures on libuv's thread pool, about 0.2 ms each, so that the event loop is not blocked. */
export function verifyOnThreadPool(transaction: ParsedTransaction): Promise<boolean> {
  return new Promise((resolve) => {
    let remaining = transaction.signatures.length
    let isGood = true
    const settle = (good: boolean) => {
      isGood &&= good
      remaining -= 1
      if (remaining === 0) resolve(isGood)
    }
    transaction.signatures.forEach((signature, index) => {
      const key = importPublicKey(transaction.staticKeys[index] as Uint8Array)
      if (key === undefined || isSmallOrder(signature)) return settle(false)
      verify(null, transaction.message, key, signature, (error, good) => settle(error === null && good))
    })
  })
}
