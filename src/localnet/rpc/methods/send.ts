import { encodeBase58 } from '../../../solana/crypto/base58.ts'
import { verifySignatures } from '../../../solana/transaction/transaction.ts'
import type { ParsedTransaction } from '../../../solana/transaction/types.ts'
import type { Simulation, SubmitOutcome, TransactionError } from '../../chain/model.ts'
import { FEE_ONLY_ERRORS } from '../../engine/fees.ts'
import { type BankView, openBank, type RpcMethods, withContext } from '../context.ts'
import { decodeTransaction } from '../decode-transaction.ts'
import { encodeAccount } from '../encode-account.ts'
import { encodeError, encodeParsedInner, encodeReturnData, encodeTokenBalance } from '../encode-meta.ts'
import { internalError, invalidParams, nodeUnhealthy, preflightFailure } from '../errors.ts'
import type { Json } from '../json.ts'
import { readArguments, string, u64 } from '../params.ts'
import * as shape from '../request-shapes.ts'
import { describeTransactionError } from '../transaction-error-text.ts'

export const sendMethods: RpcMethods = {
  async sendTransaction({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.sendTransactionConfig])
    const { wire, transaction } = decodeTransaction(text, config?.encoding ?? 'base58')
    const skipPreflight = config?.skipPreflight ?? false
    openBank(chain, {
      commitment: skipPreflight ? 'processed' : config?.preflightCommitment,
      minContextSlot: config?.minContextSlot,
    })
    if (!skipPreflight) {
      if (!verifySignatures(transaction)) throw failPreflight('SignatureFailure', undefined)
      const simulation = await chain.simulate(wire, { verifySignatures: false, replaceBlockhash: false })
      if (simulation === 'engine-down') throw nodeUnhealthy()
      if (simulation.err !== null) throw failPreflight(simulation.err, simulation)
    }
    return signatureOf(transaction, await chain.submit(wire))
  },

  async simulateTransaction({ chain }, params) {
    const [text, config] = readArguments(params, [string], [shape.simulateTransactionConfig])
    const { wire, transaction } = decodeTransaction(text, config?.encoding ?? 'base58')
    openBank(chain, config)
    const replaceBlockhash = config?.replaceRecentBlockhash ?? false
    const sigVerify = config?.sigVerify ?? false
    if (replaceBlockhash && sigVerify) throw invalidParams('sigVerify may not be used with replaceRecentBlockhash')
    const forged = sigVerify && !verifySignatures(transaction)
    const run = forged ? undefined : await chain.simulate(wire, { verifySignatures: false, replaceBlockhash })
    if (run === 'engine-down') throw nodeUnhealthy()
    refuseBadLookup(run?.err)
    const bank = openBank(chain, config)
    const keys = keysOf(transaction, run)
    const accounts = encodeAccounts(config?.accounts, keys.length, run, bank)
    const innerInstructions =
      config?.innerInstructions && run && wasExecuted(run) ? encodeParsedInner(run.meta, keys) : null
    const err = forged ? 'SignatureFailure' : (run?.err ?? null)
    return withContext(bank.slot, {
      ...encodeSimulation(err, run),
      ...encodeBalances(run),
      accounts,
      innerInstructions,
    })
  },

  async requestAirdrop({ chain }, params) {
    const [text, lamports, config] = readArguments(params, [string, u64], [shape.airdropConfig])
    const address = shape.checkAddress(text)
    if (config?.recentBlockhash !== undefined) shape.checkHash(config.recentBlockhash)
    const outcome = await chain.airdrop(address, lamports)
    if (outcome.ok) return outcome.signature
    throw outcome.reason === 'rejected' ? internalError() : nodeUnhealthy()
  },
}

/** Agave forwards a transaction without waiting for it, so one that is not executed still gets its signature as the result. */
function signatureOf(transaction: ParsedTransaction, outcome: SubmitOutcome): string {
  if (!outcome.ok && outcome.reason !== 'rejected') throw nodeUnhealthy()
  if (!outcome.ok) refuseBadLookup(outcome.err)
  return encodeBase58(transaction.signatures[0] as Uint8Array)
}

/** Lookup tables are resolved before a transaction is executed or forwarded; on failure the transaction is invalid. */
const LOOKUP_ERRORS = [
  'AddressLookupTableNotFound',
  'InvalidAddressLookupTableOwner',
  'InvalidAddressLookupTableData',
  'InvalidAddressLookupTableIndex',
]

function refuseBadLookup(err: TransactionError | null | undefined): void {
  if (typeof err === 'string' && LOOKUP_ERRORS.includes(err)) {
    throw invalidParams(`invalid transaction: ${describeTransactionError(err)}`)
  }
}

