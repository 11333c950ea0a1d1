import type { HistoryIncident } from '../../contract/execution-history.ts'
import type { LifecycleRecord } from '../../contract/execution-routes.ts'
import type { Hex, Lifecycle, Stage, TopAccesses } from '../../contract/stream-events.ts'
import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'
import type { HeldBlock } from '../rpc/held-block.ts'
import { DEGRADED_MS } from '../source/liveness.ts'
import { HistoryFiles, type HistoryFilesOptions } from './history-files.ts'
import { Incidents } from './incidents.ts'
import { PrefixIndex } from './prefix-index.ts'
import { addressesOf, type Proposal, type ProposalFigures, Proposals } from './proposals.ts'
import { SECONDS_MAX, SecondSeries } from './second-series.ts'

export type HistoryOptions = {
  /** Proposals kept, in memory and on disk. */
  readonly blocksMax: number
  /** Undefined: nothing is kept on disk. */
  readonly files: HistoryFilesOptions | undefined
}

export type HistoryDeps = {
  readonly clock: Clock
  readonly log: Logger
  /** Time since the last event of the source. */
  readonly eventAgeMs: () => number
}

/** How often silence of the source is checked and the disk is written to: a killed process loses no more than this. */
const TICK_MS = 1000
/** Proposals whose figures are encoded in one write: a few milliseconds of the event loop. */
const FIGURES_PER_WRITE = 64
/** A proposal this far below the oldest one belongs to another chain: reorganisations do not go back so far. */
const REORG_MAX = 256

/**
 * What happened in the last hour: sums of each second, the last proposals with their figures, and incidents. Bounded in memory, written to disk
 * and restored from there. It outlives the service.
 */
export class History implements AsyncDisposable {
  readonly seconds = new SecondSeries()
  readonly incidents = new Incidents()
  readonly proposals: Proposals
  /** Contracts named by the figures of the proposals. */
  readonly contracts = new PrefixIndex()
  /** The newest report. */
  topAccesses: { readonly data: TopAccesses; readonly accountsSeen: number } | undefined
  readonly #deps: HistoryDeps
  readonly #openedMs: number
  #files: HistoryFiles | undefined
  /** Proposals that are on disk as they were before, or not at all. */
  #changed = new Set<Hex>()
  /** Proposals whose figures are not on disk. */
  #newFigures = new Set<Hex>()
  #chainId: number | null = null
  /** When the newest proposal was proposed. */
  #newestMs = Number.NEGATIVE_INFINITY
  #ticker: Disposable | undefined

  /** A damaged or unreadable history is logged and starts again; it never stops the service. */
  static async open(options: HistoryOptions, deps: HistoryDeps): Promise<History> {
    const history = new History(options, deps)
    if (options.files !== undefined) await history.#restore(options.files)
    const ticker = deps.clock.setRepeating(TICK_MS, () => history.tick())
    ticker.unref?.()
    history.#ticker = ticker
    return history
  }

