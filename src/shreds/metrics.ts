import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import {
  DESTINATION_STATES,
  type DestinationState,
  DROP_REASONS,
  type RelayReport,
  UNSENT_REASONS,
} from './relay/protocol.ts'
import { ALARMS, type Alarm } from './report/alarms.ts'

/**
 * Destinations have seats, numbers that are given out again, so that each has series of its own without its address or subscription in a
 * label; `sluice shred show` tells who sits where. Those beyond the last seat share one.
 */
export const LABELLED_DESTINATIONS_MAX = 64
const DESTINATION_LABELS = [...Array.from({ length: LABELLED_DESTINATIONS_MAX }, (_, i) => String(i + 1)), 'more']
const SOURCE_NAMES = Array.from({ length: 8 }, (_, i) => String(i + 1))

export type ShredsMetrics = {
  take(report: RelayReport, destinationIndexOf: (subscriptionId: string) => number | undefined): void
  setAlarm(alarm: Alarm, isRaised: boolean): void
  setRefused(count: number): void
  readonly challengesSent: { inc(): void }
}

export type ShredsReadings = { newestSlot(): number | undefined; receiveBufferBytes(): number }

export function shredsMetrics(
  registry: MetricsRegistry,
  read: ShredsReadings = { newestSlot: () => undefined, receiveBufferBytes: () => 0 },
): ShredsMetrics {
  const counter = (name: string, help: string) => registry.counter({ name, help }).with({})
  const received = registry.counter({
    name: 'sluice_shreds_received_total',
    help: 'Packets taken from allowed sources, by the place of the source in the config; all beyond the eighth count as 8.',
    labels: { source: SOURCE_NAMES },
  })
  const relayed = counter('sluice_shreds_relayed_total', 'Shreds that were valid, current and new.')
  const unchecked = counter(
    'sluice_shreds_unchecked_total',
    'Shreds relayed without a signature check because the leader of their slot was not known.',
  )
  const dropped = registry.counter({
    name: 'sluice_shreds_dropped_total',
    help: 'Packets that were not relayed, by reason.',
    labels: { reason: DROP_REASONS },
  })
  const sent = registry.counter({
    name: 'sluice_shreds_sent_total',
    help: 'Packets sent, by index of the destination.',
    labels: { destination: DESTINATION_LABELS },
  })
  const sentBytes = registry.counter({
    name: 'sluice_shreds_sent_bytes_total',
    help: 'Bytes of shreds sent, by index of the destination.',
    labels: { destination: DESTINATION_LABELS },
  })
  const unsentByDestination = registry.counter({
    name: 'sluice_shreds_unsent_by_seat_total',
    help: 'Relayed packets that did not go to a destination, by its index.',
    labels: { destination: DESTINATION_LABELS },
  })
  const unsent = registry.counter({
    name: 'sluice_shreds_unsent_total',
    help: 'Relayed packets that did not go to a destination, by reason.',
    labels: { reason: UNSENT_REASONS },
  })
  const refusals = counter(
    'sluice_shreds_refusals_total',
    'Times the network said that nobody listens at a destination.',
  )
  const states = registry.gauge({
    name: 'sluice_shreds_destinations',
    help: 'Destinations that shreds are sent to, by state.',
    labels: { state: DESTINATION_STATES },
  })
  const refused = registry.gauge({
    name: 'sluice_shreds_destinations_refused',
    help: 'Destinations in the store that get nothing: unproven, paused, ended or in a refused range.',
  })
  const alarms = registry.gauge({
    name: 'sluice_shreds_alarm',
    help: '1 while the alarm of this name is raised.',
    labels: { alarm: ALARMS },
  })
  const raised = registry.counter({
    name: 'sluice_shreds_alarms_total',
    help: 'Times an alarm was raised, by name.',
    labels: { alarm: ALARMS },
  })
  let overrunsSeen = 0
  const overruns = counter(
    'sluice_shreds_overruns_total',
    'Packets the kernel threw away because they came faster than they were taken.',
  )
  registry.gauge({
    name: 'sluice_shreds_newest_slot',
    help: 'Newest slot relayed.',
    read: () => read.newestSlot() ?? 0,
  })
  registry.gauge({
    name: 'sluice_shreds_receive_buffer_bytes',
    help: 'Receive buffer the kernel granted.',
    read: read.receiveBufferBytes,
  })
  for (const alarm of ALARMS) alarms.set(0, { alarm })

  return {
    challengesSent: counter(
      'sluice_shreds_challenges_total',
      'Challenge packets sent to destinations that wait for their proof.',
    ),
    setRefused: (count) => refused.set(count),
    setAlarm(alarm, isRaised) {
      alarms.set(isRaised ? 1 : 0, { alarm })
      if (isRaised) raised.inc({ alarm })
    },
    take(report, destinationIndexOf) {
      const { counts, perSource, destinations } = report
      perSource.forEach((count, at) => {
        const source = SOURCE_NAMES[Math.min(at, SOURCE_NAMES.length - 1)] as string
        if (count > 0) received.inc({ source }, count)
      })
      relayed.inc(counts.relayed)
      unchecked.inc(counts.unchecked)
      for (const reason of DROP_REASONS) dropped.inc({ reason }, counts.dropped[reason])
      overruns.inc(Math.max(0, report.overruns - overrunsSeen))
      overrunsSeen = report.overruns
      const byState: Record<DestinationState, number> = { sending: 0, paused: 0, trying: 0 }
      for (const each of destinations) {
        const destination =
          DESTINATION_LABELS[(destinationIndexOf(each.lease.subscriptionId) ?? LABELLED_DESTINATIONS_MAX + 1) - 1] ??
          'more'
        let lost = 0
        for (const reason of UNSENT_REASONS) {
          unsent.inc({ reason }, each.unsent[reason])
          lost += each.unsent[reason]
        }
        byState[each.state] += 1
        sent.inc({ destination }, each.packets)
        sentBytes.inc({ destination }, each.bytes)
        unsentByDestination.inc({ destination }, lost)
        refusals.inc(each.refusals)
      }
      for (const state of DESTINATION_STATES) states.set(byState[state], { state })
    },
  }
}
