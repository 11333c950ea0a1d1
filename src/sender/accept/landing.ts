import { encodeBase58 } from '../../solana/crypto/base58.ts'
import { isNonceAuthorized, nonceAccountIndex, readNonceAccount } from '../../solana/transaction/durable-nonce.ts'
import { feeFloor } from '../../solana/transaction/fee-floor.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import type { AccountChecks } from './account-checks.ts'
import type { Account } from './account-lookups.ts'
import { type Awaitable, mapAwaitable } from './awaitable.ts'
import type { Freshness } from './freshness.ts'
import {
  type NonceFault,
  type Refusal,
  refuseBlockhash,
  refuseLookupTable,
  refuseNonce,
  refusePayer,
  type TipTerms,
} from './refusal.ts'
import type { SecondCheck } from './second-check.ts'
import type { Tip } from './tip-terms.ts'

/** Refuses transactions that certainly cannot land, because re-sending them costs their sender nothing. */
export type Landing = {
  /** `texts` are the transaction's, in base58. */
  check(transaction: ParsedTransaction, tip: Tip, texts: Texts): Awaitable<Refusal | undefined>
}

export type Texts = {
  readonly feePayer: string
  readonly blockhash: string
  readonly lookupTables: readonly string[]
}

const SYSTEM_PROGRAM = encodeBase58(new Uint8Array(32))
const LOOKUP_TABLE_PROGRAM = 'AddressLookupTab1e1111111111111111111111111'

export function createLanding(deps: {
  readonly freshness: Pick<Freshness, 'check'>
  /** Each has its own cache: callers can name any account as a nonce account or lookup table, which must not displace payers. */
  readonly payers: AccountChecks
  readonly nonces: AccountChecks
  /** A transaction with the next nonce often comes before a node has it. */
  readonly checkTwice: SecondCheck
  readonly tables: AccountChecks
  readonly terms: TipTerms
}): Landing {
  const { freshness, payers, nonces, checkTwice, tables, terms } = deps

  function checkLifetime(
    transaction: ParsedTransaction,
    tip: Tip,
    { blockhash }: Texts,
  ): Awaitable<Refusal | undefined> {
    const index = nonceAccountIndex(transaction)
    const unlessFresh = (refusal: () => Refusal) =>
      mapAwaitable(freshness.check(blockhash, index !== undefined), (age) =>
        age === 'expired' ? refusal() : undefined,
      )
    if (index === undefined) return unlessFresh(() => refuseBlockhash(tip.lamports, terms))
    const address = encodeBase58(transaction.staticKeys[index] as Uint8Array)
    // The runtime accepts a recent blockhash before it checks the nonce.
    return checkTwice((isSecond) =>
      mapAwaitable(
        nonces.check(address, (account) => nonceFault(transaction, account), blockhash + (isSecond ? ' again' : '')),
        (fault) => (fault === undefined ? undefined : unlessFresh(() => refuseNonce(address, fault))),
      ),
    )
  }

  function checkPayer(transaction: ParsedTransaction, tip: Tip, { feePayer }: Texts): Awaitable<Refusal | undefined> {
    const required = feeFloor(transaction) + (paysTipFromBalance(transaction, tip) ? tip.lamports : 0n)
    return payers.check(feePayer, (account) => {
      const lamports = account?.lamports ?? 0n
      const reason = account === null ? 'not-found' : account.owner === SYSTEM_PROGRAM ? 'lamports' : 'owner'
      if (reason === 'lamports' && lamports >= required) return undefined
      return refusePayer({ payer: feePayer, lamports, required, reason })
    })
  }

  /** A transaction whose table is missing is in no block, and costs its payer nothing. */
  function checkTables({ lookupTables }: Texts): Awaitable<Refusal | undefined> {
    let found: Awaitable<Refusal | undefined>
    for (const address of lookupTables) {
      const refusal = tables.check(address, (account) => {
        if (account?.owner === LOOKUP_TABLE_PROGRAM) return undefined
        return refuseLookupTable(address, account === null ? 'lookup-table-not-found' : 'lookup-table-owner')
      })
      found = mapAwaitable(found, (before) => before ?? refusal)
    }
    return found
  }

  return {
    check(transaction, tip, texts) {
      const lifetime = checkLifetime(transaction, tip, texts)
      const payer = checkPayer(transaction, tip, texts)
      const lookupTables = checkTables(texts)
      return mapAwaitable(lifetime, (expired) => expired ?? mapAwaitable(payer, (poor) => poor ?? lookupTables))
    },
  }
}

/** Whether the tip is paid from the payer's current balance. An earlier instruction that names the payer may add lamports to it. */
function paysTipFromBalance({ instructions }: ParsedTransaction, { from, instruction }: Tip): boolean {
  return from === 0 && !instructions.slice(0, instruction).some(({ accounts }) => accounts.includes(0))
}

/** The checks of the runtime (agave: check_transaction_age, verify_nonce_account). */
function nonceFault(transaction: ParsedTransaction, account: Account): NonceFault | undefined {
  if (account === null) return 'not-found'
  const held = account.owner === SYSTEM_PROGRAM ? readNonceAccount(account.data) : undefined
  if (held === undefined) return 'not-a-nonce'
  if (Buffer.compare(held.nonce, transaction.recentBlockhash) !== 0) return 'value'
  return isNonceAuthorized(transaction, held.authority) ? undefined : 'authority'
}
