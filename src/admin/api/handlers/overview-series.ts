import { isoTime } from '../../../contract/wire-json.ts'
import { HOUR_MS } from '../../../core/human-units.ts'
import type { AdminHandlers } from '../handler.ts'
import type { HandlerDeps } from './deps.ts'
import { createHourSums } from './hour-sums.ts'

const HOURS = 48
const UNKNOWN = { calls: null, units: null, refused: null }

/** What all customers used, by hour. */
export function overviewSeriesHandlers({ store }: HandlerDeps): Pick<AdminHandlers, 'overviewSeries'> {
  const sums = createHourSums((hour) => store.hourUsage(hour), { hours: HOURS })
  return {
    async overviewSeries({ nowMs }) {
      const hours = await sums(nowMs)
      return {
        body: {
          from: isoTime(hours[0]?.hour),
          until: isoTime((hours.at(-1)?.hour ?? 0) + HOUR_MS),
          is_complete: hours.every(({ usage }) => usage !== undefined),
          items: hours.map(({ hour, usage = UNKNOWN }) => ({ from: isoTime(hour), ...usage })),
        },
      }
    },
  }
}
