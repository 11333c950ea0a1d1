import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { isSigner, isWritableStatic } from '../../solana/transaction/transaction.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { UPGRADEABLE_LOADER } from '../chain/addresses.ts'
import type { TransactionMeta } from '../chain/model.ts'
import { RESERVED_KEYS } from './parsed/program-ids.ts'

export type ListedKey = {
  readonly address: string
  readonly writable: boolean
  readonly signer: boolean
  readonly source: 'transaction' | 'lookupTable'
}

/**
 * All keys of a transaction in the order instructions count them: its own, then those loaded as writable, then as read-only.
 * Writable here is what the runtime locks: never a reserved key, nor a program that is called unless its loader is there to change it.
 */
export function listKeys(transaction: ParsedTransaction, loaded: TransactionMeta['loadedAddresses']): ListedKey[] {
  const staticKeys = transaction.staticKeys.map(encodeBase58)
  const called = new Set(transaction.instructions.map(({ programIdIndex }) => programIdIndex))
  const addresses = [...staticKeys, ...loaded.writable, ...loaded.readonly]
  const loaderPresent = addresses.includes(UPGRADEABLE_LOADER)
  return addresses.map((address, index) => {
    const isStatic = index < staticKeys.length
    const asked = isStatic ? isWritableStatic(transaction, index) : index < staticKeys.length + loaded.writable.length
    return {
      address,
      writable: asked && !RESERVED_KEYS.has(address) && (loaderPresent || !called.has(index)),
      signer: isStatic && isSigner(transaction, index),
      source: isStatic ? 'transaction' : 'lookupTable',
    }
  })
}
