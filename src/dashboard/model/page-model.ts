import type { RecentBlocks, StatusRecord } from '../../contract/execution-routes.ts'
import type { ConflictData, Hello, TopAccesses } from '../../contract/stream-events.ts'
import type { ConnectionEvent, DataEvent, StreamEvent } from '../client/stream-event.ts'
import { type BlockLog, createBlockLog } from './block-log.ts'
import { type ContentionSeries, createContentionSeries } from './contention-series.ts'
import { formatAge, formatCount } from './format.ts'
import { STALE_MS } from './freshness.ts'
import { gapWords } from './gap-text.ts'
import { createIncidentLog, type IncidentLog } from './incident-log.ts'
import { createTopBoard, type TopBoard } from './top-board.ts'
import { createTpsSeries, type TpsSeries } from './tps-series.ts'

/** Everything the page shows, folded from the stream. Views read it; only events and the passing of time change it. */
export type PageModel = {
  readonly tps: TpsSeries
  readonly blocks: BlockLog
  readonly contention: ContentionSeries
  readonly tops: TopBoard
  readonly incidents: IncidentLog
  apply(event: StreamEvent, nowMs: number): void
  /** Time passed: what is late becomes an incident. */
  tick(nowMs: number): void
  setStatus(status: StatusRecord | undefined, nowMs: number): void
  /** The service refused this page for want of a token. */
  setLocked(locked: boolean): void
  /** Figures of blocks before the page was opened. `intervalMs`: from one block to the next, where known. */
  addEarlier(earlier: RecentBlocks, openedMs: number, intervalMs: number | undefined): void
  facts(): PageFacts
  conflicts(block: number): ConflictData | undefined
}

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
  /** Frames that came again after a connection was lost. */
  readonly replayed: number
}

/** A replay is over with the first live frame, or after this long without one. */
const REPLAY_OVER_MS = 1500
const CONFLICTS_MAX = 300

