import type { TransactionMetadata } from 'litesvm/dist/internal.js'
import { decodeBase58 } from '../../solana/crypto/base58.ts'
import { nonceAccountIndex } from '../../solana/transaction/durable-nonce.ts'
import { locksTooMany, parseTransaction, verifySignatures } from '../../solana/transaction/transaction.ts'
import { type ParsedTransaction, SANITIZE_LIMITS } from '../../solana/transaction/types.ts'
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
import { toTransactionError } from './errors.ts'
import { FEE_ONLY_ERRORS, type Fee, feeOf } from './fees.ts'
import { type LoadedAddresses, resolveLookups } from './lookup-tables.ts'
import { advancedNonce, isNonceUsable } from './nonce.ts'
import type {
  DumpReply,
  EngineAccount,
  EngineMeta,
  EngineReply,
  EngineRequest,
  ExecuteReply,
  ForkReply,
  LoadReply,
  OpenSlot,
  SimulateReply,
} from './protocol.ts'
import { ABSENT, createSvm, fromSvm } from './svm.ts'
import { minimumBalance, RECENT_BLOCKHASHES_MAX, SLOT_HASHES_MAX, type SlotHash } from './sysvars.ts'
import { tokenBalancesOf } from './token-balances.ts'

/** Bytes that every loaded account and every used lookup table adds to the loaded size (SIMD-0186). */
const ACCOUNT_BASE_BYTES = 64
const LOOKUP_TABLE_BASE_BYTES = 8248

const IMMUTABLE_PROGRAMS_MAX = 256

type Prepared = {
  readonly transaction: ParsedTransaction
  readonly loaded: LoadedAddresses
  readonly keys: readonly Uint8Array[]
  /** The transaction with the parent's blockhash: litesvm derives durable nonces from the message's blockhash. */
  readonly wire: Uint8Array
  readonly fee: Fee
  readonly pre: (EngineAccount | null)[]
  readonly nonceIndex: number | undefined
}

type Executed = {
  readonly reply: ExecuteReply
  /** The accounts that were changed, as they were before. */
  readonly undo: readonly [Uint8Array, EngineAccount | null][]
}

