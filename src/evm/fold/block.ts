import { FIXED_BYTES } from '../event/exec-event.ts'
import { PAYLOADS } from '../event/payloads.ts'
import { EVENT, EVENT_CODES, eventSet } from '../event/type.ts'
import { type Hex, toHex } from '../hex.ts'
import { type EventBatch, nanosBetween, PAYLOAD_LOST, u64At } from '../ring/event-batch.ts'
import { NOT_IN_BLOCK } from './access-run.ts'
import { AccessFold } from './accesses.ts'
import { type ConflictExtras, type ContentionData, type ContractAccesses, foldContention } from './contention.ts'
import { LatestProposals } from './latest-proposals.ts'
import { LifecycleFold, type LifecycleOptions } from './lifecycle.ts'
import type { LifecycleChange } from './lifecycle-entry.ts'
import { type IncompleteReason, OpenBlock } from './open-block.ts'
import type { TopAccessesFold, TopAccessesOptions } from './top-accesses.ts'
import { TpsFold } from './tps.ts'
import { MOMENT, type Moment, TxnTimes } from './txn-times.ts'

/** Why a block was dropped before its end. */
export type DropReason = 'gap' | 'restart' | 'payload-lost' | 'malformed' | 'unterminated' | 'misplaced-event'

/** Receives the results, in the order in which they are published. */
export type BlockSink = {
  lifecycle(change: LifecycleChange): void
  /** A block has ended. `tps` is undefined where its window is not whole. */
  tps(tps: number | undefined, blockNumber: number, id: Hex): void
  contention(data: ContentionData, extras: ConflictExtras, accesses: ContractAccesses): void
  /** The block has no figures at all. `blockSeqno` is the sequence number of its BLOCK_START. */
  dropped(block: { number: number; blockSeqno: number; reason: DropReason }): void
  /** The block counts for TPS, but has no contention figures. */
  incomplete(block: { number: number; reason: IncompleteReason }): void
}

export type BlockFoldOptions = {
  /** Secret of the hash tables; results do not depend on it. */
  seed: number
  topAccesses?: TopAccessesOptions
  lifecycle?: Partial<LifecycleOptions>
}

export type BlockFoldStats = {
  events: number
  unknownTypes: number
  recordErrors: number
  txnsRejected: number
  blocksDropped: number
  blocksIncomplete: number
  blocksFolded: number
}

/** Events that belong to a block; all others are handled without one. */
const PARTS_OF_BLOCK = eventSet([
  EVENT.BLOCK_PERF_EVM_ENTER,
  EVENT.BLOCK_PERF_EVM_EXIT,
  EVENT.TXN_HEADER_START,
  EVENT.TXN_ACCESS_LIST_ENTRY,
  EVENT.TXN_AUTH_LIST_ENTRY,
  EVENT.TXN_HEADER_END,
  EVENT.TXN_REJECT,
  EVENT.TXN_PERF_EVM_ENTER,
  EVENT.TXN_PERF_EVM_EXIT,
  EVENT.TXN_EVM_OUTPUT,
  EVENT.TXN_LOG,
  EVENT.TXN_CALL_FRAME,
  EVENT.TXN_END,
  EVENT.ACCOUNT_ACCESS_LIST_HEADER,
  EVENT.ACCOUNT_ACCESS,
  EVENT.STORAGE_ACCESS,
])

/** Offsets of the payload fields that the fold reads. */
const ACCESS_LIST_COUNT = PAYLOADS.TXN_HEADER_START.fields.access_list_count[1]
const AUTH_LIST_COUNT = PAYLOADS.TXN_HEADER_START.fields.auth_list_count[1]
const LOG_COUNT = PAYLOADS.TXN_EVM_OUTPUT.fields.log_count[1]
const CALL_FRAME_COUNT = PAYLOADS.TXN_EVM_OUTPUT.fields.call_frame_count[1]
const ACCOUNT_COUNT = PAYLOADS.ACCOUNT_ACCESS_LIST_HEADER.fields.entry_count[1]
const { BLOCK_START, BLOCK_QC, BLOCK_FINALIZED, BLOCK_VERIFIED, BLOCK_END, RECORD_ERROR } = PAYLOADS