function failPreflight(err: TransactionError, simulation: Simulation | undefined) {
  refuseBadLookup(err)
  const nothing = { accounts: null, innerInstructions: null, loadedAddresses: null, ...NO_BALANCES }
  const data = { ...encodeSimulation(err, simulation), ...nothing }
  return preflightFailure(describeTransactionError(err), sortMembers(data))
}

/** Agave converts the data of an error to a JSON value first, which sorts the members. */
function sortMembers(data: { readonly [member: string]: Json }): Json {
  return Object.fromEntries(Object.entries(data).sort(([a], [b]) => (a < b ? -1 : 1)))
}

const NO_BALANCES = { preBalances: null, postBalances: null, preTokenBalances: null, postTokenBalances: null }

/** The members that preflight failures and simulations share. Without a simulation nothing was executed. */
function encodeSimulation(
  err: TransactionError | null,
  simulation: Simulation | undefined,
): { readonly [member: string]: Json } {
  return {
    err: encodeError(err),
    logs: simulation?.meta.logMessages ?? [],
    unitsConsumed: simulation?.meta.computeUnitsConsumed ?? 0n,
    loadedAccountsDataSize: simulation && wasLoaded(simulation) ? simulation.loadedAccountsDataSize : 0,
    returnData: encodeReturnData(simulation?.meta.returnData ?? null),
    replacementBlockhash: simulation?.replacementBlockhash ?? null,
    fee: simulation && wasLoaded(simulation) ? simulation.meta.fee : null,
  }
}

function encodeBalances(simulation: Simulation | undefined): { readonly [member: string]: Json } {
  const loadedAddresses = simulation?.meta.loadedAddresses ?? { writable: [], readonly: [] }
  if (!simulation || !wasLoaded(simulation)) return { ...NO_BALANCES, loadedAddresses }
  const { preBalances, postBalances, preTokenBalances, postTokenBalances } = simulation.meta
  return {
    preBalances,
    postBalances,
    preTokenBalances: preTokenBalances.map(encodeTokenBalance),
    postTokenBalances: postTokenBalances.map(encodeTokenBalance),
    loadedAddresses,
  }
}

/** A transaction that failed before its accounts were loaded has no balances and pays no fee. */
function wasLoaded({ meta, err }: Simulation): boolean {
  return meta.preBalances.length > 0 && !isPayerFailure(err, meta)
}

/** The fee payer is checked before anything else is loaded. */
function isPayerFailure(err: TransactionError | null, meta: Simulation['meta']): boolean {
  if (err === 'AccountNotFound' || err === 'InsufficientFundsForFee' || err === 'InvalidAccountForFee') return true
  // The rent of all accounts is checked once more after execution, which has written to the log.
  return isPayerRentFailure(err) && meta.logMessages.length === 0
}

function isPayerRentFailure(err: TransactionError | null): boolean {
  if (err === null || typeof err === 'string') return false
  const { InsufficientFundsForRent: rent } = err as { InsufficientFundsForRent?: { account_index: number } }
  return rent?.account_index === 0
}

/** A transaction whose programs could not be loaded pays the fee without being executed. */
function wasExecuted(simulation: Simulation): boolean {
  const { err } = simulation
  return wasLoaded(simulation) && (err === null || !FEE_ONLY_ERRORS.has(err))
}

function keysOf(transaction: ParsedTransaction, simulation: Simulation | undefined): string[] {
  const loaded = simulation?.meta.loadedAddresses ?? { writable: [], readonly: [] }
  return [...transaction.staticKeys.map(encodeBase58), ...loaded.writable, ...loaded.readonly]
}

type AccountsConfig = NonNullable<NonNullable<ReturnType<typeof shape.simulateTransactionConfig>>['accounts']>

function encodeAccounts(
  config: AccountsConfig | undefined,
  accountsMax: number,
  simulation: Simulation | undefined,
  bank: BankView,
): Json {
  if (!config) return null
  const encoding = config.encoding ?? 'base64'
  if (encoding === 'binary' || encoding === 'base58') throw invalidParams('base58 encoding not supported')
  if (config.addresses.length > accountsMax) throw invalidParams(`Too many accounts provided; max ${accountsMax}`)
  if (!simulation || simulation.err !== null) return config.addresses.map(() => null)
  const readAccount = (address: string) => simulation.postAccounts.get(address) ?? bank.readAccount(address)
  return config.addresses.map((text) => {
    const address = shape.checkAddress(text)
    const account = readAccount(address)
    return account && encodeAccount(address, account, { encoding, readAccount })
  })
}
