import { bucketQuantile } from '../../platform/telemetry/bucket-quantile.ts'
import { DELAY_BOUNDS_MICROS } from '../relay/protocol.ts'
import { type DeliveryGrouping, deliveryStart } from './delivery-reports.ts'
import type { DelayRow } from './store.ts'

/** Milliseconds from the receipt of a shred until it was sent to all destinations; null where none was sent or the time is not known. */
export type DelayQuantiles = { readonly delayP50Ms: number | null; readonly delayP99Ms: number | null }

/** The quantiles of each hour or day, or of all time, by its start. */
export function delayQuantiles(rows: readonly DelayRow[], by: DeliveryGrouping): (hour: number) => DelayQuantiles {
  const sums = new Map<number, readonly number[]>()
  for (const { hour, packets } of rows) {
    const from = deliveryStart(hour, by)
    const before = sums.get(from)
    sums.set(
      from,
      packets.map((count, at) => count + (before?.[at] ?? 0)),
    )
  }
  return (hour) => {
    const counts = sums.get(deliveryStart(hour, by)) ?? []
    const millis = (share: number) => {
      const micros = bucketQuantile(share, { bounds: DELAY_BOUNDS_MICROS, counts })
      return micros === undefined ? null : Math.round(micros) / 1000
    }
    return { delayP50Ms: millis(0.5), delayP99Ms: millis(0.99) }
  }
}
