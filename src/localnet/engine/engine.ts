import type { TransactionMetadata } from 'litesvm/dist/internal.js'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { nonceAccountIndex } from '../../solana/transaction/durable-nonce.ts'
import { parseTransaction, verifySignatures } from '../../solana/transaction/transaction.ts'
import type { ParsedTransaction } from '../../solana/transaction/types.ts'
import { unpackAccounts } from '../chain/account-codec.ts'
import {
  BPF_LOADER,
  BPF_LOADER_DEPRECATED,
  NATIVE_LOADER,
  TOKEN_2022_PROGRAM,
  TOKEN_PROGRAM,
  UPGRADEABLE_LOADER,
} from '../chain/addresses.ts'
import type { TransactionError } from '../chain/model.ts'
import { tokenBalancesOf } from '../chain/token-balances.ts'
import { toTransactionError } from './errors.ts'
import { type Fee, feeOf } from './fees.ts'
import { type LoadedAddresses, resolveLookups } from './lookup-tables.ts'
import { advancedNonce, isNonceUsable } from './nonce.ts'
import type {
  DumpReply,
  EngineAccount,
  EngineMeta,
  EngineReply,
  EngineRequest,
  ExecuteReply,
  LoadReply,
  OpenSlot,
  SimulateReply,
} from './protocol.ts'
import { createSvm, fromSvm } from './svm.ts'
import { minimumBalance, RECENT_BLOCKHASHES_MAX, SLOT_HASHES_MAX, type SlotHash } from './sysvars.ts'

export type Engine = { handle(request: EngineRequest): EngineReply }

/** Errors found after the fee payer was accepted: the fee is taken and the transaction lands (SIMD-0082); litesvm takes none. */
const FEE_ONLY_ERRORS: ReadonlySet<TransactionError> = new Set([
  'ProgramAccountNotFound',
  'InvalidProgramForExecution',
  'MaxLoadedAccountsDataSizeExceeded',
  'InvalidLoadedAccountsDataSizeLimit',
])

/** What every loaded account and every used lookup table adds to the loaded size (SIMD-0186). */
const ACCOUNT_BASE_BYTES = 64
const LOOKUP_TABLE_BASE_BYTES = 8248

const FIXED_PROGRAMS_MAX = 256

type Prepared = {
  readonly transaction: ParsedTransaction
  readonly loaded: LoadedAddresses
  readonly keys: readonly Uint8Array[]
  /** The wire form with the parent's blockhash put in: litesvm derives durable nonces from the message's own. */
  readonly wire: Uint8Array
  readonly fee: Fee
  readonly pre: (EngineAccount | null)[]
  readonly nonceIndex: number | undefined
}

