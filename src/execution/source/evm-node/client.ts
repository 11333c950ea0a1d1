import type { Clock } from '../../../core/clock.ts'
import type { Hex } from '../../../evm/hex.ts'
import { type JsonRpcClient, JsonRpcFailure } from '../../../platform/http/client/json-rpc.ts'
import type { AccountAccess } from './accesses.ts'
import { accessesOfPrestate, accessesOfStructLogs, type TraceTxn } from './trace.ts'
import { bytesOf, type Json, listOf, objectOf, quantityOf } from './values.ts'

/** How a node reports the accesses of a transaction. `none`: it does not trace. */
export type TraceForm = 'prestate' | 'struct-logs' | 'none'

/** A block with its receipts and accesses; `accesses` is undefined where the node does not trace. */
export type NodeBlock = { block: Json; txns: NodeTxn[] }
export type NodeTxn = { txn: Json; receipt: Json; accesses: AccountAccess[] | undefined }

export type BlockHead = { number: number; hash: Hex; parentHash: Hex }

/** Without the code of contracts, which is most of a trace and not used. */
const PRESTATE = { tracer: 'prestateTracer', tracerConfig: { disableCode: true } }
const DIFFERENCES = { tracer: 'prestateTracer', tracerConfig: { diffMode: true, disableCode: true } }
/** Without memory and storage at every step: the stack shows which slots are accessed. */
const STRUCT_LOGS = { disableMemory: true, disableStorage: true, enableMemory: false, enableReturnData: false }

/** A node is asked again for what it did not support after this time. */
const ASK_AGAIN_MS = 600_000

/** What a node may not support, each with a fallback. */
type Optional = 'block receipts' | 'block traces' | 'traces'

/** A block is requested so often before it is recorded without what fails. */
const ATTEMPTS = 4
/** After so many failures in a block its other transactions are not traced: each may last until its timeout. */
const FAILURES_PER_BLOCK_MAX = 4

/** Requests blocks and traces from a node, in the trace form that the node supports. */
export class EvmNodeClient {
  readonly #rpc: JsonRpcClient
  #form: TraceForm | undefined
  readonly #clock: Pick<Clock, 'monotonicMs'>
  #hasBlockReceipts = true
  #hasBlockTraces = true
  /** When the node was first found not to support something. */
  #lackingSinceMs: number | undefined
  /** Failures in a row that may pass. */
  readonly #failures = new Map<Optional, number>()

  constructor(rpc: JsonRpcClient, clock: Pick<Clock, 'monotonicMs'>) {
    this.#rpc = rpc
    this.#clock = clock
  }

  /** The supported trace form; undefined until the first transaction was traced. */
  get traceForm(): TraceForm | undefined {
    return this.#form
  }

