import type { HourUsage } from '../../../access/store/model.ts'
import { HOUR_MS } from '../../../core/human-units.ts'

/** The current hour changes all the time; usage of a past hour arrives late after the store was away. */
const KEPT_MS = { current: 15_000, last: 60_000, older: HOUR_MS }
/** After this time a request reads no further hour; the next request does. */
const REQUEST_MS = 100

type Kept = { readonly usage: HourUsage; readonly atMs: number }

export type HourSum = {
  /** Start of the hour, unix ms. */
  readonly hour: number
  /** Undefined while it was not read yet. */
  readonly usage: HourUsage | undefined
}

/** Usage of all customers by hour, oldest first; the last hour is the current one. */
export type HourSums = (nowMs: number) => Promise<readonly HourSum[]>

/**
 * Sums of the last hours. An hour of very many subscriptions takes time to add up, so each is read once and kept, the newest first, and a request
 * reads as many as it has time for.
 */
export function createHourSums(
  read: (hour: number) => Promise<HourUsage>,
  { hours, monotonicMs = () => performance.now() }: { readonly hours: number; readonly monotonicMs?: () => number },
): HourSums {
  const kept = new Map<number, Kept>()
  let reading: Promise<void> | undefined

  async function readStale(newest: number, nowMs: number): Promise<void> {
    const startedMs = monotonicMs()
    for (let at = 0; at < hours; at++) {
      const hour = newest - at * HOUR_MS
      const keptMs = at === 0 ? KEPT_MS.current : at === 1 ? KEPT_MS.last : KEPT_MS.older
      const known = kept.get(hour)
      if (known !== undefined && nowMs - known.atMs < keptMs) continue
      kept.set(hour, { usage: await read(hour), atMs: nowMs })
      if (monotonicMs() - startedMs >= REQUEST_MS) return
    }
  }

  return async (nowMs) => {
    const newest = Math.floor(nowMs / HOUR_MS) * HOUR_MS
    // Requests that come together read once.
    reading ??= readStale(newest, nowMs).finally(() => {
      reading = undefined
    })
    await reading
    const shown = Array.from({ length: hours }, (_, at) => newest - (hours - 1 - at) * HOUR_MS)
    for (const hour of kept.keys()) if (hour < (shown[0] ?? newest)) kept.delete(hour)
    return shown.map((hour) => ({ hour, usage: kept.get(hour)?.usage }))
  }
}
