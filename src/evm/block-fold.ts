import { ACCOUNT_KEY_WORDS, isStorageModified, isStorageTransient, STORAGE_KEY_WORDS } from './access-key.ts'
import { AccessRun, NOT_IN_BLOCK } from './access-run.ts'
import { BLOCK_LIMITS, BlockAccesses } from './block-accesses.ts'
import { type ConflictExtras, type ContentionData, foldContention } from './contention-fold.ts'
import { type EventBatch, nanosBetween, PAYLOAD_LOST, u64At } from './event-batch.ts'
import { EVENT, EVENT_CODES } from './event-type.ts'
import { FIXED_BYTES } from './exec-event.ts'
import { toHex } from './hex.ts'
import type { LifecycleChange } from './lifecycle-entry.ts'
import { LifecycleFold, type LifecycleOptions } from './lifecycle-fold.ts'
import { COUNTED, OpenBlock, type Shortcoming } from './open-block.ts'
import { TopAccessesFold, type TopAccessesOptions } from './top-accesses.ts'
import { TpsFold } from './tps-fold.ts'
import { MOMENT, type Moment, TxnTimes } from './txn-times.ts'

/** Why a block was given up before its end. */
export type DropReason = 'gap' | 'restart' | 'payload-lost' | 'malformed' | 'unterminated' | 'misplaced-event'

