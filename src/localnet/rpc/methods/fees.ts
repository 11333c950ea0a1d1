import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import {
  isNonceAuthorized,
  NONCE_ACCOUNT_BYTES,
  nonceAccountIndex,
  readNonceAccount,
} from '../../../solana/transaction/durable-nonce.ts'
import type { ParsedTransaction } from '../../../solana/transaction/types.ts'
import { SYSTEM_PROGRAM } from '../../chain/addresses.ts'
import { BLOCKHASH_AGE_MAX, isValidAge } from '../../chain/blockhash-queue.ts'
import type { Chain } from '../../chain/model.ts'
import { feeOf } from '../../engine/fees.ts'
import { type LookupError, resolveLookups } from '../../engine/lookup-tables.ts'
import { fromAccount } from '../../engine/values.ts'
import { type BankView, openBank, type RpcMethods, withContext } from '../context.ts'
import { decodeMessage } from '../decode-transaction.ts'
import { invalidParams } from '../errors.ts'
import { listOf, optional, readArguments, string } from '../params.ts'
import * as shape from '../request-shapes.ts'

/** MAX_TX_ACCOUNT_LOCKS. */
const PRIORITIZATION_KEYS_MAX = 128

const maybeStrings = optional(listOf(string))

export const feeMethods: RpcMethods = {
  getLatestBlockhash({ chain }, params) {
    const [config] = readArguments(params, [], [shape.contextConfig])
    const bank = openBank(chain, config)
    return withContext(bank.slot, chain.latestBlockhash(bank.commitment))
  },

  isBlockhashValid({ chain }, params) {
    const [hash, config] = readArguments(params, [string], [shape.contextConfig])
    const fault = shape.base58Fault(hash)
    if (fault) throw invalidParams(fault)
    const bank = openBank(chain, config)
    return withContext(bank.slot, isValidAge(chain.blockhashAge(hash, bank.commitment), BLOCKHASH_AGE_MAX))
  },

  getFeeForMessage({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.contextConfig])
    const transaction = decodeMessage(text)
    const bank = openBank(chain, config)
    checkLookups(bank, transaction)
    return withContext(bank.slot, isPayable(chain, bank, transaction) ? feeOf(transaction).total : null)
  },

  getRecentPrioritizationFees({ chain, prioritizationFees }, params) {
    const [texts] = readArguments(params, [], [maybeStrings])
    const addresses = texts ?? []
    if (addresses.length > PRIORITIZATION_KEYS_MAX)
      throw invalidParams(`Too many inputs provided; max ${PRIORITIZATION_KEYS_MAX}`)
    addresses.forEach(shape.checkAddress)
    return prioritizationFees(chain, addresses)
  },
}

/** Descriptions of `AddressLoaderError`. */
const LOOKUP_FAULTS: Readonly<Record<LookupError, string>> = {
  AddressLookupTableNotFound: 'Attempted to lookup addresses from a table that does not exist',
  InvalidAddressLookupTableOwner: 'Attempted to lookup addresses from an account owned by the wrong program',
  InvalidAddressLookupTableData: 'Attempted to lookup addresses from an invalid account',
  InvalidAddressLookupTableIndex: 'Address lookup contains an invalid index',
}

/** A message is complete only with the addresses of its lookup tables. */
function checkLookups(bank: BankView, { addressTableLookups }: ParsedTransaction): void {
  const readTable = (address: Uint8Array) => {
    const account = bank.readAccount(encodeBase58(address))
    return account && fromAccount(account)
  }
  const loaded = resolveLookups(addressTableLookups, readTable, bank.slot)
  if (!loaded.ok) throw invalidParams(`invalid transaction message: ${LOOKUP_FAULTS[loaded.err]}`)
}

/** A fee is known for a blockhash that the chain keeps, also when it is too old to execute, and for one that a nonce account holds whose authority signs. */
function isPayable(chain: Chain, bank: BankView, transaction: ParsedTransaction): boolean {
  const blockhash = encodeBase58(transaction.recentBlockhash)
  if (chain.blockhashAge(blockhash, bank.commitment) !== undefined) return true
  const nonceIndex = nonceAccountIndex(transaction)
  if (nonceIndex === undefined) return false
  const account = bank.readAccount(encodeBase58(transaction.staticKeys[nonceIndex] as Uint8Array))
  if (account?.owner !== SYSTEM_PROGRAM || account.data.length !== NONCE_ACCOUNT_BYTES) return false
  const held = readNonceAccount(account.data)
  return held !== undefined && encodeBase58(held.nonce) === blockhash && isNonceAuthorized(transaction, held.authority)
}
