import type { Clock, Timer } from '../../core/clock.ts'
import { TokenBucket } from '../../core/token-bucket.ts'
import type { QuicConnection } from '../../platform/quic/connection.ts'
import { printEnd, type QuicEnd } from '../../platform/quic/connection-options.ts'
import type { StreamOutcome } from '../../platform/quic/send-streams.ts'
import type { Leader } from './contacts.ts'

export type OpenLeader = (
  leader: Leader,
  on: { onOpen(): void; onEnd(end: QuicEnd): void },
) => Pick<QuicConnection, 'state' | 'send' | 'close'>

export type LeaderConnectionsOptions = { readonly connectionsMax: number; readonly perLeaderPerSecond: number }

export type LeaderConnectionsDeps = { readonly clock: Clock; readonly open: OpenLeader }

/** QUIC connections to leaders, opened before their slots and closed after them. Leaders with the same address, that of a relay, share one. */
export type LeaderConnections = Disposable & {
  /** Opens connections to these leaders; connections not used for KEEP_MS are closed. */
  warm(leaders: readonly Leader[]): void
  /** Calls `respond` exactly once. */
  send(
    leader: Leader,
    wire: Uint8Array,
    respond: (outcome: StreamOutcome | 'unreachable', message: string) => void,
  ): void
  isUsable(leader: Leader): boolean
  /** Whether half of the stream burst is free. */
  hasSpare(leader: Leader): boolean
  readonly open: number
}

/** Half of what a validator accepts from an address: 8 new connections per minute, all of them at once if need be (agave: ConnectionRateLimiter). */
const CONNECTS_PER_MINUTE = 4
const CONNECTS_BURST = 4
/** Between two attempts: a peer that has closed a connection closes the next one as well. A connection of a leader whose slots have come is older. */
const CONNECT_EVERY_MS = 4000
/** A connection is closed when it was not used for this time. */
const KEEP_MS = 30_000
/** An unstaked connection may open 20 streams in 100 ms. */
const BURST_MS = 100

type Entry = {
  readonly leader: Leader
  readonly connects: TokenBucket
  /** When the next attempt may be made. */
  connectDueMs: number
  readonly streams: TokenBucket
  connection: ReturnType<OpenLeader> | undefined
  usedAtMs: number
  lastEnd: string
}

export function createLeaderConnections(
  { connectionsMax, perLeaderPerSecond }: LeaderConnectionsOptions,
  { clock, open }: LeaderConnectionsDeps,
): LeaderConnections {
  /** By address, in the order of last use. */
  const entries = new Map<string, Entry>()
  const streamsBurst = Math.max(1, (perLeaderPerSecond * BURST_MS) / 1000)
  let isClosed = false

  function entryOf(leader: Leader): Entry | undefined {
    const nowMs = clock.monotonicMs()
    let entry = entries.get(leader.address)
    if (entry === undefined && entries.size >= connectionsMax) {
      const [oldest] = entries.values()
      if (oldest === undefined || nowMs - oldest.usedAtMs < BURST_MS) return undefined
      drop(oldest)
    }
    entry ??= {
      leader,
      connects: new TokenBucket({ capacity: CONNECTS_BURST, perSecond: CONNECTS_PER_MINUTE / 60 }, nowMs),
      connectDueMs: nowMs,
      streams: new TokenBucket({ capacity: streamsBurst, perSecond: perLeaderPerSecond }, nowMs),
      connection: undefined,
      usedAtMs: nowMs,
      lastEnd: '',
    }
    entry.usedAtMs = nowMs
    entries.delete(leader.address)
    entries.set(leader.address, entry)
    return entry
  }

  function connect(entry: Entry): void {
    const nowMs = clock.monotonicMs()
    if (entry.connection !== undefined || isClosed || nowMs < entry.connectDueMs) return
    if (!entry.connects.take(1, nowMs)) return
    entry.connectDueMs = nowMs + CONNECT_EVERY_MS
    const connection = open(entry.leader, {
      onOpen() {},
      onEnd(end) {
        if (entry.connection === connection) entry.connection = undefined
        entry.lastEnd = printEnd(end)
      },
    })
    entry.connection = connection
  }

  function drop(entry: Entry): void {
    entries.delete(entry.leader.address)
    const { connection } = entry
    entry.connection = undefined
    connection?.close(0, '')
  }

  const timer: Timer = clock.setRepeating(1000, () => {
    const nowMs = clock.monotonicMs()
    for (const entry of [...entries.values()]) if (nowMs - entry.usedAtMs > KEEP_MS) drop(entry)
  })
  timer.unref?.()

  return {
    warm(leaders) {
      for (const leader of leaders) {
        const entry = entryOf(leader)
        if (entry !== undefined) connect(entry)
      }
    },
    send(leader, wire, respond) {
      const entry = entryOf(leader)
      if (entry === undefined) return respond('busy', `${connectionsMax} connections to leaders in use`)
      connect(entry)
      const { connection } = entry
      if (connection === undefined) return respond('unreachable', entry.lastEnd)
      if (!entry.streams.take(1, clock.monotonicMs()))
        return respond('busy', `${perLeaderPerSecond} per second to one leader`)
      if (!connection.send(wire, respond)) respond('busy', 'too many streams wait for the leader')
    },
    isUsable(leader) {
      return entries.get(leader.address)?.connection !== undefined
    },
    hasSpare(leader) {
      const streams = entries.get(leader.address)?.streams
      return streams === undefined || streams.level(clock.monotonicMs()) >= streamsBurst / 2
    },
    get open() {
      return [...entries.values()].filter(({ connection }) => connection?.state === 'open').length
    },
    [Symbol.dispose]() {
      isClosed = true
      timer.cancel()
      for (const entry of [...entries.values()]) drop(entry)
    },
  }
}
