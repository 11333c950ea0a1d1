import type { Work } from '../core/work.ts'
import { hasExactBytes } from './event/exec-event.ts'
import { decodePayload, type Layout, layout, type PayloadOf } from './event/payload-layout.ts'
import { type EventPayload, PAYLOADS } from './event/payloads.ts'
import { EVENT } from './event/type.ts'
import { type Hex, toHex } from './hex.ts'
import type { EventBatch } from './ring/event-batch.ts'

type TxnHeader = EventPayload<'TXN_HEADER_START'>

/** The events that the JSON of a transaction is made from. */
export type EthTransaction = {
  readonly index: number
  readonly header: TxnHeader
  readonly accessList: readonly EventPayload<'TXN_ACCESS_LIST_ENTRY'>[]
  readonly authList: readonly EventPayload<'TXN_AUTH_LIST_ENTRY'>[]
}

/** The events that the JSON of a receipt is made from, without its logs. */
export type EthReceipt = {
  readonly index: number
  readonly header: Omit<TxnHeader, 'data' | 'blob_versioned_hashes'>
  readonly output: EventPayload<'TXN_EVM_OUTPUT'>
  /** The ring has the gas of each transaction; receipts show the running sum in index order. */
  readonly cumulativeGas: bigint
  /** The ring numbers logs within their transaction; JSON-RPC numbers them within the block. */
  readonly firstLogIndex: number
}

/** First and last event of a block, which hold its header. */
export type EthBlockHead = {
  readonly start: EventPayload<'BLOCK_START'>
  readonly end: EventPayload<'BLOCK_END'>
}

type BlockTables = {
  /** Indexes of events, ordered by transaction; events of one transaction keep the order in which they were recorded. */
  readonly order: Uint32Array
  /** For each transaction the index in `order` of its first event, and the end of the last one. */
  readonly first: Uint32Array
  readonly cumulativeGas: BigUint64Array
  readonly firstLog: Uint32Array
}

const HEADER_WITHOUT_TAIL = layout(PAYLOADS.TXN_HEADER_START.bytes, PAYLOADS.TXN_HEADER_START.fields)
/** Events between two points at which the work can be interrupted. */
const STEP_EVENTS = 1024
const ACCESS_LIST_COUNT_OFFSET = PAYLOADS.TXN_HEADER_START.fields.access_list_count[1]
const AUTH_LIST_COUNT_OFFSET = PAYLOADS.TXN_HEADER_START.fields.auth_list_count[1]
const LOG_ADDRESS_OFFSET = PAYLOADS.TXN_LOG.fields.address[1]
const LOG_TOPIC_COUNT_OFFSET = PAYLOADS.TXN_LOG.fields.topic_count[1]
const LOG_TOPICS_OFFSET = PAYLOADS.TXN_LOG.bytes

/**
 * A recorded block, indexed by transaction. The events stay encoded and are decoded one by one, so that a call decodes only what it
 * returns.
 */
export class EthBlock implements EthBlockHead {
  readonly start: EthBlockHead['start']
  readonly end: EthBlockHead['end']
  readonly txnCount: number
  readonly #batch: EventBatch
  readonly #tables: BlockTables

  private constructor(head: EthBlockHead, batch: EventBatch, tables: BlockTables) {
    this.start = head.start
    this.end = head.end
    this.txnCount = tables.first.length - 1
    this.#batch = batch
    this.#tables = tables
  }

  /** Groups the events, which are recorded interleaved, by transaction. Undefined when the block is incomplete. */
  static *read(batch: EventBatch): Work<EthBlock | undefined> {
    const head = readHead(batch)
    const txnCount = Number(head?.start.txn_count ?? 0)
    if (head === undefined || txnCount > batch.count) return undefined
    const first = new Uint32Array(txnCount + 1)
    for (let at = 0; at < batch.count; at++) {
      if (at % STEP_EVENTS === 0) yield
      if (!hasExactBytes(batch, at)) return undefined
      const index = batch.txnIndex(at)
      if (index >= txnCount) return undefined
      if (index >= 0) first[index + 1] = (first[index + 1] as number) + 1
    }
    for (let index = 0; index < txnCount; index++)
      first[index + 1] = (first[index + 1] as number) + (first[index] as number)
    const next = first.slice()
    const order = new Uint32Array(first[txnCount] as number)
    for (let at = 0; at < batch.count; at++) {
      if (at % STEP_EVENTS === 0) yield
      const index = batch.txnIndex(at)
      if (index < 0) continue
      const position = next[index] as number
      order[position] = at
      next[index] = position + 1
    }
    const sums = yield* runningSums(batch, { order, first })
    return sums === undefined ? undefined : new EthBlock(head, batch, { order, first, ...sums })
  }

