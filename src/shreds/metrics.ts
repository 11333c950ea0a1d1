import { recordOf } from '../core/records.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import {
  DELAY_BOUNDS_MICROS,
  DESTINATION_STATES,
  type DestinationState,
  DROP_REASONS,
  type RelayReport,
  UNSENT_REASONS,
} from './relay/protocol.ts'
import { ALARMS, type Alarm } from './report/alarms.ts'

/**
 * Each served destination has an index from 1 to LABELLED_DESTINATIONS_MAX as its label `destination`, so that no label contains an address or a subscription; `sluice shred show --output wide` lists the indexes. Indexes are reused. Destinations beyond the last index share the label `more`.
 */
export const LABELLED_DESTINATIONS_MAX = 64
const DESTINATION_LABELS = [...Array.from({ length: LABELLED_DESTINATIONS_MAX }, (_, i) => String(i + 1)), 'more']
const FORMER_LABELS = { destination: 'seat' }
/** The threads of the service, which are restarted when they fail. */
const THREADS = ['relay', 'signatures', 'decoder'] as const
export type ShredsThread = (typeof THREADS)[number]
const SOURCE_NAMES = Array.from({ length: 8 }, (_, i) => String(i + 1))

export type ShredsMetrics = {
  record(report: RelayReport, destinationIndexOf: (subscriptionId: string) => number | undefined): void
  setAlarm(alarm: Alarm, isRaised: boolean): void
  setRefused(count: number): void
  threadRestarted(thread: ShredsThread): void
  readonly challengesSent: { inc(): void }
}

export type ShredsReadings = { newestSlot(): number | undefined; receiveBufferBytes(): number }

