import type { Logger } from '../../platform/telemetry/logger.ts'
import type { RelayReport } from '../relay/protocol.ts'

/** Conditions reported to the operator as `sluice_shreds_alarm` and in the log. */
export const ALARMS = [
  /** No source has sent anything for `sourceLostMs`. Without a first packet it is raised only while there is a lease. */
  'source-lost',
  /** Many packets are of old slots, relayed or not: a source replays or lags. */
  'old-slots',
  /** Many packets are of slots far ahead of the others, and not relayed. */
  'ahead-slots',
  /** Many packets come from addresses that are not allowed. */
  'refused-source',
  /** Packets of another cluster, or the cluster's version has changed. */
  'version-mismatch',
  /** Packets from allowed addresses whose content the leader did not sign. */
  'forged',
  /** The kernel dropped packets because the receive buffer was full. */
  'overrun',
  /** The total rate cap holds packets back. */
  'total-rate',
] as const
export type Alarm = (typeof ALARMS)[number]

export type Alarms = {
  /** Adds the counts of a report. */
  record(report: RelayReport, nowMs: number): void
  /** Evaluates the last second. `hasLeases`: there are destinations to send shreds to. */
  tick(nowMs: number, hasLeases?: boolean): void
  raised(): readonly Alarm[]
}

export type AlarmsDeps = {
  readonly log: Logger
  onChange(alarm: Alarm, isRaised: boolean): void
}

/** Thresholds in packets per second, and as a share of all packets where a few are normal. */
const REFUSED_SOURCE_MIN = 100
const FORGED_MIN = 10
const OLD_SLOTS_MIN = 100
const OLD_SLOTS_SHARE = 0.2
const AHEAD_SLOTS_MIN = 100
const AHEAD_SLOTS_SHARE = 0.2
const VERSION_MIN = 20
const VERSION_SHARE = 0.05
/** An alarm is cleared after this time without its condition. */
const CLEAR_AFTER_MS = 10_000

export function createAlarms(options: { readonly sourceLostMs: number }, { log, onChange }: AlarmsDeps): Alarms {
  const raisedAt = new Map<Alarm, number>()
  let receivedAtMs: number | undefined
  /** Since when there have been leases and no first packet. */
  let waitingSinceMs: number | undefined
  let overruns = 0
  let second = newSecond()

  function update(alarm: Alarm, isActive: boolean, fields: object, nowMs: number): void {
    const isRaised = raisedAt.has(alarm)
    if (isActive) {
      raisedAt.set(alarm, nowMs)
      if (isRaised) return
      log.warn({ alarm, ...fields }, 'shred alarm')
      onChange(alarm, true)
    } else if (isRaised && (alarm === 'source-lost' || nowMs - (raisedAt.get(alarm) as number) >= CLEAR_AFTER_MS)) {
      raisedAt.delete(alarm)
      log.info({ alarm }, 'shred alarm cleared')
      onChange(alarm, false)
    }
  }

  return {
    record({ counts, perSource, destinations, overruns: overrunsNow }, nowMs) {
      const fromSources = perSource.reduce((sum, count) => sum + count, 0)
      if (fromSources > 0) receivedAtMs = nowMs
      second.received += fromSources
      second.refusedSource += counts.dropped.source
      second.late += counts.dropped.late + counts.behind
      second.ahead += counts.dropped.ahead
      second.version += counts.dropped.version
      second.forged += counts.dropped.forged + counts.dropped['too-many-forged']
      second.overruns += Math.max(0, overrunsNow - overruns)
      overruns = overrunsNow
      for (const { unsent } of destinations) second.totalRate += unsent['total-rate']
    },
    tick(nowMs, hasLeases = false) {
      const { received, late, ahead, version, forged, refusedSource, totalRate } = second
      waitingSinceMs = hasLeases ? (waitingSinceMs ?? nowMs) : undefined
      const silentMs = nowMs - (receivedAtMs ?? waitingSinceMs ?? nowMs)
      update('source-lost', silentMs >= options.sourceLostMs, { silentMs: Math.round(silentMs) }, nowMs)
      update('old-slots', late >= OLD_SLOTS_MIN && late >= received * OLD_SLOTS_SHARE, { late, received }, nowMs)
      const isAhead = ahead >= AHEAD_SLOTS_MIN && ahead >= received * AHEAD_SLOTS_SHARE
      update('ahead-slots', isAhead, { ahead, received }, nowMs)
      update('refused-source', refusedSource >= REFUSED_SOURCE_MIN, { packets: refusedSource }, nowMs)
      const isVersion = version >= VERSION_MIN && version >= received * VERSION_SHARE
      update('version-mismatch', isVersion, { packets: version, received }, nowMs)
      update('forged', forged >= FORGED_MIN, { packets: forged }, nowMs)
      update('overrun', second.overruns > 0, { packets: second.overruns }, nowMs)
      update('total-rate', totalRate > 0, { packets: totalRate }, nowMs)
      second = newSecond()
    },
    raised: () => [...raisedAt.keys()],
  }
}

function newSecond() {
  return { received: 0, refusedSource: 0, late: 0, ahead: 0, version: 0, forged: 0, overruns: 0, totalRate: 0 }
}
