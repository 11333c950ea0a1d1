import { verify } from 'node:crypto'
import { importPublicKey, isSmallOrder } from '../../solana/crypto/ed25519.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'

/** One check of a signature costs about 0.2 ms; it is done on the threads of the runtime, so that the loop goes on meanwhile. */
export function verifyAsync(transaction: ParsedTransaction): Promise<boolean> {
  return new Promise((resolve) => {
    let left = transaction.signatures.length
    let isGood = true
    const settle = (good: boolean) => {
      isGood &&= good
      left -= 1
      if (left === 0) resolve(isGood)
    }
    transaction.signatures.forEach((signature, index) => {
      const key = importPublicKey(transaction.staticKeys[index] as Uint8Array)
      if (key === undefined || isSmallOrder(signature)) return settle(false)
      verify(null, transaction.message, key, signature, (error, good) => settle(error === null && good))
    })
  })
}