/** Where the results go, in the order in which they are to be told. */
export type BlockSink = {
  lifecycle(change: LifecycleChange): void
  tps(tps: number, blockNumber: number): void
  contention(data: ContentionData, extras: ConflictExtras): void
  /** The block gives no figures at all. */
  dropped(block: { number: number; reason: DropReason }): void
  /** The block counts for TPS, but has no contention figures. */
  incomplete(block: { number: number; reason: Shortcoming }): void
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

/**
 * Folds the events of a ring into TPS, contention, top accesses and lifecycle, in one pass. A block is folded only if it was seen from
 * its BLOCK_START on without a gap; consensus events stand on their own.
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
  readonly #accesses: BlockAccesses
  readonly #times = new TxnTimes()
  readonly #accountRun: AccessRun
  readonly #storageRun: AccessRun

  constructor(options: BlockFoldOptions, sink: BlockSink) {
    this.#sink = sink
    this.topAccesses = new TopAccessesFold(BLOCK_LIMITS.slots, options.topAccesses)
    this.lifecycle = new LifecycleFold(options.lifecycle)
    this.#accesses = new BlockAccesses(this.topAccesses.storage, options.seed)
    this.#accountRun = new AccessRun(ACCOUNT_KEY_WORDS, options.seed)
    this.#storageRun = new AccessRun(STORAGE_KEY_WORDS, options.seed)
  }

  /** Events were lost. Returns how many blocks that cost. */
  gap(): number {
    return this.#drop('gap')
  }

  /** Another ring takes over: windows and counters begin again, known blocks stay. */
  restart(): number {
    this.tps.reset()
    this.topAccesses.reset()
    this.lifecycle.forgetPositions()
    return this.#drop('restart')
  }

  /** All events of a batch, or those from `from` up to but not including `to`. */
  fold(batch: EventBatch, from = 0, to = batch.count): void {
    for (let at = from; at < to; at++) this.#foldEvent(batch, at)
    this.#countRuns()
    this.stats.events += to - from
  }

  #foldEvent(batch: EventBatch, at: number): void {
    const type = batch.type(at)
    if (type === 0 || type >= EVENT_CODES) {
      this.stats.unknownTypes += 1
      return
    }
    if (batch.payloadAt[at] === PAYLOAD_LOST) return this.#loseEvent(batch, at, 'payload-lost')
    if (batch.payloadSize(at) < (FIXED_BYTES[type] as number)) return this.#loseEvent(batch, at, 'malformed')
    switch (type) {
      case EVENT.STORAGE_ACCESS:
        return this.#storageAccess(batch, at)
      case EVENT.ACCOUNT_ACCESS:
        return this.#accountAccess(batch, at)
      case EVENT.BLOCK_START:
        return this.#blockStart(batch, at)
      case EVENT.BLOCK_QC:
        return this.#tell(this.lifecycle.voted({ id: idAt(batch, at), timeNs: batch.timeNs(at) }))
      case EVENT.BLOCK_FINALIZED: {
        const block = { id: idAt(batch, at), number: payloadU64(batch, at, 32), timeNs: batch.timeNs(at) }
        return this.#tell(this.lifecycle.finalized(block))
      }
      case EVENT.BLOCK_VERIFIED:
        return this.#tell(this.lifecycle.verified({ number: payloadU64(batch, at, 0), timeNs: batch.timeNs(at) }))
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
        if (this.#isInOpenBlock(batch, at)) this.#insideBlock(type, batch, at)
    }
  }

  #insideBlock(type: number, batch: EventBatch, at: number): void {
    const open = this.#open
    switch (type) {
      case EVENT.TXN_PERF_EVM_ENTER:
        return this.#mark(batch, at, MOMENT.perfEnter)
      case EVENT.TXN_PERF_EVM_EXIT:
        return this.#mark(batch, at, MOMENT.perfExit)
      case EVENT.TXN_END:
        return this.#mark(batch, at, MOMENT.end)
      case EVENT.TXN_HEADER_START:
        open.came(COUNTED.txns)
        open.announce(COUNTED.accessListEntries, payloadU32(batch, at, 344))
        open.announce(COUNTED.authListEntries, payloadU32(batch, at, 348))
        return this.#mark(batch, at, MOMENT.headerStart)
      case EVENT.TXN_ACCESS_LIST_ENTRY:
        return open.came(COUNTED.accessListEntries)
      case EVENT.TXN_AUTH_LIST_ENTRY:
        return open.came(COUNTED.authListEntries)
      case EVENT.TXN_EVM_OUTPUT:
        open.announce(COUNTED.logs, payloadU32(batch, at, 4))
        return open.announce(COUNTED.callFrames, payloadU32(batch, at, 16))
      case EVENT.TXN_LOG:
        return open.came(COUNTED.logs)
      case EVENT.TXN_CALL_FRAME:
        return open.came(COUNTED.callFrames)
      case EVENT.TXN_REJECT:
        this.stats.txnsRejected += 1
        return
      case EVENT.ACCOUNT_ACCESS_LIST_HEADER:
        return open.announce(COUNTED.accounts, payloadU32(batch, at, 0))
      case EVENT.BLOCK_PERF_EVM_ENTER:
        open.evmEnter = [batch.timeLow(at), batch.timeHigh(at)]
        return
      case EVENT.BLOCK_PERF_EVM_EXIT:
        open.evmExit = [batch.timeLow(at), batch.timeHigh(at)]
        return
      default:
    }
  }

  #blockStart(batch: EventBatch, at: number): void {
    this.#drop('unterminated')
    this.#countRuns()
    this.topAccesses.trim()
    const number = payloadU64(batch, at, 32)
    const txnCount = payloadU64(batch, at, 448)
    const seqno = batch.seqno(at)
    this.#open.begin({ seqno, number, txnCount, startLow: batch.timeLow(at), startHigh: batch.timeHigh(at) })
    this.#accesses.begin(txnCount)
    if (!this.#accesses.isTooLarge) this.#times.begin(txnCount)
    const block = { id: idAt(batch, at), number, blockSeqno: seqno, txnCount, timeNs: batch.timeNs(at) }
    this.#tell(this.lifecycle.proposed(block))
  }

  #accountAccess(batch: EventBatch, at: number): void {
    if (this.#accountRun.isFull) this.#countRuns()
    this.#accountRun.addAccount(batch.payloadWords, batch.payloadAt[at] as number)
    if (!this.#isInOpenBlock(batch, at)) return
    this.#open.came(COUNTED.accounts)
    this.#open.announce(COUNTED.storage, payloadU32(batch, at, 144))
    this.#open.announce(COUNTED.transient, payloadU32(batch, at, 148))
  }

  #storageAccess(batch: EventBatch, at: number): void {
    if (this.#storageRun.isFull) this.#countRuns()
    this.#storageRun.addStorage(batch.payloadWords, batch.payloadAt[at] as number, this.#markOf(batch, at))
  }

  /** What the open block has to know of a storage access. */
  #markOf(batch: EventBatch, at: number): number {
    if (!this.#isInOpenBlock(batch, at)) return NOT_IN_BLOCK
    const { payloadWords } = batch
    const payloadAt = batch.payloadAt[at] as number
    // Transient storage lives within one transaction and cannot conflict.
    const isTransient = isStorageTransient(payloadWords, payloadAt)
    this.#open.came(isTransient ? COUNTED.transient : COUNTED.storage)
    if (isTransient || this.#accesses.isTooLarge) return NOT_IN_BLOCK
    return batch.txnIndex(at) * 2 + (isStorageModified(payloadWords, payloadAt) ? 1 : 0)
  }

  /** Looks up the accesses gathered so far. Must be done before a block begins or ends, and before anybody asks for counts. */
  #countRuns(): void {
    const { account, storage } = this.topAccesses
    const accounts = this.#accountRun
    account.table.fetchAhead(accounts.hashes, accounts.count)
    for (let at = 0; at < accounts.count; at++) {
      account.add(accounts.keys, at * ACCOUNT_KEY_WORDS, accounts.hashes[at] as number)
    }
    accounts.count = 0
    const slots = this.#storageRun
    storage.table.fetchAhead(slots.hashes, slots.count)
    for (let at = 0; at < slots.count; at++) {
      const slot = storage.add(slots.keys, at * STORAGE_KEY_WORDS, slots.hashes[at] as number)
      const mark = slots.marks[at] as number
      if (mark !== NOT_IN_BLOCK) this.#accesses.add(slot, mark >> 1, (mark & 1) === 1)
    }
    slots.count = 0
  }

  #blockEnd(batch: EventBatch, at: number): void {
    this.#countRuns()
    const blockSeqno = batch.blockSeqno(at)
    const begin = batch.payloadAt[at] as number
    this.lifecycle.executed({
      blockSeqno,
      ethBlockHash: toHex(batch.payloadBytes, begin, begin + 32),
      gasUsed: payloadU64(batch, at, 352),
      timeNs: batch.timeNs(at),
    })
    const open = this.#open
    if (!this.#isInOpenBlock(batch, at)) return
    open.isOpen = false
    this.#sink.tps(this.tps.add(open.countOf(COUNTED.txns)), open.number)
    if (open.hasShortfall) open.shortcoming ??= 'shortfall'
    if (this.#accesses.isTooLarge) open.shortcoming ??= 'too-large'
    if (open.shortcoming !== undefined) {
      this.stats.blocksIncomplete += 1
      return this.#sink.incomplete({ number: open.number, reason: open.shortcoming })
    }
    this.stats.blocksFolded += 1
    const endLow = batch.timeLow(at)
    const endHigh = batch.timeHigh(at)
    const { evmEnter, evmExit } = open
    const { data, extras } = foldContention(this.#accesses, {
      block_number: open.number,
      block_wall_time_ns: nanosBetween(open.startLow, open.startHigh, endLow, endHigh),
      total_tx_time_ns: this.#times.totalNs(),
      evm_time_ns: evmEnter === undefined || evmExit === undefined ? null : nanosBetween(...evmEnter, ...evmExit),
      commit_time_ns: evmExit === undefined ? null : nanosBetween(...evmExit, endLow, endHigh),
    })
    this.#sink.contention(data, extras)
  }

  /** The block is invalid, or executing it failed: it has no end and no figures. */
  #blockRejected(batch: EventBatch, at: number): void {
    const blockSeqno = batch.blockSeqno(at)
    if (this.#open.isOpen && this.#open.seqno === blockSeqno) this.#open.isOpen = false
    this.#tell(this.lifecycle.rejected({ blockSeqno, timeNs: batch.timeNs(at) }))
  }

  /** The node could not record an event. It is known which type it was, so a transaction still counts as one. */
  #recordError(batch: EventBatch, at: number): void {
    this.stats.recordErrors += 1
    const isConsensusEvent = batch.blockSeqno(at) === 0
    if (isConsensusEvent || !this.#isInOpenBlock(batch, at)) return
    this.#open.shortcoming = 'record-error'
    if (payloadU32(batch, at, 0) >>> 16 === EVENT.TXN_HEADER_START) this.#open.came(COUNTED.txns)
  }

  #loseEvent(batch: EventBatch, at: number, reason: 'payload-lost' | 'malformed'): void {
    // Without its BLOCK_START a block cannot be folded; any block open before it has no end either.
    if (batch.type(at) === EVENT.BLOCK_START) this.#drop('unterminated')
    else if (this.#open.isOpen && batch.blockSeqno(at) === this.#open.seqno) this.#drop(reason)
  }

  #mark(batch: EventBatch, at: number, moment: Moment): void {
    if (!this.#accesses.isTooLarge) this.#times.mark(batch.txnIndex(at), moment, batch.timeLow(at), batch.timeHigh(at))
  }

  /** Blocks are never interleaved: an event that names another block, or a transaction the block does not have, spoils it. */
  #isInOpenBlock(batch: EventBatch, at: number): boolean {
    const open = this.#open
    if (!open.isOpen) return false
    if (batch.isOfBlock(at, open.seqnoLow, open.seqnoHigh) && batch.txnIndex(at) < open.txnCount) return true
    this.#drop('misplaced-event')
    return false
  }

  #drop(reason: DropReason): number {
    if (!this.#open.isOpen) return 0
    this.#open.isOpen = false
    this.stats.blocksDropped += 1
    this.#sink.dropped({ number: this.#open.number, reason })
    return 1
  }

  #tell(changes: readonly LifecycleChange[]): void {
    for (const change of changes) this.#sink.lifecycle(change)
  }
}

function idAt(batch: EventBatch, at: number): ReturnType<typeof toHex> {
  const begin = batch.payloadAt[at] as number
  return toHex(batch.payloadBytes, begin, begin + 32)
}

function payloadU32(batch: EventBatch, at: number, field: number): number {
  return batch.payloadWords[((batch.payloadAt[at] as number) + field) >>> 2] as number
}

function payloadU64(batch: EventBatch, at: number, field: number): number {
  return u64At(batch.payloadWords, ((batch.payloadAt[at] as number) + field) >>> 2)
}
