import type { History } from '../../contract/execution-history.ts'
import type { StatusRecord } from '../../contract/execution-routes.ts'
import type { Hello, Lifecycle, TopAccesses } from '../../contract/stream-events.ts'
import { formatAge, formatCount } from '../../ui/format.ts'
import type { ConnectionEvent, DataEvent, StreamEvent } from '../client/stream-event.ts'
import { createBlockLog, createContentionSeries } from './block-log.ts'
import { STALE_MS } from './freshness.ts'
import { type ConflictFigures, readHistory } from './history.ts'
import { closeText, createIncidentLog, gapText, type Incident, REJECTED_TEXT } from './incident-log.ts'
import { createTimeSeries } from './time-series.ts'
import { createTopBoard } from './top-board.ts'

export type PageFacts = {
  readonly locked: boolean
  readonly connection: 'connecting' | 'open' | 'waiting'
  readonly retryAtMs: number | undefined
  readonly replaying: boolean
  readonly seq: number | undefined
  readonly lastDataMs: number | undefined
  readonly hello: Hello | undefined
  readonly status: StatusRecord | undefined
  readonly gaps: number
  /** Frames received by resuming after a lost connection. */
  readonly replayed: number
}

/** `lastMs`: when its last frame came, or the connection was opened. */
type Replay = { frames: number; blocks: number; lastMs: number }

/** A replay ends with the first live frame, or after this long without any. */
const REPLAY_OVER_MS = 1500
const CONFLICTS_MAX = 300
/** Interruptions whose incidents are taken from the history. */
const AWAY_MAX = 20

/** The state of the page, folded from the stream. Views read it; events and the passing of time change it. */
export class PageModel {
  readonly tps = createTimeSeries('mean')
  /** Gas per second. */
  readonly gas = createTimeSeries('rate')
  /** Milliseconds between blocks. */
  readonly blockTime = createTimeSeries('mean')
  readonly blocks = createBlockLog()
  readonly contention = createContentionSeries()
  readonly tops = createTopBoard()
  readonly incidents = createIncidentLog()
  #conflicts = new Map<number, ConflictFigures>()
  #connection: PageFacts['connection'] = 'connecting'
  #retryAtMs: number | undefined
  #locked = false
  #hello: Hello | undefined
  #status: StatusRecord | undefined
  #seq: number | undefined
  #lastDataMs: number | undefined
  #isStale = false
  #gaps = 0
  #replayed = 0
  /** When the page was not connected: before it was opened, and interruptions. */
  #away: { readonly fromMs: number; readonly toMs: number }[] = []
  /** When the connection was lost; undefined while it is not. */
  #lostAtMs: number | undefined
  #replay: Replay | undefined

  apply(event: StreamEvent, nowMs: number): void {
    switch (event.kind) {
      case 'connection':
        return this.#connect(event, nowMs)
      case 'gap':
        this.#gaps += 1
        return this.#report(nowMs, 'gap', 'bad', gapText(event))
      case 'warning':
        return this.#report(nowMs, 'gap', 'warn', `Warning from the service: ${event.warning.type}.`)
      case 'refused':
        return this.#report(nowMs, 'connection', 'bad', `Refused: ${event.error.message}`)
      case 'other':
        return
      default:
        return this.#applyData(event, nowMs)
    }
  }