/** Executes and simulates transactions with litesvm, with the fee, nonce and lookup table rules of Agave. */
export class Engine {
  readonly #svm = createSvm()
  readonly #tokenPrograms = [TOKEN_PROGRAM, TOKEN_2022_PROGRAM].map((address) => decodeBase58(address))
  readonly #upgradeableLoader = decodeBase58(UPGRADEABLE_LOADER)
  readonly #immutableLoaders = new Set(
    [NATIVE_LOADER, BPF_LOADER, BPF_LOADER_DEPRECATED].map((loader) => idOf(decodeBase58(loader))),
  )
  readonly #immutablePrograms = new Map<string, EngineAccount>()
  #slot = 0
  #slotHashes: readonly SlotHash[] = []
  #blockhashes: readonly Uint8Array[] = []
  #parentBlockhash: Uint8Array = new Uint8Array(32)

  handle(request: EngineRequest): EngineReply {
    switch (request.op) {
      case 'execute':
        return this.#execute({ ...request, verify: true }).reply
      case 'simulate':
        return this.#simulate(request)
      case 'load':
        return this.#load(request)
      case 'fork':
        return this.#fork(request)
      case 'dump':
        return { accounts: this.#svm.genesisAccounts() } satisfies DumpReply
      case 'open':
        this.#open(request.slot)
        return null
    }
  }

  /**
   * Programs of these loaders never change and may be large: their data is copied out of litesvm once, and only the
   * balance is read again.
   */
  #readAccount(address: Uint8Array): EngineAccount | null {
    const id = idOf(address)
    const known = this.#immutablePrograms.get(id)
    if (known) return { ...known, lamports: this.#svm.native.getBalance(address) ?? 0n }
    const account = this.#svm.read(address)
    if (
      account?.executable &&
      this.#immutableLoaders.has(idOf(account.owner)) &&
      this.#immutablePrograms.size < IMMUTABLE_PROGRAMS_MAX
    )
      this.#immutablePrograms.set(id, account)
    return account
  }

  #prepare(request: { wire: Uint8Array; nonce: boolean; verify: boolean }): Prepared | TransactionError {
    const parsed = parseTransaction(request.wire, SANITIZE_LIMITS)
    if (!parsed.ok) return 'SanitizeFailure'
    const { transaction } = parsed
    if (request.verify && !verifySignatures(transaction)) return 'SignatureFailure'

    const loaded = resolveLookups(transaction.addressTableLookups, this.#svm.read, this.#slot)
    if (!loaded.ok) return loaded.err
    if (locksTooMany(transaction)) return 'TooManyAccountLocks'
    const { writable, readonly } = loaded
    const keys = [...transaction.staticKeys, ...writable, ...readonly]
    if (new Set(keys.map(idOf)).size < keys.length) return 'AccountLoadedTwice'
    const pre = keys.map((key) => this.#readAccount(key))

    const nonceIndex = request.nonce ? nonceAccountIndex(transaction) : undefined
    if (request.nonce) {
      if (nonceIndex === undefined) return 'BlockhashNotFound'
      if (!isNonceUsable(transaction, pre[nonceIndex] ?? null, this.#parentBlockhash)) return 'BlockhashNotFound'
    }

    const wire = new Uint8Array(request.wire)
    wire.set(this.#parentBlockhash, transaction.recentBlockhash.byteOffset - request.wire.byteOffset)
    return { transaction, loaded: { writable, readonly }, keys, wire, fee: feeOf(transaction), pre, nonceIndex }
  }

  #execute(request: { wire: Uint8Array; nonce: boolean; verify: boolean }): Executed {
    const prepared = this.#prepare(request)
    if (!isPrepared(prepared)) return { reply: { landed: false, err: prepared }, undo: [] }
    const { keys, pre, fee } = prepared

    const result = this.#svm.native.sendVersionedTransaction(prepared.wire)
    const failed = 'err' in result ? result : undefined
    let err = failed ? toTransactionError(failed.err()) : null
    if (failed && (this.#svm.native.getBalance(keys[0] as Uint8Array) ?? 0n) === lamportsOf(pre[0] ?? null)) {
      if (err === 'InvalidProgramForExecution' && namesMissingProgram(prepared)) err = 'ProgramAccountNotFound'
      if (!FEE_ONLY_ERRORS.has(err as TransactionError) || !this.#chargeFee(prepared)) {
        return { reply: { landed: false, err: err as TransactionError }, undo: [] }
      }
    }
    if (failed && prepared.nonceIndex !== undefined) this.#advanceNonce(prepared, prepared.nonceIndex)

    const post = keys.map((key, index) => (isReadonly(prepared, index) ? (pre[index] ?? null) : this.#svm.read(key)))
    const writes = post.flatMap((account, keyIndex) =>
      isSameAccount(pre[keyIndex] ?? null, account) ? [] : [{ keyIndex, account }],
    )
    const native = 'err' in result ? result.meta() : result
    const reply: ExecuteReply = { landed: true, meta: this.#metaOf({ prepared, err, fee, native, post }), writes }
    return { reply, undo: writes.map(({ keyIndex }) => [keys[keyIndex] as Uint8Array, pre[keyIndex] ?? null]) }
  }

  #fork(request: EngineRequest & { op: 'fork' }): ForkReply {
    const undo: [Uint8Array, EngineAccount | null][] = []
    for (const [address, account] of unpackAccounts(request.before)) {
      undo.push([address, this.#svm.read(address)])
      this.#svm.write(address, account)
    }
    const replies = request.wires.map((wire) => {
      const executed = this.#execute({ wire, nonce: false, verify: false })
      undo.push(...executed.undo)
      return executed.reply
    })
    for (const [address, account] of undo.reverse()) this.#svm.write(address, account)
    return { replies }
  }

  #simulate(request: EngineRequest & { op: 'simulate' }): SimulateReply {
    const prepared = this.#prepare({ ...request, verify: request.verifySignatures })
    if (!isPrepared(prepared)) return { meta: emptyMeta(prepared), postAccounts: [], loadedAccountsDataSize: 0 }
    const { keys, pre } = prepared
    const result = this.#svm.native.simulateVersionedTransaction(prepared.wire)
    const failed = 'err' in result ? result : undefined
    let err = failed ? toTransactionError(failed.err()) : null
    if (err === 'InvalidProgramForExecution' && namesMissingProgram(prepared)) err = 'ProgramAccountNotFound'

    const changed = new Map<string, EngineAccount>()
    if ('postAccounts' in result)
      for (const { address, account } of postAccountsOf(result)) changed.set(idOf(address), account)
    const postAccounts = keys.map((key, index) => changed.get(idOf(key)) ?? pre[index] ?? ABSENT)
    const post = postAccounts.map((account) => (account.lamports === 0n ? null : account))
    return {
      meta: this.#metaOf({ prepared, err, fee: prepared.fee, native: result.meta(), post }),
      postAccounts,
      loadedAccountsDataSize: this.#loadedSize(prepared),
    }
  }

  #metaOf(run: {
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
      preTokenBalances: this.#tokenBalances(prepared.keys, prepared.pre),
      postTokenBalances: this.#tokenBalances(prepared.keys, post),
      innerInstructions: innerInstructionsOf(native),
      logMessages: native.logs(),
      loadedWritable: prepared.loaded.writable,
      loadedReadonly: prepared.loaded.readonly,
      computeUnitsConsumed: native.computeUnitsConsumed(),
      returnData: returned.data().length > 0 ? { programId: returned.programId(), data: returned.data() } : null,
    }
  }

  #tokenBalances(keys: readonly Uint8Array[], accounts: readonly (EngineAccount | null)[]) {
    return tokenBalancesOf({
      keys,
      accounts,
      isTokenProgram: (address) => this.#tokenPrograms.some((program) => Buffer.compare(program, address) === 0),
      readMint: this.#svm.read,
    })
  }

  /** Charges the fee where litesvm did not; false when the payer cannot pay it and stay rent exempt. */
  #chargeFee({ keys, pre, fee }: Prepared): boolean {
    const payer = pre[0]
    if (!payer) return false
    const rest = payer.lamports - fee.total
    if (rest < 0n || (rest > 0n && rest < minimumBalance(payer.data.length))) return false
    this.#svm.write(keys[0] as Uint8Array, rest === 0n ? null : { ...payer, lamports: rest })
    return true
  }

  #advanceNonce({ keys, pre }: Prepared, index: number): void {
    const key = keys[index] as Uint8Array
    // The nonce account may have paid the fee, so its current balance is kept.
    const before = pre[index] as EngineAccount
    this.#svm.write(key, {
      ...advancedNonce(before, this.#parentBlockhash),
      lamports: this.#svm.native.getBalance(key) ?? before.lamports,
    })
  }

  #loadedSize({ transaction, pre }: Prepared): number {
    let bytes = transaction.addressTableLookups.length * LOOKUP_TABLE_BASE_BYTES
    for (const account of pre) {
      if (!account) continue
      bytes += ACCOUNT_BASE_BYTES + account.data.length
      if (!account.executable || Buffer.compare(account.owner, this.#upgradeableLoader) !== 0) continue
      bytes += ACCOUNT_BASE_BYTES + (this.#svm.read(account.data.subarray(4, 36))?.data.length ?? 0)
    }
    return bytes
  }

  #open(next: OpenSlot): void {
    this.#slot = next.slot
    this.#slotHashes = [...next.slotHashes, ...this.#slotHashes].slice(0, SLOT_HASHES_MAX)
    this.#blockhashes = [...next.blockhashes, ...this.#blockhashes].slice(0, RECENT_BLOCKHASHES_MAX)
    this.#svm.openSlot({ ...next, slotHashes: this.#slotHashes, blockhashes: this.#blockhashes })
    this.#parentBlockhash = this.#blockhashes[0] as Uint8Array
  }

  #load(request: EngineRequest & { op: 'load' }): LoadReply {
    const refused: { address: Uint8Array; reason: string }[] = []
    for (const [address, account] of unpackAccounts(request.accounts)) {
      if (isSameAccount(this.#svm.read(address), account)) continue
      try {
        this.#immutablePrograms.delete(idOf(address))
        this.#svm.write(address, account)
      } catch (error) {
        refused.push({ address, reason: String(error instanceof Error ? error.message : error) })
      }
    }
    return { refused }
  }
}

function isPrepared(value: Prepared | TransactionError): value is Prepared {
  return typeof value === 'object' && 'transaction' in value
}

function namesMissingProgram({ transaction, pre }: Prepared): boolean {
  return transaction.instructions.some(({ programIdIndex }) => !pre[programIdIndex])
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

function isSameAccount(a: EngineAccount | null, b: EngineAccount | null): boolean {
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