export function createEngine(): Engine {
  const svm = createSvm()
  const tokenPrograms = [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].map((address) => decodeBase58(address))
  const upgradeableLoader = decodeBase58(UPGRADEABLE_LOADER)
  const oldLoaders = new Set(
    [NATIVE_LOADER, BPF_LOADER, BPF_LOADER_DEPRECATED].map((loader) => idOf(decodeBase58(loader))),
  )
  const fixedPrograms = new Map<string, EngineAccount>()
  let slot = 0
  let slotHashes: readonly SlotHash[] = []
  let blockhashes: readonly Uint8Array[] = []
  let parentBlockhash: Uint8Array = new Uint8Array(32)

  /**
   * Programs of the old loaders never change and may be large: their data is copied out of litesvm once, only the
   * balance is read again.
   */
  function readKnown(address: Uint8Array): EngineAccount | null {
    const id = idOf(address)
    const known = fixedPrograms.get(id)
    if (known) return { ...known, lamports: svm.native.getBalance(address) ?? 0n }
    const account = svm.read(address)
    if (account?.executable && oldLoaders.has(idOf(account.owner)) && fixedPrograms.size < FIXED_PROGRAMS_MAX)
      fixedPrograms.set(id, account)
    return account
  }

  function prepare(request: { wire: Uint8Array; nonce: boolean; verify: boolean }): Prepared | TransactionError {
    const parsed = parseTransaction(request.wire)
    if (!parsed.ok) return 'SanitizeFailure'
    const { transaction } = parsed
    if (request.verify && !verifySignatures(transaction)) return 'SignatureFailure'

    const loaded = resolveLookups(transaction.addressTableLookups, svm.read, slot)
    if (!loaded.ok) return loaded.err
    const { writable, readonly } = loaded
    const keys = [...transaction.staticKeys, ...writable, ...readonly]
    if (new Set(keys.map(idOf)).size < keys.length) return 'AccountLoadedTwice'
    const pre = keys.map(readKnown)

    const nonceIndex = request.nonce ? nonceAccountIndex(transaction) : undefined
    if (request.nonce) {
      if (nonceIndex === undefined) return 'BlockhashNotFound'
      if (!isNonceUsable(transaction, pre[nonceIndex] ?? null, parentBlockhash)) return 'BlockhashNotFound'
    }

    const wire = new Uint8Array(request.wire)
    wire.set(parentBlockhash, transaction.recentBlockhash.byteOffset - request.wire.byteOffset)
    return { transaction, loaded: { writable, readonly }, keys, wire, fee: feeOf(transaction), pre, nonceIndex }
  }

  function execute(request: EngineRequest & { op: 'execute' }): ExecuteReply {
    const prepared = prepare({ ...request, verify: true })
    if (!isPrepared(prepared)) return { landed: false, err: prepared }
    const { keys, pre, fee } = prepared

    const result = svm.native.sendVersionedTransaction(prepared.wire)
    const failed = 'err' in result ? result : undefined
    let err = failed ? toTransactionError(failed.err()) : null
    if (failed && (svm.native.getBalance(keys[0] as Uint8Array) ?? 0n) === lamportsOf(pre[0] ?? null)) {
      if (err === 'InvalidProgramForExecution' && namesMissingProgram(prepared)) err = 'ProgramAccountNotFound'
      if (!FEE_ONLY_ERRORS.has(err as TransactionError) || !chargeFee(prepared)) {
        return { landed: false, err: err as TransactionError }
      }
    }
    if (failed && prepared.nonceIndex !== undefined) advanceNonce(prepared, prepared.nonceIndex)

    const post = keys.map((key, index) => (isReadonly(prepared, index) ? (pre[index] ?? null) : svm.read(key)))
    const writes = post.flatMap((account, keyIndex) =>
      same(pre[keyIndex] ?? null, account) ? [] : [{ keyIndex, account }],
    )
    const native = 'err' in result ? result.meta() : result
    return { landed: true, meta: metaOf({ prepared, err, fee, native, post }), writes }
  }

  function simulate(request: EngineRequest & { op: 'simulate' }): SimulateReply {
    const prepared = prepare({ ...request, verify: request.verifySignatures })
    if (!isPrepared(prepared)) return { meta: emptyMeta(prepared), postAccounts: [], loadedAccountsDataSize: 0 }
    const { keys, pre } = prepared
    const result = svm.native.simulateVersionedTransaction(prepared.wire)
    const failed = 'err' in result ? result : undefined
    let err = failed ? toTransactionError(failed.err()) : null
    if (err === 'InvalidProgramForExecution' && namesMissingProgram(prepared)) err = 'ProgramAccountNotFound'

    const changed = new Map<string, EngineAccount>()
    if ('postAccounts' in result)
      for (const { address, account } of postAccountsOf(result)) changed.set(idOf(address), account)
    const post = keys.map((key, index) => {
      const account = changed.get(idOf(key)) ?? pre[index] ?? null
      return account && account.lamports === 0n ? null : account
    })
    return {
      meta: metaOf({ prepared, err, fee: prepared.fee, native: result.meta(), post }),
      postAccounts: post,
      loadedAccountsDataSize: loadedSize(prepared),
    }
  }

  function metaOf(run: {
    prepared: Prepared
    err: TransactionError | null
    fee: Fee
    native: TransactionMetadata
    post: readonly (EngineAccount | null)[]
  }): EngineMeta {
    const { prepared, native, post } = run
    const returned = native.returnData()
    return {
      err: run.err,
      fee: run.fee.total,
      priorityFee: run.fee.priority,
      preBalances: prepared.pre.map(lamportsOf),
      postBalances: post.map(lamportsOf),
      preTokenBalances: tokenBalances(prepared.pre),
      postTokenBalances: tokenBalances(post),
      innerInstructions: innerInstructionsOf(native),
      logMessages: native.logs(),
      loadedWritable: prepared.loaded.writable,
      loadedReadonly: prepared.loaded.readonly,
      computeUnitsConsumed: native.computeUnitsConsumed(),
      returnData: returned.data().length > 0 ? { programId: returned.programId(), data: returned.data() } : null,
    }
  }

  function tokenBalances(accounts: readonly (EngineAccount | null)[]) {
    return tokenBalancesOf({
      accounts,
      isTokenProgram: (owner) => tokenPrograms.some((program) => Buffer.compare(program, owner) === 0),
      readMint: svm.read,
    })
  }

  /** Takes the fee from a payer that litesvm left alone; false when the payer cannot pay it and stay rent exempt. */
  function chargeFee({ keys, pre, fee }: Prepared): boolean {
    const payer = pre[0]
    if (!payer) return false
    const rest = payer.lamports - fee.total
    if (rest < 0n || (rest > 0n && rest < minimumBalance(payer.data.length))) return false
    svm.write(keys[0] as Uint8Array, rest === 0n ? null : { ...payer, lamports: rest })
    return true
  }

  function advanceNonce({ keys, pre }: Prepared, index: number): void {
    const key = keys[index] as Uint8Array
    // The fee may have come out of the nonce account itself, so the current balance is kept.
    const before = pre[index] as EngineAccount
    svm.write(key, {
      ...advancedNonce(before, parentBlockhash),
      lamports: svm.native.getBalance(key) ?? before.lamports,
    })
  }

  function namesMissingProgram({ transaction, pre }: Prepared): boolean {
    return transaction.instructions.some(({ programIdIndex }) => !pre[programIdIndex])
  }

  function loadedSize({ transaction, pre }: Prepared): number {
    let bytes = transaction.addressTableLookups.length * LOOKUP_TABLE_BASE_BYTES
    for (const account of pre) {
      if (!account) continue
      bytes += ACCOUNT_BASE_BYTES + account.data.length
      if (!account.executable || Buffer.compare(account.owner, upgradeableLoader) !== 0) continue
      bytes += ACCOUNT_BASE_BYTES + (svm.read(account.data.subarray(4, 36))?.data.length ?? 0)
    }
    return bytes
  }

  function open(next: OpenSlot): void {
    slot = next.slot
    slotHashes = [...next.slotHashes, ...slotHashes].slice(0, SLOT_HASHES_MAX)
    blockhashes = [...next.blockhashes, ...blockhashes].slice(0, RECENT_BLOCKHASHES_MAX)
    svm.openSlot({ ...next, slotHashes, blockhashes })
    parentBlockhash = blockhashes[0] as Uint8Array
  }

  function load(request: EngineRequest & { op: 'load' }): LoadReply {
    const refused: { address: Uint8Array; reason: string }[] = []
    for (const [address, account] of unpackAccounts(request.accounts)) {
      if (same(svm.read(address), account)) continue
      try {
        fixedPrograms.delete(idOf(address))
        svm.write(address, account)
      } catch (error) {
        refused.push({ address, reason: String(error instanceof Error ? error.message : error) })
      }
    }
    return { refused }
  }

  return {
    handle(request) {
      switch (request.op) {
        case 'execute':
          return execute(request)
        case 'simulate':
          return simulate(request)
        case 'load':
          return load(request)
        case 'dump':
          return { accounts: svm.genesisAccounts() } satisfies DumpReply
        case 'open':
          open(request.slot)
          return null
      }
    },
  }
}