  /** Time has passed: late data becomes an incident. */
  tick(nowMs: number): void {
    if (this.#replay !== undefined && nowMs - this.#replay.lastMs > REPLAY_OVER_MS) this.#endReplay(nowMs)
    const lastDataMs = this.#lastDataMs
    if (this.#isStale || this.#connection !== 'open' || lastDataMs === undefined || nowMs - lastDataMs <= STALE_MS)
      return
    this.#isStale = true
    this.#report(nowMs, 'lag', 'warn', 'Late: no new data for more than 5 s.')
  }

  setStatus(status: StatusRecord | undefined, nowMs: number): void {
    const wasDegraded = this.#status?.status === 'degraded'
    this.#status = status
    if (status?.status !== 'degraded' || wasDegraded) return
    this.#report(
      nowMs,
      'lag',
      'bad',
      `Very late: the service has no data from the node for ${status.last_event_age_secs} s.`,
    )
  }

  /** Whether the service refuses this page because it has no token. */
  setLocked(locked: boolean): void {
    this.#locked = locked
  }

  /**
   * Adds what happened before the page was opened or while it was not connected. What the stream has sent stays, so that it may be loaded
   * again after each interruption. `requestedMs` and `nowMs`: when the history was requested and when it arrived.
   */
  addHistory(history: History, requestedMs: number, nowMs: number): void {
    const read = readHistory(history, (requestedMs + nowMs) / 2 - history.now_ms)
    this.tps.addHistory(read.tps)
    this.gas.addHistory(read.gas)
    this.blockTime.addHistory(read.blockTime)
    this.blocks.addHistory(read.blocks, read.contentions)
    this.contention.addHistory(read.figures)
    const conflicts = read.conflicts.map((figures) => [figures.block_number, figures] as const)
    this.#conflicts = new Map(
      [...new Map([...conflicts, ...this.#conflicts])].toSorted(([a], [b]) => a - b).slice(-CONFLICTS_MAX),
    )
    // While it is connected the page sees incidents itself.
    const away = this.#hello === undefined ? [{ fromMs: 0, toMs: nowMs }] : this.#away
    this.incidents.addHistory(
      read.incidents.filter(({ atMs }) => away.some(({ fromMs, toMs }) => atMs >= fromMs && atMs <= toMs)),
    )
  }

  facts(): PageFacts {
    return {
      locked: this.#locked,
      connection: this.#connection,
      retryAtMs: this.#retryAtMs,
      replaying: this.#replay !== undefined && this.#replay.frames > 0,
      seq: this.#seq,
      lastDataMs: this.#lastDataMs,
      hello: this.#hello,
      status: this.#status,
      gaps: this.#gaps,
      replayed: this.#replayed,
    }
  }

  conflicts(block: number): ConflictFigures | undefined {
    return this.#conflicts.get(block)
  }

  #connect(event: ConnectionEvent, nowMs: number): void {
    if (event.state === 'connecting') {
      this.#connection = 'connecting'
      return
    }
    if (event.state === 'open') {
      this.#connection = 'open'
      const fromMs = this.#hello === undefined ? 0 : (this.#lostAtMs ?? nowMs) - STALE_MS
      this.#away = [...this.#away, { fromMs, toMs: nowMs }].slice(-AWAY_MAX)
      this.#hello = event.hello
      if (event.resumed) this.#replay = { frames: 0, blocks: 0, lastMs: nowMs }
      else if (this.#lostAtMs !== undefined) this.#reportReconnect(nowMs, 'warn', 'continued from a snapshot')
      return
    }
    this.#connection = 'waiting'
    this.#retryAtMs = event.retryInMs === undefined ? undefined : nowMs + event.retryInMs
    if (this.#lostAtMs !== undefined) return
    this.#lostAtMs = nowMs
    this.#report(nowMs, 'connection', 'warn', `Connection lost (${closeText(event)}).`)
  }

  #endReplay(nowMs: number): void {
    if (this.#replay === undefined) return
    const { frames, blocks } = this.#replay
    this.#replayed += frames
    this.#replay = undefined
    if (this.#lostAtMs === undefined) return
    const result =
      frames === 0
        ? 'nothing was missed'
        : `${formatCount(frames)} messages of ${formatCount(blocks)} blocks came late, none is missing`
    this.#reportReconnect(nowMs, 'good', result)
  }

  #applyData(event: DataEvent, nowMs: number): void {
    if (event.origin === 'live') this.#endReplay(nowMs)
    else if (event.origin === 'replay' && this.#replay !== undefined) {
      this.#replay.frames += 1
      this.#replay.lastMs = nowMs
    }
    this.#seq = event.seq
    // A snapshot has earlier data and does not show that new data arrives.
    if (event.origin !== 'snapshot' || this.#lastDataMs === undefined) this.#markFresh(nowMs)
    switch (event.kind) {
      case 'TPS':
        // Frames have no time of their own: the charts take the time away from the history.
        if (event.origin === 'live') this.tps.add(event.data, nowMs)
        return
      case 'ContentionData':
        if (this.#replay !== undefined && event.data.replaces_block_id === undefined) this.#replay.blocks += 1
        this.blocks.addContention(event.data)
        this.contention.add(event.data)
        return
      case 'ConflictData':
        return this.#addConflicts(event.data)
      case 'TopAccesses':
        this.tops.add(event.data as TopAccesses, nowMs)
        return
      case 'Lifecycle':
        this.#addLifecycle(event.data, event.origin === 'live' ? nowMs : undefined)
        if (event.data.to_stage === 'Rejected' && event.origin !== 'snapshot')
          this.#report(nowMs, 'rejection', 'note', REJECTED_TEXT, event.data.block_number)
        return
      case 'Events':
    }
  }

  #addLifecycle(change: Lifecycle, arrivedMs: number | undefined): void {
    const known = this.blocks.find(change.block_number)
    const isNew = known.length === 0
    // A block that is seen late was executed before: its gas is in the history.
    const isExecutedNow = isNew ? change.to_stage === 'Proposed' : known.every(({ gasUsed }) => gasUsed === null)
    this.blocks.addLifecycle(change, arrivedMs)
    if (arrivedMs === undefined) return
    if (isExecutedNow && change.gas_used !== null) this.gas.add(change.gas_used, arrivedMs)
    const timeMs = this.blocks.timeMs(change.block_number)
    const beforeMs = this.blocks.timeMs(change.block_number - 1)
    if (isNew && timeMs !== undefined && beforeMs !== undefined && timeMs > beforeMs)
      this.blockTime.add(timeMs - beforeMs, arrivedMs)
  }

  #addConflicts(figures: ConflictFigures): void {
    this.#conflicts.set(figures.block_number, figures)
    for (const oldest of this.#conflicts.keys()) {
      if (this.#conflicts.size <= CONFLICTS_MAX) break
      this.#conflicts.delete(oldest)
    }
  }

  #markFresh(nowMs: number): void {
    if (this.#isStale && this.#lastDataMs !== undefined)
      this.#report(nowMs, 'lag', 'good', `Data again after ${formatAge(nowMs - this.#lastDataMs)}.`)
    this.#isStale = false
    this.#lastDataMs = nowMs
  }

  #reportReconnect(nowMs: number, severity: 'good' | 'warn', result: string): void {
    const awayMs = nowMs - (this.#lostAtMs ?? nowMs)
    this.#lostAtMs = undefined
    this.#report(nowMs, 'connection', severity, `Connected again after ${formatAge(awayMs)}: ${result}.`)
  }

  #report(atMs: number, kind: Incident['kind'], severity: Incident['severity'], text: string, block?: number): void {
    this.incidents.add({ atMs, kind, severity, text, ...(block === undefined ? {} : { block }) })
  }
}
