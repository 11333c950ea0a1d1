import type { Json } from '../json.ts'
import { type ByteReader, BytesError } from './byte-reader.ts'
import { nameAccounts } from './parser.ts'
import { encodeTokenAmount } from './token-amount.ts'

type Members = { readonly [name: string]: Json }

/**
 * The first accounts by name, then the signer: one key as `signer`, or a multisig account as `multisigSigner` with the keys after it.
 * Throws BytesError where the signer is missing.
 */
export function nameSigned(accounts: readonly string[], names: readonly string[], signer: string): Members {
  const { [SIGNER]: authority, ...named } = nameAccounts(accounts, [...names, SIGNER])
  const signers = accounts.slice(names.length + 1)
  if (signers.length === 0) return { ...named, [signer]: authority as string }
  return { ...named, [`multisig${signer[0]?.toUpperCase()}${signer.slice(1)}`]: authority as string, signers }
}

const SIGNER = 'the signer'

export function showAmount(amount: bigint, decimals: number): Json {
  return encodeTokenAmount(amount, { decimals, unixTimestamp: 0 })
}

/** The Token program's option inside instructions: one byte, then the key where it is 1. */
export function readOptionalKey(read: ByteReader): string | null {
  const tag = read.u8()
  if (tag > 1) throw new BytesError('not an option')
  return tag === 1 ? read.key() : null
}
