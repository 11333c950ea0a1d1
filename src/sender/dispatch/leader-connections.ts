import type { Clock, Timer } from '../../core/clock.ts'
import { createRollingWindow } from '../../core/rolling-window.ts'
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
  /** Whether half of the streams that a leader gets at once are free. */
  hasSpare(leader: Leader): boolean
  readonly open: number
}

/** Half of what a validator accepts from an address: 8 new connections per minute, all of them at once if need be (agave: ConnectionRateLimiter). */
const CONNECTS_PER_MINUTE = 4
const CONNECTS_BURST = 4
/** Between two attempts, but for the first one after a connection that had opened was lost: a peer that closes that one too closes the next as well. */
const CONNECT_EVERY_MS = 4000
/** A connection is closed when it was not used for this time. */
const KEEP_MS = 30_000
/** A validator counts streams in intervals of this length, which may begin at any time: 20 for an unstaked connection. */
const STREAMS_MS = 100

/** The attempts to connect to an address. */
type Attempts = {
  readonly connects: TokenBucket
  /** When the next one may be made. */
  dueMs: number
  /** Whether the next one is made at once, because a connection that had opened was lost. */
  isReplacing: boolean
}

type Entry = {
  readonly leader: Leader
  readonly attempts: Attempts
  /** Opened in the last `streamsMs`. */
  readonly streams: ReturnType<typeof createRollingWindow>
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
  /** By address; they outlive the entries, so that a peer which is dropped and comes again has no new attempts. */
  const attempted = new Map<string, Attempts>()
  const streamsMax = Math.ceil((perLeaderPerSecond * STREAMS_MS) / 1000)
  const streamsMs = (streamsMax * 1000) / perLeaderPerSecond
  let isClosed = false

  function entryOf(leader: Leader): Entry | undefined {
    const nowMs = clock.monotonicMs()
    let entry = entries.get(leader.address)
    if (entry === undefined && entries.size >= connectionsMax) {
      const [oldest] = entries.values()
      if (oldest === undefined || nowMs - oldest.usedAtMs < STREAMS_MS) return undefined
      drop(oldest)
    }
    entry ??= {
      leader,
      attempts: attemptsAt(leader.address),
      streams: createRollingWindow({ windowMs: streamsMs, buckets: Math.ceil(streamsMs) }),
      connection: undefined,
      usedAtMs: nowMs,
      lastEnd: '',
    }
    entry.usedAtMs = nowMs
    entries.delete(leader.address)
    entries.set(leader.address, entry)
    return entry
  }

  function attemptsAt(address: string): Attempts {
    const nowMs = clock.monotonicMs()
    const attempts = attempted.get(address) ?? {
      connects: new TokenBucket({ capacity: CONNECTS_BURST, perSecond: CONNECTS_PER_MINUTE / 60 }, nowMs),
      dueMs: nowMs,
      isReplacing: false,
    }
    attempted.set(address, attempts)
    return attempts
  }

  function connect(entry: Entry): void {
    const { attempts } = entry
    const nowMs = clock.monotonicMs()
    if (entry.connection !== undefined || isClosed || nowMs < attempts.dueMs) return
    if (!attempts.connects.take(1, nowMs)) return
    const wasReplacing = attempts.isReplacing
    let hasOpened = false
    attempts.dueMs = nowMs + CONNECT_EVERY_MS
    attempts.isReplacing = false
    const connection = open(entry.leader, {
      onOpen() {
        hasOpened = true
      },
      onEnd(end) {
        entry.lastEnd = printEnd(end)
        if (entry.connection !== connection) return
        entry.connection = undefined
        if (!hasOpened || wasReplacing) return
        attempts.dueMs = clock.monotonicMs()
        attempts.isReplacing = true
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
    // A full bucket, a minute after its last attempts, is like a new one.
    for (const [address, { connects }] of attempted)
      if (!entries.has(address) && connects.fullInMs(nowMs) === 0) attempted.delete(address)
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
      const nowMs = clock.monotonicMs()
      if (entry.streams.sum(nowMs) >= streamsMax)
        return respond('busy', `${perLeaderPerSecond} per second to one leader`)
      entry.streams.add(1, nowMs)
      if (!connection.send(wire, respond)) respond('busy', 'too many streams wait for the leader')
    },
    isUsable(leader) {
      return entries.get(leader.address)?.connection !== undefined
    },
    hasSpare(leader) {
      const streams = entries.get(leader.address)?.streams
      return streams === undefined || streams.sum(clock.monotonicMs()) <= streamsMax / 2
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