  private constructor({ blocksMax }: HistoryOptions, deps: HistoryDeps) {
    this.#deps = deps
    this.#openedMs = deps.clock.nowMs()
    this.proposals = new Proposals({ proposalsMax: blocksMax }, { onFigures: (...change) => this.#index(...change) })
  }

  get bytes(): number {
    return this.#files?.bytes ?? 0
  }

  /** Writes to disk that failed. */
  get failures(): number {
    return this.#files?.failures ?? 0
  }

  /** A block entered a stage. `recordedMs`: when its event was recorded. */
  lifecycle(change: Lifecycle, record: LifecycleRecord, recordedMs: number | undefined): void {
    const { block_hash: id, block_number: number, to_stage } = change
    const timeMs = this.#timeOf(recordedMs)
    const isReadAgain = recordedMs !== undefined && recordedMs <= this.#newestMs && number <= this.proposals.floor
    if (to_stage === 'Proposed' && !isReadAgain && this.#isOfAnotherChain(number, id)) this.#forget(number)
    const before = this.proposals.byId(id)?.record
    const proposal = this.proposals.obtain(id, number, timeMs)
    if (proposal === undefined) return
    if (to_stage === 'Proposed' && before === undefined) {
      proposal.timeMs = timeMs
      this.#newestMs = Math.max(this.#newestMs, timeMs)
      const parent = this.proposals.byNumber(number - 1)
      const blockTimeMs = parent === undefined ? -1 : timeMs - parent.timeMs
      if (blockTimeMs >= 0) proposal.blockTimeMs = blockTimeMs
    }
    this.lifecycleRecord(record)
    if (to_stage === 'Rejected' && before?.current_stage !== 'Rejected')
      this.#happened({ from_ms: timeMs, to_ms: timeMs, kind: 'rejection', block_number: number })
  }

  /** A block has a newer record. */
  lifecycleRecord(record: LifecycleRecord): void {
    const { block_hash: id, block_number: number } = record
    const proposal = this.proposals.byId(id)
    if (proposal === undefined) return
    if (proposal.record !== undefined && isBefore(record, proposal.record)) return
    proposal.record = record
    this.#changed.add(id)
    if (record.gas_used === null || proposal.endedMs === undefined) return
    // A number counts once, with the proposal that was executed first.
    if (this.proposals.ofNumber(number).some(({ isCounted }) => isCounted)) return
    proposal.isCounted = true
    const { blockTimeMs } = proposal
    this.seconds.addBlock(proposal.endedMs, { txns: record.txn_count, gasUsed: record.gas_used, blockTimeMs })
  }

  /** A block was executed to its end. */
  blockEnded(block: { id: Hex; number: number; tps: number | null; recordedMs: number | undefined }): void {
    const { id, number, tps } = block
    const endedMs = this.#timeOf(block.recordedMs)
    const proposal = this.proposals.obtain(id, number, endedMs)
    // Blocks that were read before are read again after a restart.
    if (proposal === undefined || proposal.endedMs !== undefined) return
    proposal.endedMs = endedMs
    proposal.tps = tps ?? undefined
    if (tps !== null) this.seconds.addTps(endedMs, tps)
    this.#changed.add(id)
  }

  blockFolded(figures: ProposalFigures): void {
    const { block_id: id, block_number: number } = figures.contention
    const proposal = this.proposals.obtain(id, number, this.#deps.clock.nowMs())
    if (proposal === undefined) return
    this.proposals.setFigures(proposal, figures)
    this.#newFigures.add(id)
  }

  /** The content of a block. It may come before the block is proposed. */
  block({ id, number, gasLimit }: HeldBlock, chainId: number | null): void {
    if (this.#chainId !== null && chainId !== null && chainId !== this.#chainId) this.#forget(number)
    this.#chainId = chainId ?? this.#chainId
    if (gasLimit === undefined) return
    const proposal = this.proposals.obtain(id, number, this.#deps.clock.nowMs())
    if (proposal === undefined) return
    proposal.gasLimit = gasLimit
    this.#changed.add(id)
  }

  ringGap(eventsLost: number, blocksDropped: number): void {
    const atMs = this.#deps.clock.nowMs()
    const lost = { events_lost: eventsLost, blocks_dropped: blocksDropped }
    this.#happened({ from_ms: atMs, to_ms: atMs, kind: 'ring_gap', ...lost })
  }

  ringRestart(): void {
    const atMs = this.#deps.clock.nowMs()
    this.#happened({ from_ms: atMs, to_ms: atMs, kind: 'ring_restart' })
  }

  framesDropped(frames: number): void {
    this.incidents.framesDropped(frames, this.#deps.clock.nowMs())
  }

  /** Once a second: has the source become silent, and what is there to write? */
  tick(): void {
    const nowMs = this.#deps.clock.nowMs()
    const ageMs = this.#deps.eventAgeMs()
    const lastMs = Math.max(this.#openedMs, nowMs - ageMs)
    if (nowMs - lastMs > DEGRADED_MS) this.incidents.begin({ kind: 'source_silent' }, lastMs)
    else this.incidents.end('source_silent', lastMs)
    this.#write(nowMs)
  }

  /** Resolves when everything is written, or could not be. */
  async flushed(): Promise<void> {
    const { failures } = this
    do {
      await this.#files?.flushed()
      this.#write(this.#deps.clock.nowMs(), true)
      await this.#files?.flushed()
    } while (this.#changed.size + this.#newFigures.size > 0 && this.#files !== undefined && this.failures === failures)
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#ticker?.[Symbol.dispose]()
    await this.flushed()
    await this.#files?.[Symbol.asyncDispose]()
  }

  #happened(incident: HistoryIncident): void {
    this.incidents.add(incident)
  }

  /** The time of an event: as it was recorded, if that is in the hour that is kept; else now, as for a ring that is played again. */
  #timeOf(recordedMs: number | undefined): number {
    const nowMs = this.#deps.clock.nowMs()
    if (recordedMs === undefined || recordedMs > nowMs || nowMs - recordedMs >= SECONDS_MAX * 1000) return nowMs
    return Math.round(recordedMs)
  }

  #isOfAnotherChain(number: number, id: Hex): boolean {
    const { first } = this.proposals
    // The content of a block may be there before it is proposed.
    if (first === undefined || this.proposals.byId(id)?.record !== undefined) return false
    const finalized = this.proposals.finalized(number)
    return number < first.number - REORG_MAX || (finalized !== undefined && finalized.id !== id)
  }

  #forget(number: number): void {
    this.#deps.log.info({ number }, 'the source has another chain: the history of its blocks starts again')
    this.proposals.clear()
    this.seconds.clear()
    this.#changed.clear()
    this.#newFigures.clear()
    this.incidents.forgetBlocks()
    this.topAccesses = undefined
    this.#newestMs = Number.NEGATIVE_INFINITY
    this.#files?.removeAll()
  }

  #index(figures: ProposalFigures, isThere: boolean): void {
    for (const address of addressesOf(figures)) {
      if (isThere) this.contracts.add(address)
      else this.contracts.remove(address)
    }
  }

  #write(nowMs: number, isForced = false): void {
    const changed = this.#kept(this.#changed)
    const newFigures = this.#kept(this.#newFigures)
    this.#changed = idsOf(changed)
    this.#newFigures = idsOf(newFigures)
    const files = this.#files
    if (files === undefined || !(isForced || files.mayWrite)) return
    const seconds = this.seconds.takeChanged()
    const incidents = this.incidents.takeChanged()
    const withFigures = newFigures.slice(0, FIGURES_PER_WRITE)
    // All that changed, together with the seconds that count them: one without the other would be counted again after a restart.
    const proposals = [...new Set([...changed, ...withFigures])]
    this.#changed.clear()
    for (const { id } of withFigures) this.#newFigures.delete(id)
    const onFailure = (): void => {
      this.seconds.markChanged(seconds)
      this.incidents.markChanged(incidents)
      for (const { id } of proposals) this.#changed.add(id)
      for (const { id } of withFigures) this.#newFigures.add(id)
    }
    files.write({ nowMs, chainId: this.#chainId, seconds, incidents, proposals, withFigures }, { onFailure, isForced })
  }

  /** Those that are no longer kept are not written. */
  #kept(ids: ReadonlySet<Hex>): Proposal[] {
    return [...ids].flatMap((id) => this.proposals.byId(id) ?? [])
  }

  async #restore(options: HistoryFilesOptions): Promise<void> {
    const { log, clock } = this.#deps
    try {
      const restored = await HistoryFiles.open(options, { log, clock, target: this })
      this.#files = restored.files
      this.#chainId = restored.chainId
      // Older blocks were counted: a ring that is read from its oldest block has them again.
      const { first } = this.proposals
      if (first !== undefined) this.proposals.raiseFloor(first.number)
      for (const { timeMs } of this.proposals.values()) this.#newestMs = Math.max(this.#newestMs, timeMs)
      const { lastMs } = restored
      if (lastMs === undefined || lastMs > this.#openedMs) return
      this.incidents.end('source_silent', lastMs)
      this.#happened({ from_ms: lastMs, to_ms: this.#openedMs, kind: 'service_stopped' })
    } catch (err) {
      log.warn({ err, folder: options.folder }, 'the history on disk cannot be opened; it is kept in memory only')
    }
  }
}

function idsOf(proposals: readonly Proposal[]): Set<Hex> {
  return new Set(proposals.map(({ id }) => id))
}

/** A rejected block may be executed again; one that is final stays so. */
const STAGES: readonly Stage[] = ['Proposed', 'Voted', 'Rejected', 'Finalized', 'Verified']

/** After a restart blocks are read again, and begin at their first stage. */
function isBefore(record: LifecycleRecord, known: LifecycleRecord): boolean {
  const [stage, knownStage] = [STAGES.indexOf(record.current_stage), STAGES.indexOf(known.current_stage)]
  return stage < knownStage || (record.gas_used === null && known.gas_used !== null)
}