/**
 * Folds the events of a ring into TPS, contention, top accesses and lifecycle, in one pass. A block is folded only if it was seen from
 * its BLOCK_START on without a gap; consensus events need no open block.
 */
export class BlockFold {
  readonly tps = new TpsFold()
  readonly topAccesses: TopAccessesFold
  readonly lifecycle: LifecycleFold
  readonly stats: BlockFoldStats = {
    events: 0,
    unknownTypes: 0,
    recordErrors: 0,
    txnsRejected: 0,
    blocksDropped: 0,
    blocksIncomplete: 0,
    blocksFolded: 0,
  }
  readonly #sink: BlockSink
  readonly #open = new OpenBlock()
  readonly #accesses: AccessFold
  readonly #times = new TxnTimes()
  readonly #latest = new LatestProposals()

  constructor(options: BlockFoldOptions, sink: BlockSink) {
    this.#sink = sink
    this.lifecycle = new LifecycleFold(options.lifecycle)
    this.#accesses = new AccessFold(options.seed, options.topAccesses)
    this.topAccesses = this.#accesses.top
  }

  /** Events were lost, whole blocks perhaps. Returns how many open blocks were dropped (0 or 1). */
  gap(): number {
    this.tps.reset()
    return this.#drop('gap')
  }

  /** A new ring replaces the old one: windows and counters start again, known blocks stay. */
  restart(): number {
    this.tps.reset()
    this.topAccesses.reset()
    this.lifecycle.forgetSeqnos()
    return this.#drop('restart')
  }

  /**
   * Folds the events of a batch from `from` up to but not including `to`. The loop is kept short: most events are only counted, or
   * collected to be looked up together.
   */
  fold(batch: EventBatch, from = 0, to = batch.count): void {
    const { slots, accounts } = this.#accesses
    for (let at = from; at < to; at++) {
      const type = batch.type(at)
      const payloadAt = batch.payloadAt[at] as number
      if (type === 0 || type >= EVENT_CODES) this.stats.unknownTypes += 1
      else if (payloadAt === PAYLOAD_LOST) this.#loseEvent(batch, at, 'payload-lost')
      else if (batch.payloadSize(at) < (FIXED_BYTES[type] as number)) this.#loseEvent(batch, at, 'malformed')
      else if (PARTS_OF_BLOCK[type] === 0) this.#outsideBlock(type, batch, at)
      else if (this.#admitToOpenBlock(batch, at)) {
        this.#open.received(type)
        if (type === EVENT.STORAGE_ACCESS) slots.add(payloadAt, batch.txnIndexLow(at))
        else if (type === EVENT.ACCOUNT_ACCESS) accounts.add(payloadAt, batch.txnIndexLow(at))
        else this.#insideBlock(type, batch, at)
      } else if (type === EVENT.STORAGE_ACCESS) slots.add(payloadAt, NOT_IN_BLOCK)
      else if (type === EVENT.ACCOUNT_ACCESS) accounts.add(payloadAt, NOT_IN_BLOCK)
      if (slots.isFull || accounts.isFull) this.#countAccesses(batch)
    }
    this.#countAccesses(batch)
    this.stats.events += to - from
  }

