import type { KeyObject } from 'node:crypto'
import { openWorkerPort, processTimeMs } from '../../platform/process/worker.ts'
import { importPublicKey, verifyEd25519 } from '../../solana/crypto/ed25519.ts'
import { parseTransaction } from '../../solana/transaction/transaction.ts'

/** Transactions one behind the other, as they came over the wire. */
export type ToVerifier = { readonly bytes: Uint8Array; readonly lengths: readonly number[] }

export type FromVerifier =
  | { readonly kind: 'ready' }
  | {
      readonly kind: 'checked'
      /** For each transaction, in order, whether all its signatures are good. */
      readonly good: readonly boolean[]
      readonly signatures: number
      readonly tookMs: number
    }

/**
 * The thread that checks signatures. It reads the transactions again: that costs a hundredth of a check, and handing them over as values would
 * cost more.
 */
const link = openWorkerPort<ToVerifier, FromVerifier>()
if (link === undefined) throw new Error('this file runs in a thread that was started for it')
const { post } = link
/** Most transactions are signed by the same few keys, and reading one is a twentieth of a check. Beyond it the one read first is read anew. */
const KEYS_MAX = 1024
const keys = new Map<string, KeyObject>()
link.onMessage(({ bytes, lengths }) => {
  const startedMs = processTimeMs()
  let from = 0
  let signatures = 0
  const good = lengths.map((length) => {
    const parsed = parseTransaction(bytes.subarray(from, from + length))
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
