import { openWorkerPort, processTimeMs } from '../../platform/process/worker.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { FORMAT_LIMITS } from '../../solana/transaction/types.ts'
import { createVerifySignatures } from './verify-signatures.ts'

/** Concatenated transactions in wire format. */
export type ToVerifier = { readonly bytes: Uint8Array; readonly lengths: readonly number[] }

export type FromVerifier =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'verified'
      /** For each transaction, in order, whether all its signatures are valid. */
      readonly good: readonly boolean[]
      readonly signatures: number
      readonly tookMs: number
    }

/**
 * Entry file of a thread that verifies signatures. It parses the transactions again: that costs a hundredth of a verification, and structured
 * cloning of parsed transactions would cost more.
 */
const link = openWorkerPort<ToVerifier, FromVerifier>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const { post } = link
const verifySignatures = createVerifySignatures()
link.onMessage(({ bytes, lengths }) => {
  const startedMs = processTimeMs()
  let from = 0
  let signatures = 0
  const good = lengths.map((length) => {
    const parsed = parseTransaction(bytes.subarray(from, from + length), FORMAT_LIMITS)
    from += length
    if (!parsed.ok) return false
    signatures += parsed.transaction.signatures.length
    return verifySignatures(parsed.transaction)
  })
  post({ kind: 'verified', good, signatures, tookMs: processTimeMs() - startedMs })
})
post({ kind: 'ready' })