  transaction(index: number): EthTransaction {
    let header: TxnHeader | undefined
    const accessList: EventPayload<'TXN_ACCESS_LIST_ENTRY'>[] = []
    const authList: EventPayload<'TXN_AUTH_LIST_ENTRY'>[] = []
    for (const at of this.eventsOf(index)) {
      const type = this.#batch.type(at)
      if (type === EVENT.TXN_HEADER_START) header = this.#decode(PAYLOADS.TXN_HEADER_START, at)
      else if (type === EVENT.TXN_ACCESS_LIST_ENTRY) accessList.push(this.#decode(PAYLOADS.TXN_ACCESS_LIST_ENTRY, at))
      else if (type === EVENT.TXN_AUTH_LIST_ENTRY) authList.push(this.#decode(PAYLOADS.TXN_AUTH_LIST_ENTRY, at))
    }
    // `read` has verified that there is one.
    return { index, header: header as TxnHeader, accessList, authList }
  }

  /** Without the call data of the transaction, which may be large. */
  receipt(index: number): EthReceipt {
    let header: EthReceipt['header'] | undefined
    let output: EthReceipt['output'] | undefined
    for (const at of this.eventsOf(index)) {
      const type = this.#batch.type(at)
      if (type === EVENT.TXN_HEADER_START) header = this.#decode(HEADER_WITHOUT_TAIL, at)
      else if (type === EVENT.TXN_EVM_OUTPUT) output = this.#decode(PAYLOADS.TXN_EVM_OUTPUT, at)
    }
    return {
      index,
      header: header as EthReceipt['header'],
      output: output as EthReceipt['output'],
      cumulativeGas: this.#tables.cumulativeGas[index] as bigint,
      firstLogIndex: this.#tables.firstLog[index] as number,
    }
  }

  /** The recorded events, for code that reads them without decoding. */
  get batch(): EventBatch {
    return this.#batch
  }

  /** Indexes of the events of a transaction. */
  eventsOf(index: number): Uint32Array {
    const { order, first } = this.#tables
    return order.subarray(first[index], first[index + 1])
  }

  /** Recorded bytes of a transaction without its logs, without decoding it. */
  transactionBytes(index: number): number {
    let bytes = 0
    for (const at of this.eventsOf(index))
      if (this.#batch.type(at) !== EVENT.TXN_LOG) bytes += this.#batch.payloadSize(at)
    return bytes
  }

  /** Indexes of the logs of a transaction, in order. */
  *logsOf(index: number): Generator<number> {
    for (const at of this.eventsOf(index)) if (this.#batch.type(at) === EVENT.TXN_LOG) yield at
  }

  log(at: number): EventPayload<'TXN_LOG'> {
    return this.#decode(PAYLOADS.TXN_LOG, at)
  }

  /** Address and topics of a log, without its data. */
  logKeys(at: number): { address: Hex; topics: Hex[] } {
    const { payloadBytes } = this.#batch
    const from = this.#batch.payloadAt[at] as number
    const topics: Hex[] = []
    const count = payloadBytes[from + LOG_TOPIC_COUNT_OFFSET] as number
    for (let topic = 0; topic < count; topic++) {
      const topicAt = from + LOG_TOPICS_OFFSET + topic * 32
      topics.push(toHex(payloadBytes, topicAt, topicAt + 32))
    }
    const addressAt = from + LOG_ADDRESS_OFFSET
    return { address: toHex(payloadBytes, addressAt, addressAt + 20), topics }
  }

  #decode<L extends Layout>(shape: L, at: number): PayloadOf<L> {
    const bytes = this.#batch.payload(at) as Uint8Array
    const hasTail = Object.keys(shape.tail).length > 0
    return decodePayload(shape, hasTail ? bytes : bytes.subarray(0, shape.bytes)) as PayloadOf<L>
  }
}

/** A complete block begins with BLOCK_START and ends with BLOCK_END. */
function readHead(batch: EventBatch): EthBlockHead | undefined {
  const last = batch.count - 1
  if (last < 1 || batch.type(0) !== EVENT.BLOCK_START || batch.type(last) !== EVENT.BLOCK_END) return undefined
  const start = decodePayload(PAYLOADS.BLOCK_START, batch.payload(0) ?? NO_BYTES)
  const end = decodePayload(PAYLOADS.BLOCK_END, batch.payload(last) ?? NO_BYTES)
  return start === undefined || end === undefined ? undefined : { start, end }
}

const NO_BYTES = new Uint8Array()

/** Running sums of gas and logs; undefined where a transaction is incomplete. */
function* runningSums(
  batch: EventBatch,
  { order, first }: Pick<BlockTables, 'order' | 'first'>,
): Work<Pick<BlockTables, 'cumulativeGas' | 'firstLog'> | undefined> {
  const txnCount = first.length - 1
  const cumulativeGas = new BigUint64Array(txnCount)
  const firstLog = new Uint32Array(txnCount)
  let gas = 0n
  let logs = 0
  for (let index = 0; index < txnCount; index++) {
    yield
    let [headerAt, outputAt] = [-1, -1]
    let [accessEntries, authEntries, found] = [0, 0, 0]
    for (const at of order.subarray(first[index], first[index + 1])) {
      const type = batch.type(at)
      if (type === EVENT.TXN_HEADER_START) headerAt = at
      else if (type === EVENT.TXN_ACCESS_LIST_ENTRY) accessEntries += 1
      else if (type === EVENT.TXN_AUTH_LIST_ENTRY) authEntries += 1
      else if (type === EVENT.TXN_EVM_OUTPUT) outputAt = at
      else if (type === EVENT.TXN_LOG) found += 1
    }
    if (headerAt === -1 || outputAt === -1) return undefined
    if (u32At(batch, headerAt, ACCESS_LIST_COUNT_OFFSET) !== accessEntries) return undefined
    if (u32At(batch, headerAt, AUTH_LIST_COUNT_OFFSET) !== authEntries) return undefined
    const output = decodePayload(PAYLOADS.TXN_EVM_OUTPUT, batch.payload(outputAt) as Uint8Array)
    if (output === undefined || output.log_count !== found) return undefined
    gas += output.gas_used
    cumulativeGas[index] = gas
    firstLog[index] = logs
    logs += found
  }
  return { cumulativeGas, firstLog }
}

function u32At(batch: EventBatch, at: number, offset: number): number {
  return batch.payloadWords[((batch.payloadAt[at] as number) + offset) >>> 2] as number
}