function isPrepared(value: Prepared | TransactionError): value is Prepared {
  return typeof value === 'object' && 'transaction' in value
}

function isReadonly({ transaction, loaded }: Prepared, index: number): boolean {
  const statics = transaction.staticKeys.length
  if (index >= statics) return index >= statics + loaded.writable.length
  const { numRequiredSignatures: signed, numReadonlySigned, numReadonlyUnsigned } = transaction.header
  return index < signed ? index >= signed - numReadonlySigned : index >= statics - numReadonlyUnsigned
}

function emptyMeta(err: TransactionError): EngineMeta {
  return {
    err,
    fee: 0n,
    priorityFee: 0n,
    preBalances: [],
    postBalances: [],
    preTokenBalances: [],
    postTokenBalances: [],
    innerInstructions: [],
    logMessages: [],
    loadedWritable: [],
    loadedReadonly: [],
    computeUnitsConsumed: 0n,
    returnData: null,
  }
}

function innerInstructionsOf(native: TransactionMetadata): EngineMeta['innerInstructions'] {
  return native.innerInstructions().flatMap((group, index) => {
    if (group.length === 0) return []
    const instructions = group.map((inner) => {
      const instruction = inner.instruction()
      return {
        programIdIndex: instruction.programIdIndex(),
        accounts: instruction.accounts(),
        data: instruction.data(),
        stackHeight: inner.stackHeight(),
      }
    })
    return [{ index, instructions }]
  })
}

function postAccountsOf(result: {
  postAccounts(): { address: Uint8Array; account(): Parameters<typeof fromSvm>[0] }[]
}) {
  return result.postAccounts().map((found) => ({ address: found.address, account: fromSvm(found.account()) }))
}

function lamportsOf(account: EngineAccount | null): bigint {
  return account?.lamports ?? 0n
}

function same(a: EngineAccount | null, b: EngineAccount | null): boolean {
  if (!a || !b) return a === b
  return (
    a.lamports === b.lamports &&
    a.executable === b.executable &&
    Buffer.compare(a.owner, b.owner) === 0 &&
    Buffer.compare(a.data, b.data) === 0
  )
}

function idOf(address: Uint8Array): string {
  return Buffer.from(address.buffer, address.byteOffset, 32).toString('latin1')
}