export function createPageModel(): PageModel {
  const tps = createTpsSeries()
  const blocks = createBlockLog()
  const contention = createContentionSeries()
  const tops = createTopBoard()
  const incidents = createIncidentLog()
  const conflicts = new Map<number, ConflictData>()

  let connection: PageFacts['connection'] = 'connecting'
  let retryAtMs: number | undefined
  let locked = false
  let hello: Hello | undefined
  let status: StatusRecord | undefined
  let seq: number | undefined
  let lastDataMs: number | undefined
  let isStale = false
  let gaps = 0
  let replayed = 0
  let lostAtMs: number | undefined
  let replay: { frames: number; blocks: number; tps: number[]; openedMs: number } | undefined

  function connect(event: ConnectionEvent, nowMs: number): void {
    if (event.state === 'connecting') {
      connection = 'connecting'
      return
    }
    if (event.state === 'open') {
      connection = 'open'
      hello = event.hello
      if (event.resumed) replay = { frames: 0, blocks: 0, tps: [], openedMs: nowMs }
      else if (lostAtMs !== undefined) reportBack(nowMs, 'warn', 'shown from a snapshot on')
      return
    }
    connection = 'waiting'
    retryAtMs = event.retryInMs === undefined ? undefined : nowMs + event.retryInMs
    if (lostAtMs !== undefined) return
    lostAtMs = nowMs
    incidents.add({
      atMs: nowMs,
      kind: 'connection',
      severity: 'warn',
      text: `Connection lost (${closeWords(event)}).`,
    })
  }

  function reportBack(nowMs: number, severity: 'good' | 'warn', what: string): void {
    const awayMs = nowMs - (lostAtMs ?? nowMs)
    lostAtMs = undefined
    incidents.add({
      atMs: nowMs,
      kind: 'connection',
      severity,
      text: `Connected again after ${formatAge(awayMs)}: ${what}.`,
    })
  }

  function endReplay(nowMs: number): void {
    if (replay === undefined) return
    const { frames, blocks: missed, tps: values } = replay
    // Frames carry no time of their own: those of a replay are spread evenly over the time away.
    const fromMs = lostAtMs ?? nowMs
    for (const [at, value] of values.entries())
      tps.add(value, fromMs + ((at + 1) / (values.length + 1)) * (nowMs - fromMs))
    replayed += frames
    replay = undefined
    if (lostAtMs === undefined) return
    reportBack(
      nowMs,
      'good',
      frames === 0
        ? 'nothing happened in between'
        : `${formatCount(frames)} frames of ${formatCount(missed)} blocks came late, none is missing`,
    )
  }

  function takeData(event: DataEvent, nowMs: number): void {
    if (event.origin === 'live') endReplay(nowMs)
    else if (event.origin === 'replay' && replay !== undefined) replay.frames += 1
    seq = event.seq
    // A snapshot tells what was, not that something happens now.
    if (event.origin !== 'snapshot' || lastDataMs === undefined) freshen(nowMs)
    switch (event.kind) {
      case 'TPS':
        if (replay === undefined) tps.add(event.data, nowMs)
        else replay.tps.push(event.data)
        return
      case 'ContentionData':
        if (replay !== undefined) replay.blocks += 1
        blocks.addContention(event.data)
        contention.add(event.data)
        return
      case 'ConflictData':
        conflicts.set(event.data.block_number, event.data)
        for (const old of conflicts.keys()) {
          if (conflicts.size <= CONFLICTS_MAX) break
          conflicts.delete(old)
        }
        return
      case 'TopAccesses':
        tops.add(event.data as TopAccesses, nowMs)
        return
      case 'Lifecycle':
        blocks.addLifecycle(event.data)
        if (event.data.to_stage === 'Rejected' && event.origin !== 'snapshot') reject(event.data.block_number, nowMs)
        return
      case 'Events':
    }
  }

  function reject(block: number, nowMs: number): void {
    const text = 'A proposal was rejected: block'
    incidents.add({ atMs: nowMs, kind: 'rejection', severity: 'note', text, block })
  }

  function freshen(nowMs: number): void {
    if (isStale && lastDataMs !== undefined) {
      const text = `Data again after ${formatAge(nowMs - lastDataMs)}.`
      incidents.add({ atMs: nowMs, kind: 'lag', severity: 'good', text })
    }
    isStale = false
    lastDataMs = nowMs
  }

  return {
    tps,
    blocks,
    contention,
    tops,
    incidents,
    apply(event, nowMs) {
      switch (event.kind) {
        case 'connection':
          return connect(event, nowMs)
        case 'gap':
          gaps += 1
          incidents.add({ atMs: nowMs, kind: 'gap', severity: 'bad', text: gapWords(event) })
          return
        case 'warning':
          incidents.add({
            atMs: nowMs,
            kind: 'gap',
            severity: 'warn',
            text: `The service warns: ${event.warning.type}.`,
          })
          return
        case 'refused':
          incidents.add({ atMs: nowMs, kind: 'connection', severity: 'bad', text: `Refused: ${event.error.message}` })
          return
        case 'other':
          return
        default:
          return takeData(event, nowMs)
      }
    },
    tick(nowMs) {
      if (replay !== undefined && nowMs - replay.openedMs > REPLAY_OVER_MS) endReplay(nowMs)
      if (isStale || connection !== 'open' || lastDataMs === undefined || nowMs - lastDataMs <= STALE_MS) return
      isStale = true
      incidents.add({ atMs: nowMs, kind: 'lag', severity: 'warn', text: 'No frame for more than 5 s.' })
    },
    setStatus(next, nowMs) {
      const wasDegraded = status?.status === 'degraded'
      status = next
      if (next?.status !== 'degraded' || wasDegraded) return
      const text = `The service says degraded: no event for ${next.last_event_age_secs} s.`
      incidents.add({ atMs: nowMs, kind: 'lag', severity: 'bad', text })
    },
    addEarlier(earlier, openedMs, intervalMs) {
      contention.addEarlier(earlier.blocks.flatMap((block) => (block.contention === null ? [] : [block.contention])))
      if (intervalMs === undefined) return
      tps.addEarlier(
        earlier.blocks.map((block) => block.tps),
        openedMs,
        intervalMs,
      )
    },
    setLocked(next) {
      locked = next
    },
    facts: () => ({
      locked,
      connection,
      retryAtMs,
      replaying: replay !== undefined && replay.frames > 0,
      seq,
      lastDataMs,
      hello,
      status,
      gaps,
      replayed,
    }),
    conflicts: (block) => conflicts.get(block),
  }
}

function closeWords({ code, reason }: { code: number; reason: string }): string {
  const known = CLOSE_WORDS[code] ?? `code ${code}`
  return reason === '' || known.includes(reason) ? known : `${known}: ${reason}`
}

const CLOSE_WORDS: Readonly<Record<number, string>> = {
  1000: 'closed',
  1006: 'broken off',
  1008: 'refused by policy',
  1012: 'the service restarts',
  4401: 'token ended',
}