export function shredsMetrics(
  registry: MetricsRegistry,
  read: ShredsReadings = { newestSlot: () => undefined, receiveBufferBytes: () => 0 },
): ShredsMetrics {
  const counter = (name: string, help: string) => registry.counter(name, help).with({})
  const received = registry.counter(
    'sluice_shreds_received_total',
    'Packets received from allowed sources, by position of the source in the configuration; all beyond the eighth count as 8.',
    { labels: { source: SOURCE_NAMES } },
  )
  const relayed = counter('sluice_shreds_relayed_total', 'Shreds that were valid, current and new.')
  const unchecked = counter(
    'sluice_shreds_unchecked_total',
    'Shreds relayed without a signature check because the leader of their slot is not known.',
  )
  const checkedHere = counter(
    'sluice_shreds_checked_by_relay_total',
    'Signature checks that the relay made itself because the checking thread did not run or did not keep up.',
  )
  const delay = registry.histogram(
    'sluice_shreds_delay_seconds',
    'Time from the receipt of a shred, by the kernel where it has the time, until it was sent to all destinations.',
    { buckets: DELAY_BOUNDS_MICROS.map((micros) => micros / 1e6) },
  )
  const dropped = registry.counter('sluice_shreds_dropped_total', 'Packets not relayed, by reason.', {
    labels: { reason: DROP_REASONS },
  })
  const sent = registry.counter('sluice_shreds_sent_total', 'Packets sent, by destination index.', {
    labels: { destination: DESTINATION_LABELS },
    former: { labels: FORMER_LABELS },
  })
  const sentBytes = registry.counter('sluice_shreds_sent_bytes_total', 'Bytes of shreds sent, by destination index.', {
    labels: { destination: DESTINATION_LABELS },
    former: { labels: FORMER_LABELS },
  })
  const unsentByDestination = registry.counter(
    'sluice_shreds_unsent_by_destination_total',
    'Relayed packets that were not sent to a destination, by destination index.',
    {
      labels: { destination: DESTINATION_LABELS },
      former: { name: 'sluice_shreds_unsent_by_seat_total', labels: FORMER_LABELS },
    },
  )
  const unsent = registry.counter(
    'sluice_shreds_unsent_total',
    'Relayed packets that were not sent to a destination, by reason.',
    { labels: { reason: UNSENT_REASONS } },
  )
  const refusals = counter(
    'sluice_shreds_refusals_total',
    'ICMP errors (port or host unreachable) received for a destination.',
  )
  const states = registry.gauge('sluice_shreds_destinations', 'Destinations that shreds are sent to, by state.', {
    labels: { state: DESTINATION_STATES },
  })
  const refused = registry.gauge(
    'sluice_shreds_destinations_refused',
    'Destinations in the store that get no shreds: unproven, paused, ended or in a refused range.',
  )
  const alarms = registry.gauge('sluice_shreds_alarm', '1 while the alarm of this name is raised.', {
    labels: { alarm: ALARMS },
    merge: 'max',
  })
  const raised = registry.counter('sluice_shreds_alarms_total', 'Alarms raised, by name.', {
    labels: { alarm: ALARMS },
  })
  let overrunsSeen = 0
  const overruns = counter(
    'sluice_shreds_overruns_total',
    'Packets dropped by the kernel because the receive buffer was full.',
  )
  registry.gauge('sluice_shreds_newest_slot', 'Newest slot relayed.', {
    read: () => read.newestSlot() ?? 0,
    merge: 'max',
  })
  registry.gauge('sluice_shreds_receive_buffer_bytes', 'Receive buffer granted by the kernel.', {
    read: read.receiveBufferBytes,
    merge: 'max',
  })
  for (const alarm of ALARMS) alarms.set(0, { alarm })
  const restarts = registry.counter('sluice_shreds_thread_restarts_total', 'Starts of a thread after it had ended.', {
    labels: { thread: THREADS },
  })
  // Shown at zero from the start: Prometheus sees no increase in a series that begins with its first restart.
  for (const thread of THREADS) restarts.inc({ thread }, 0)

  return {
    challengesSent: counter('sluice_shreds_challenges_total', 'Challenge packets sent to unproven destinations.'),
    setRefused: (count) => refused.set(count),
    threadRestarted: (thread) => restarts.inc({ thread }),
    setAlarm(alarm, isRaised) {
      alarms.set(isRaised ? 1 : 0, { alarm })
      if (isRaised) raised.inc({ alarm })
    },
    record(report, destinationIndexOf) {
      const { counts, perSource, destinations } = report
      perSource.forEach((count, at) => {
        const source = SOURCE_NAMES[Math.min(at, SOURCE_NAMES.length - 1)] as string
        if (count > 0) received.inc({ source }, count)
      })
      relayed.inc(counts.relayed)
      unchecked.inc(counts.unchecked)
      checkedHere.inc(counts.checkedHere)
      delay.add(report.delays.packets, report.delays.sumMicros / 1e6)
      for (const reason of DROP_REASONS) dropped.inc({ reason }, counts.dropped[reason])
      overruns.inc(Math.max(0, report.overruns - overrunsSeen))
      overrunsSeen = report.overruns
      const byState: Record<DestinationState, number> = { sending: 0, paused: 0, trying: 0 }
      const unsentByReason = recordOf(UNSENT_REASONS, () => 0)
      for (const each of destinations) {
        const index = destinationIndexOf(each.lease.subscriptionId)
        const destination = (index === undefined ? undefined : DESTINATION_LABELS[index - 1]) ?? 'more'
        let unsentPackets = 0
        for (const reason of UNSENT_REASONS) {
          unsentByReason[reason] += each.unsent[reason]
          unsentPackets += each.unsent[reason]
        }
        byState[each.state] += 1
        sent.inc({ destination }, each.packets)
        sentBytes.inc({ destination }, each.bytes)
        unsentByDestination.inc({ destination }, unsentPackets)
        refusals.inc(each.refusals)
      }
      for (const reason of UNSENT_REASONS) unsent.inc({ reason }, unsentByReason[reason])
      for (const state of DESTINATION_STATES) states.set(byState[state], { state })
    },
  }
}
