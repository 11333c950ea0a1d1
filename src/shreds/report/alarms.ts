import type { Logger } from '../../platform/telemetry/logger.ts'
import type { RelayReport } from '../relay/protocol.ts'

/** What an operator must hear about, by name. */
export const ALARMS = [
  /** No source has sent anything for `sourceLostMs`. */
  'source-lost',
  /** Much of what comes in is of slots long past: a source replays. */
  'old-slots',
  /** Many packets from addresses that are not allowed: somebody floods the port. */
  'refused-source',
  /** Packets of another cluster, or the cluster's version has changed. */
  'version-mismatch',
  /** Packets with allowed addresses whose contents the leader did not sign. */
  'forged',
  /** The kernel threw packets away because they were not taken in time. */
  'overrun',
  /** The total rate cap holds packets back. */
  'total-rate',
] as const
export type Alarm = (typeof ALARMS)[number]

export type Alarms = {
  /** Adds what a report tells. */
  take(report: RelayReport, nowMs: number): void
  /** Judges the last second. */
  tick(nowMs: number): void
  raised(): readonly Alarm[]
}

export type AlarmsDeps = {
  readonly log: Logger
  onChange(alarm: Alarm, isRaised: boolean): void
}

/** Packets in a second from which on a trouble is worth a word, and the share of all packets for those that also happen on a good day. */
const REFUSED_SOURCE_MIN = 100
const FORGED_MIN = 10
const OLD_SLOTS_MIN = 100
const OLD_SLOTS_SHARE = 0.2
const VERSION_MIN = 20
const VERSION_SHARE = 0.05
/** An alarm is called off after so long without cause. */
const QUIET_MS = 10_000

export function createAlarms(options: { readonly sourceLostMs: number }, { log, onChange }: AlarmsDeps): Alarms {
  const raisedAt = new Map<Alarm, number>()
  let heardAtMs: number | undefined
  let overruns = 0
  let second = newSecond()

  function validate(alarm: Alarm, isTrue: boolean, fields: object, nowMs: number): void {
    const isRaised = raisedAt.has(alarm)
    if (isTrue) {
      raisedAt.set(alarm, nowMs)
      if (isRaised) return
      log.warn({ alarm, ...fields }, 'shred alarm')
      onChange(alarm, true)
    } else if (isRaised && (alarm === 'source-lost' || nowMs - (raisedAt.get(alarm) as number) >= QUIET_MS)) {
      raisedAt.delete(alarm)
      log.info({ alarm }, 'shred alarm called off')
      onChange(alarm, false)
    }
  }

  return {
    take({ counts, perSource, destinations, overruns: overrunsNow }, nowMs) {
      const fromSources = perSource.reduce((sum, count) => sum + count, 0)
      if (fromSources > 0) heardAtMs = nowMs
      second.received += fromSources
      second.refusedSource += counts.dropped.source
      second.late += counts.dropped.late
      second.version += counts.dropped.version
      second.forged += counts.dropped.forged + counts.dropped['too-many-forged']
      second.overruns += Math.max(0, overrunsNow - overruns)
      overruns = overrunsNow
      for (const { unsent } of destinations) second.totalRate += unsent['total-rate']
    },
    tick(nowMs) {
      const { received, late, version, forged, refusedSource, totalRate } = second
      const silentMs = heardAtMs === undefined ? 0 : nowMs - heardAtMs
      validate('source-lost', silentMs >= options.sourceLostMs, { silentMs: Math.round(silentMs) }, nowMs)
      validate('old-slots', late >= OLD_SLOTS_MIN && late >= received * OLD_SLOTS_SHARE, { late, received }, nowMs)
      validate('refused-source', refusedSource >= REFUSED_SOURCE_MIN, { packets: refusedSource }, nowMs)
      const isVersion = version >= VERSION_MIN && version >= received * VERSION_SHARE
      validate('version-mismatch', isVersion, { packets: version, received }, nowMs)
      validate('forged', forged >= FORGED_MIN, { packets: forged }, nowMs)
      validate('overrun', second.overruns > 0, { packets: second.overruns }, nowMs)
      validate('total-rate', totalRate > 0, { packets: totalRate }, nowMs)
      second = newSecond()
    },
    raised: () => [...raisedAt.keys()],
  }
}

function newSecond() {
  return { received: 0, refusedSource: 0, late: 0, version: 0, forged: 0, overruns: 0, totalRate: 0 }
}