  #insideBlock(type: number, batch: EventBatch, at: number): void {
    const open = this.#open
    switch (type) {
      // Only counted; they are the most frequent.
      case EVENT.TXN_LOG:
      case EVENT.TXN_CALL_FRAME:
        return
      case EVENT.TXN_PERF_EVM_ENTER:
        return this.#mark(batch, at, MOMENT.perfEnter)
      case EVENT.TXN_PERF_EVM_EXIT:
        return this.#mark(batch, at, MOMENT.perfExit)
      case EVENT.TXN_END:
        return this.#mark(batch, at, MOMENT.end)
      case EVENT.TXN_HEADER_START:
        open.announce(EVENT.TXN_ACCESS_LIST_ENTRY, payloadU32(batch, at, ACCESS_LIST_COUNT))
        open.announce(EVENT.TXN_AUTH_LIST_ENTRY, payloadU32(batch, at, AUTH_LIST_COUNT))
        return this.#mark(batch, at, MOMENT.headerStart)
      case EVENT.TXN_EVM_OUTPUT:
        open.announce(EVENT.TXN_LOG, payloadU32(batch, at, LOG_COUNT))
        return open.announce(EVENT.TXN_CALL_FRAME, payloadU32(batch, at, CALL_FRAME_COUNT))
      case EVENT.ACCOUNT_ACCESS_LIST_HEADER:
        return open.announce(EVENT.ACCOUNT_ACCESS, payloadU32(batch, at, ACCOUNT_COUNT))
      case EVENT.TXN_REJECT:
        this.stats.txnsRejected += 1
        return
      case EVENT.BLOCK_PERF_EVM_ENTER:
        open.evmEnter = [batch.timeLow(at), batch.timeHigh(at)]
        return
      case EVENT.BLOCK_PERF_EVM_EXIT:
        open.evmExit = [batch.timeLow(at), batch.timeHigh(at)]
        return
      default:
    }
  }

  #outsideBlock(type: number, batch: EventBatch, at: number): void {
    switch (type) {
      case EVENT.BLOCK_START:
        return this.#blockStart(batch, at)
      case EVENT.BLOCK_QC:
        return this.#report(
          this.lifecycle.voted({ id: hashAt(batch, at, BLOCK_QC.fields.id[1]), timeNs: batch.timeNs(at) }),
        )
      case EVENT.BLOCK_FINALIZED: {
        const { id, block_number } = BLOCK_FINALIZED.fields
        const number = payloadU64(batch, at, block_number[1])
        return this.#report(
          this.lifecycle.finalized({ id: hashAt(batch, at, id[1]), number, timeNs: batch.timeNs(at) }),
        )
      }
      case EVENT.BLOCK_VERIFIED: {
        const number = payloadU64(batch, at, BLOCK_VERIFIED.fields.block_number[1])
        return this.#report(this.lifecycle.verified({ number, timeNs: batch.timeNs(at) }))
      }
      case EVENT.BLOCK_REJECT:
        return this.#blockRejected(batch, at)
      case EVENT.BLOCK_END:
        return this.#blockEnd(batch, at)
      case EVENT.RECORD_ERROR:
        return this.#recordError(batch, at)
      case EVENT.EVM_ERROR:
        if (batch.txnIndex(at) < 0) this.#blockRejected(batch, at)
        return
      default:
    }
  }

  #blockStart(batch: EventBatch, at: number): void {
    this.#drop('unterminated')
    this.#countAccesses(batch)
    this.topAccesses.trim()
    const number = payloadU64(batch, at, BLOCK_START.fields.block_number[1])
    const txnCount = payloadU64(batch, at, BLOCK_START.fields.txn_count[1])
    const seqno = batch.seqno(at)
    const id = hashAt(batch, at, BLOCK_START.fields.id[1])
    this.#open.begin({ seqno, number, id, txnCount, startLow: batch.timeLow(at), startHigh: batch.timeHigh(at) })
    this.#accesses.block.begin(txnCount)
    if (!this.#accesses.block.isTooLarge) this.#times.begin(txnCount)
    const block = { id, number, blockSeqno: seqno, txnCount, timeNs: batch.timeNs(at) }
    this.#report(this.lifecycle.proposed(block))
  }

  #countAccesses(batch: EventBatch): void {
    this.#accesses.count(batch, this.#open)
  }

  #blockEnd(batch: EventBatch, at: number): void {
    this.#countAccesses(batch)
    const blockSeqno = batch.blockSeqno(at)
    this.lifecycle.executed({
      blockSeqno,
      ethBlockHash: hashAt(batch, at, BLOCK_END.fields.eth_block_hash[1]),
      gasUsed: payloadU64(batch, at, BLOCK_END.fields.gas_used[1]),
      timeNs: batch.timeNs(at),
    })
    const open = this.#open
    if (!this.#admitToOpenBlock(batch, at)) return
    open.isOpen = false
    const replaced = this.#latest.executed(open.number, open.id)
    this.#sink.tps(this.tps.add(open.number, open.countOf(EVENT.TXN_HEADER_START)), open.number, open.id)
    if (open.hasShortfall) open.incompleteReason ??= 'shortfall'
    if (this.#accesses.block.isTooLarge) open.incompleteReason ??= 'too-large'
    if (open.incompleteReason !== undefined) {
      this.stats.blocksIncomplete += 1
      return this.#sink.incomplete({ number: open.number, reason: open.incompleteReason })
    }
    this.stats.blocksFolded += 1
    const endLow = batch.timeLow(at)
    const endHigh = batch.timeHigh(at)
    const { evmEnter, evmExit } = open
    const { data, extras, accesses } = foldContention(this.#accesses.block, {
      block_number: open.number,
      block_id: open.id,
      ...(replaced === undefined ? {} : { replaces_block_id: replaced }),
      block_wall_time_ns: nanosBetween(open.startLow, open.startHigh, endLow, endHigh),
      total_tx_time_ns: this.#times.totalNs(),
      evm_time_ns: evmEnter === undefined || evmExit === undefined ? null : nanosBetween(...evmEnter, ...evmExit),
      commit_time_ns: evmExit === undefined ? null : nanosBetween(...evmExit, endLow, endHigh),
    })
    this.#sink.contention(data, extras, accesses)
  }

  /** The block is invalid, or its execution failed: it has no BLOCK_END and no figures. */
  #blockRejected(batch: EventBatch, at: number): void {
    const blockSeqno = batch.blockSeqno(at)
    if (this.#open.isOpen && this.#open.seqno === blockSeqno) this.#open.isOpen = false
    this.#report(this.lifecycle.rejected({ blockSeqno, timeNs: batch.timeNs(at) }))
  }

  /** The node could not record an event. Its type is known, so a dropped transaction header still counts as a transaction. */
  #recordError(batch: EventBatch, at: number): void {
    this.stats.recordErrors += 1
    const isConsensusEvent = batch.blockSeqno(at) === 0
    if (isConsensusEvent || !this.#admitToOpenBlock(batch, at)) return
    this.#open.incompleteReason = 'record-error'
    const droppedType = payloadU16(batch, at, RECORD_ERROR.fields.dropped_event_type[1])
    if (droppedType === EVENT.TXN_HEADER_START) this.#open.received(EVENT.TXN_HEADER_START)
  }

  #loseEvent(batch: EventBatch, at: number, reason: 'payload-lost' | 'malformed'): void {
    // Without its BLOCK_START a block cannot be folded, and the block that was open before it has no BLOCK_END.
    if (batch.type(at) === EVENT.BLOCK_START) {
      this.#drop('unterminated')
      this.tps.reset()
    } else if (this.#open.isOpen && batch.blockSeqno(at) === this.#open.seqno) this.#drop(reason)
  }

  #mark(batch: EventBatch, at: number, moment: Moment): void {
    if (!this.#accesses.block.isTooLarge)
      this.#times.mark(batch.txnIndexLow(at), moment, batch.timeLow(at), batch.timeHigh(at))
  }

  /** Blocks are never interleaved: an event of another block, or of a transaction the block does not have, drops the open block. */
  #admitToOpenBlock(batch: EventBatch, at: number): boolean {
    const open = this.#open
    if (!open.isOpen) return false
    if (batch.isInBlock(at, open.seqnoLow, open.seqnoHigh, open.txnCount)) return true
    this.#drop('misplaced-event')
    return false
  }

  #drop(reason: DropReason): number {
    if (!this.#open.isOpen) return 0
    this.#open.isOpen = false
    this.tps.forget(this.#open.number)
    this.stats.blocksDropped += 1
    this.#sink.dropped({ number: this.#open.number, blockSeqno: this.#open.seqno, reason })
    return 1
  }

  #report(changes: readonly LifecycleChange[]): void {
    for (const change of changes) this.#sink.lifecycle(change)
  }
}

function hashAt(batch: EventBatch, at: number, offset: number): Hex {
  const from = (batch.payloadAt[at] as number) + offset
  return toHex(batch.payloadBytes, from, from + 32)
}

function payloadU16(batch: EventBatch, at: number, offset: number): number {
  const from = (batch.payloadAt[at] as number) + offset
  return (batch.payloadBytes[from] as number) | ((batch.payloadBytes[from + 1] as number) << 8)
}

function payloadU32(batch: EventBatch, at: number, offset: number): number {
  return batch.payloadWords[((batch.payloadAt[at] as number) + offset) >>> 2] as number
}

function payloadU64(batch: EventBatch, at: number, offset: number): number {
  return u64At(batch.payloadWords, ((batch.payloadAt[at] as number) + offset) >>> 2)
}
