import type { KeyObject } from 'node:crypto'
import { openWorkerPort, processTimeMs } from '../../platform/process/worker.ts'
import { importPublicKey, verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'
import { FORMAT_LIMITS } from '../../solana/transaction/types.ts'

/** Concatenated transactions in wire format. */
export type ToVerifier = { readonly bytes: Uint8Array; readonly lengths: readonly number[] }

export type FromVerifier =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'checked'
      /** For each transaction, in order, whether all its signatures are valid. */
      readonly good: readonly boolean[]
      readonly signatures: number
      readonly tookMs: number
    }

/**
 * Entry file of a signature-check thread. It parses the transactions again: that costs a hundredth of a check, and structured cloning of parsed
 * transactions would cost more.
 */
const link = openWorkerPort<ToVerifier, FromVerifier>()
if (link === undefined) throw new Error('this file runs only as a worker thread')
const { post } = link
/** Cache of imported keys: most transactions are signed by the same few keys, and importing one costs a twentieth of a check. */
const KEYS_MAX = 1024
const keys = new Map<string, KeyObject>()
link.onMessage(({ bytes, lengths }) => {
  const startedMs = processTimeMs()
  let from = 0
  let signatures = 0
  const good = lengths.map((length) => {
    const parsed = parseTransaction(bytes.subarray(from, from + length), FORMAT_LIMITS)
    from += length
    if (!parsed.ok) return false
    const { message, signatures: given, staticKeys } = parsed.transaction
    signatures += given.length
    return given.every((signature, at) => {
      const key = keyOf(staticKeys[at] as Uint8Array)
      return key !== undefined && verifyEd25519(message, signature, key)
    })
  })
  post({ kind: 'checked', good, signatures, tookMs: processTimeMs() - startedMs })
})
post({ kind: 'ready' })

function keyOf(bytes: Uint8Array): KeyObject | undefined {
  const name = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString('latin1')
  const known = keys.get(name)
  if (known !== undefined) return known
  const key = importPublicKey(bytes)
  if (key === undefined) return undefined
  keys.set(name, key)
  if (keys.size > KEYS_MAX) keys.delete(keys.keys().next().value as string)
  return key
}
