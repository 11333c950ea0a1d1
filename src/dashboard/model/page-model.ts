import type { RecentBlocks, StatusRecord } from '../../contract/execution-routes.ts'
import type { ConflictData, Hello, TopAccesses } from '../../contract/stream-events.ts'
import type { ConnectionEvent, DataEvent, StreamEvent } from '../client/stream-event.ts'
import { createBlockLog, createContentionSeries } from './block-log.ts'
import { formatAge, formatCount } from './format.ts'
import { STALE_MS } from './freshness.ts'
import { closeText, createIncidentLog, gapText, type Incident } from './incident-log.ts'
import { createTopBoard } from './top-board.ts'
import { createTpsSeries } from './tps-series.ts'

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

type Replay = { frames: number; blocks: number; readonly tps: number[]; readonly openedMs: number }

/** A replay ends with the first live frame, or after this long without one. */
const REPLAY_OVER_MS = 1500
const CONFLICTS_MAX = 300

/** The state of the page, folded from the stream. Views read it; events and the passing of time change it. */
export class PageModel {
  readonly tps = createTpsSeries()
  readonly blocks = createBlockLog()
  readonly contention = createContentionSeries()
  readonly tops = createTopBoard()
  readonly incidents = createIncidentLog()
  readonly #conflicts = new Map<number, ConflictData>()
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
    if (this.#replay !== undefined && nowMs - this.#replay.openedMs > REPLAY_OVER_MS) this.#endReplay(nowMs)
    const lastDataMs = this.#lastDataMs
    if (this.#isStale || this.#connection !== 'open' || lastDataMs === undefined || nowMs - lastDataMs <= STALE_MS)
      return
    this.#isStale = true
    this.#report(nowMs, 'lag', 'warn', 'No frame for more than 5 s.')
  }

  setStatus(status: StatusRecord | undefined, nowMs: number): void {
    const wasDegraded = this.#status?.status === 'degraded'
    this.#status = status
    if (status?.status !== 'degraded' || wasDegraded) return
    this.#report(nowMs, 'lag', 'bad', `The service is degraded: no event for ${status.last_event_age_secs} s.`)
  }

  /** Whether the service refuses this page because it has no token. */
  setLocked(locked: boolean): void {
    this.#locked = locked
  }

  /** Adds figures of blocks before the page was opened. `intervalMs`: time between two blocks, where known. */
  addEarlier(earlier: RecentBlocks, openedMs: number, intervalMs: number | undefined): void {
    this.contention.addEarlier(earlier.blocks.flatMap((block) => (block.contention === null ? [] : [block.contention])))
    if (intervalMs === undefined) return
    const values = earlier.blocks.map((block) => block.tps)
    this.tps.addEarlier(values, openedMs, intervalMs)
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

  conflicts(block: number): ConflictData | undefined {
    return this.#conflicts.get(block)
  }

  #connect(event: ConnectionEvent, nowMs: number): void {
    if (event.state === 'connecting') {
      this.#connection = 'connecting'
      return
    }
    if (event.state === 'open') {
      this.#connection = 'open'
      this.#hello = event.hello
      if (event.resumed) this.#replay = { frames: 0, blocks: 0, tps: [], openedMs: nowMs }
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
    const { frames, blocks, tps } = this.#replay
    // Frames have no time of their own: those of a replay are spread evenly over the time away.
    const fromMs = this.#lostAtMs ?? nowMs
    for (const [at, value] of tps.entries())
      this.tps.add(value, fromMs + ((at + 1) / (tps.length + 1)) * (nowMs - fromMs))
    this.#replayed += frames
    this.#replay = undefined
    if (this.#lostAtMs === undefined) return
    const result =
      frames === 0
        ? 'no frame was missed'
        : `${formatCount(frames)} frames of ${formatCount(blocks)} blocks came late, none is missing`
    this.#reportReconnect(nowMs, 'good', result)
  }

  #applyData(event: DataEvent, nowMs: number): void {
    if (event.origin === 'live') this.#endReplay(nowMs)
    else if (event.origin === 'replay' && this.#replay !== undefined) this.#replay.frames += 1
    this.#seq = event.seq
    // A snapshot has earlier data and does not show that new data arrives.
    if (event.origin !== 'snapshot' || this.#lastDataMs === undefined) this.#markFresh(nowMs)
    switch (event.kind) {
      case 'TPS':
        if (this.#replay === undefined) this.tps.add(event.data, nowMs)
        else this.#replay.tps.push(event.data)
        return
      case 'ContentionData':
        if (this.#replay !== undefined && event.data.replaces_block_id === undefined) this.#replay.blocks += 1
        this.blocks.addContention(event.data)
        this.contention.add(event.data)
        return
      case 'ConflictData':
        this.#conflicts.set(event.data.block_number, event.data)
        for (const oldest of this.#conflicts.keys()) {
          if (this.#conflicts.size <= CONFLICTS_MAX) break
          this.#conflicts.delete(oldest)
        }
        return
      case 'TopAccesses':
        this.tops.add(event.data as TopAccesses, nowMs)
        return
      case 'Lifecycle':
        this.blocks.addLifecycle(event.data)
        if (event.data.to_stage === 'Rejected' && event.origin !== 'snapshot')
          this.#report(nowMs, 'rejection', 'note', 'A proposal was rejected: block', event.data.block_number)
        return
      case 'Events':
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