  async chainId(): Promise<bigint> {
    return quantityOf(await this.#rpc.call('eth_chainId', []), 'the chain id')
  }

  async head(): Promise<number> {
    return Number(quantityOf(await this.#rpc.call('eth_blockNumber', []), 'the block number'))
  }

  /** Undefined for tags that the node does not know and for blocks that it does not have. */
  async headOf(block: number | 'safe' | 'finalized'): Promise<BlockHead | undefined> {
    try {
      const found = await this.#rpc.call('eth_getBlockByNumber', [blockParam(block), false])
      return found === null || found === undefined ? undefined : headOf(objectOf(found, 'a block'))
    } catch (error) {
      if (error instanceof JsonRpcFailure && typeof block === 'string') return undefined
      throw error
    }
  }

  /** The current block of a number. */
  async block(number: number): Promise<(NodeBlock & BlockHead) | undefined> {
    this.#supposeAllAgain()
    const response = await this.#rpc.call('eth_getBlockByNumber', [blockParam(number), true])
    if (response === null || response === undefined) return undefined
    const block = objectOf(response, 'a block')
    const head = headOf(block)
    const txns = listOf(block['transactions'], 'transactions').map((txn) => objectOf(txn, 'a transaction'))
    const receipts = await this.#receipts(head, txns)
    const beneficiary = bytesOf(block['miner'], 20, 'the miner')
    const traced = await this.#tracedBlock(head, txns.length)
    const done: NodeTxn[] = []
    let failures = 0
    for (const [at, txn] of txns.entries()) {
      const receipt = receipts[at] as Json
      const mayTrace = traced === undefined && failures < FAILURES_PER_BLOCK_MAX
      const accesses = mayTrace ? await this.#accesses(txn, receipt, beneficiary) : traced?.[at]
      if (accesses === undefined) failures += 1
      done.push({ txn, receipt, accesses })
    }
    // Not with each transaction: one that always fails would be tried for ever.
    if (traced === undefined && done.every(({ accesses }) => accesses !== undefined)) this.#failures.delete('traces')
    return { ...head, block, txns: done }
  }

  #lacks(): void {
    this.#lackingSinceMs ??= this.#clock.monotonicMs()
  }

  /** What a node does not support it may support later: another one may be behind the address, or it may have been updated. */
  #supposeAllAgain(): void {
    if (this.#lackingSinceMs === undefined || this.#clock.monotonicMs() - this.#lackingSinceMs < ASK_AGAIN_MS) return
    this.#lackingSinceMs = undefined
    this.#hasBlockReceipts = true
    this.#hasBlockTraces = true
    // A form that works is kept: by one error about a transaction the node would count as one that does not trace.
    if (this.#form === 'none') this.#form = undefined
  }

  /** Traces all transactions of a block in two calls, where the node supports the prestate tracer for blocks. */
  async #tracedBlock({ hash }: BlockHead, txns: number): Promise<(AccountAccess[] | undefined)[] | undefined> {
    if (txns === 0) return []
    if (!this.#hasBlockTraces) return undefined
    let accesses: (AccountAccess[] | undefined)[] = Array.from({ length: txns }, () => undefined)
    try {
      const touched = resultsOf(await this.#rpc.call('debug_traceBlockByHash', [hash, PRESTATE]))
      if (touched.length === txns && !touched.some(isStructLogs)) {
        const changed = resultsOf(await this.#rpc.call('debug_traceBlockByHash', [hash, DIFFERENCES]))
        const traced = accessesOfBlock(touched, changed)
        accesses = traced.accesses
        if (accesses.some((one) => one !== undefined)) this.#form = 'prestate'
        if (traced.failure !== undefined) throw traced.failure
        this.#failures.delete('block traces')
        return accesses
      }
    } catch (error) {
      // A node that is overloaded is not asked for every transaction instead.
      if (this.#classifyFailure(error, 'block traces') === 'given-up') return accesses
    }
    this.#hasBlockTraces = false
    this.#lacks()
    return undefined
  }

  async #receipts({ hash, number }: BlockHead, txns: readonly Json[]): Promise<Json[]> {
    if (txns.length === 0) return []
    const all = await this.#blockReceipts(number)
    const receipts = all ?? (await this.#receiptsOneByOne(txns))
    if (receipts.length !== txns.length || receipts.some(({ blockHash }) => blockHash !== hash)) {
      throw new Error(`the receipts of block ${number} belong to another block`)
    }
    return receipts
  }

  async #blockReceipts(number: number): Promise<Json[] | undefined> {
    if (!this.#hasBlockReceipts) return undefined
    try {
      const response = await this.#rpc.call('eth_getBlockReceipts', [blockParam(number)])
      const receipts = listOf(response, 'receipts').map((receipt) => objectOf(receipt, 'a receipt'))
      this.#failures.delete('block receipts')
      return receipts
    } catch (error) {
      if (this.#classifyFailure(error, 'block receipts') === 'unsupported') {
        this.#hasBlockReceipts = false
        this.#lacks()
      }
      return undefined
    }
  }

  async #receiptsOneByOne(txns: readonly Json[]): Promise<Json[]> {
    const receipts: Json[] = []
    for (const { hash } of txns)
      receipts.push(objectOf(await this.#rpc.call('eth_getTransactionReceipt', [hash]), 'a receipt'))
    return receipts
  }

  async #accesses(txn: Json, receipt: Json, beneficiary: Hex): Promise<AccountAccess[] | undefined> {
    const hash = bytesOf(txn['hash'], 32, 'a transaction hash')
    if (this.#form === 'none') return undefined
    try {
      return await this.#traceTxn(hash, txn, receipt, beneficiary)
    } catch (error) {
      if (this.#classifyFailure(error, 'traces') === 'unsupported' && this.#form === undefined) {
        this.#form = 'none'
        this.#lacks()
      }
      return undefined
    }
  }

  /** In the form that the node supports. One that refuses the tracer, or ignores it, has struct logs or does not trace. */
  async #traceTxn(hash: Hex, txn: Json, receipt: Json, beneficiary: Hex): Promise<AccountAccess[]> {
    if (this.#form !== 'struct-logs') {
      const touched = await this.#rpc.call('debug_traceTransaction', [hash, PRESTATE]).catch((error: unknown) => {
        if (this.#form !== undefined || !isUnsupported(error)) throw error
        return NO_TRACER
      })
      if (!isStructLogs(touched)) {
        const changed = await this.#rpc.call('debug_traceTransaction', [hash, DIFFERENCES])
        this.#form = 'prestate'
        return accessesOfPrestate(touched, changed)
      }
    }
    return await this.#structLogs(hash, txn, receipt, beneficiary)
  }

  async #structLogs(hash: Hex, txn: Json, receipt: Json, beneficiary: Hex): Promise<AccountAccess[]> {
    const trace = await this.#rpc.call('debug_traceTransaction', [hash, STRUCT_LOGS])
    this.#form = 'struct-logs'
    const traced: TraceTxn = {
      from: bytesOf(txn['from'], 20, 'the sender'),
      to: addressOrNull(txn['to']),
      created: addressOrNull(receipt['contractAddress']),
      beneficiary,
      isSuccess: quantityOf(receipt['status'] ?? '0x1', 'status') === 1n,
    }
    return accessesOfStructLogs(trace, traced)
  }

  /**
   * `unsupported`: the node will never do it. Throws an error that may pass, so that the block is requested again; `given-up` once it did not pass
   * in several attempts. Then the next blocks get one attempt each until one succeeds. A response that is too late, too large or malformed counts
   * too, as it may be so each time. While the node cannot be reached, requesting its head or the block fails before this.
   */
  #classifyFailure(error: unknown, what: Optional): 'unsupported' | 'given-up' {
    if (isUnsupported(error)) return 'unsupported'
    const failures = (this.#failures.get(what) ?? 0) + 1
    this.#failures.set(what, failures)
    if (failures < ATTEMPTS) throw error
    return 'given-up'
  }
}

/** In the place of a response: the node has no tracer, so struct logs are requested. */
const NO_TRACER = { structLogs: [] }

/** Method not found, invalid parameters (EIP-1474), method not supported. */
const UNSUPPORTED_CODES: readonly number[] = [-32_601, -32_602, -32_004]
/** Some nodes and providers use a general code. Two parts of the message, in this order; other things that are not found or available may be later. */
const UNSUPPORTED_MESSAGES: readonly (readonly [string, string])[] = [
  ['method', 'not found'],
  ['method', 'not supported'],
  ['method', 'not available'],
  ['method', 'does not exist'],
  ['method', 'disabled'],
  ['unsupported', 'method'],
  ['tracer', 'not found'],
  ['tracer', 'not supported'],
  ['tracer', 'not defined'],
  ['unsupported', 'tracer'],
  ['not available on', 'tier'],
  ['not available on', 'plan'],
]

function isUnsupported(error: unknown): boolean {
  if (!(error instanceof JsonRpcFailure)) return false
  const message = error.message.toLowerCase()
  return (
    UNSUPPORTED_CODES.includes(error.code) ||
    UNSUPPORTED_MESSAGES.some(([first, second]) => {
      const at = message.indexOf(first)
      return at !== -1 && message.includes(second, at)
    })
  )
}

const blockParam = (block: number | string): string => (typeof block === 'number' ? `0x${block.toString(16)}` : block)

const addressOrNull = (value: unknown): Hex | null =>
  value === null || value === undefined ? null : bytesOf(value, 20, 'an address')

/** A trace of a block is a list of results, one for each transaction. One that could not be traced has an error in the place of its result. */
function resultsOf(response: unknown): unknown[] {
  return listOf(response, 'the traces of a block').map((trace) => {
    const { result, error } = (trace ?? {}) as Json
    return result ?? new Error(`no trace of a transaction: ${String(error).slice(0, 300)}`)
  })
}

/** The accesses of each transaction, undefined where its trace failed, and the first failure. */
function accessesOfBlock(touched: readonly unknown[], changed: readonly unknown[]) {
  let failure: Error | undefined
  const accesses = touched.map((one, at) => {
    try {
      for (const result of [one, changed[at]]) if (result instanceof Error) throw result
      return accessesOfPrestate(one, changed[at])
    } catch (error) {
      failure ??= error as Error
      return undefined
    }
  })
  return { accesses, failure }
}

function isStructLogs(response: unknown): boolean {
  return typeof response === 'object' && response !== null && 'structLogs' in response
}

function headOf(block: Json): BlockHead {
  return {
    number: Number(quantityOf(block['number'], 'a block number')),
    hash: bytesOf(block['hash'], 32, 'a block hash'),
    parentHash: bytesOf(block['parentHash'], 32, 'a parent hash'),
  }
}
