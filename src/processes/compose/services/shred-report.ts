import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { lookUp } from '../../../access/provisioning/context.ts'
import type { AccessSnapshot } from '../../../access/snapshot/snapshot.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { usagePeriodOf } from '../../../access/usage/report.ts'
import type { AdminHandlers } from '../../../admin/api/handler.ts'
import { isoTime, toWireJson } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import type { Random } from '../../../core/random.ts'
import { systemClock } from '../../../platform/process/clock.ts'
import { createTimeSlices } from '../../../platform/process/time-slices.ts'
import { delayQuantiles } from '../../../shreds/report/delays.ts'
import { sumDelivery } from '../../../shreds/report/delivery-reports.ts'
import { type DeliveryRow, openReportStore } from '../../../shreds/report/store.ts'
import { REPORT_FILE } from './shreds.ts'

const GROUPINGS = ['hour', 'day', 'total'] as const
type Grouping = (typeof GROUPINGS)[number]
const LINES_MAX = 10_000
/** Rows of the file that one report reads. */
const ROWS_MAX = 500_000

type ShredReportDeps = {
  readonly stateDir: string
  readonly store: AccessStore
  readonly random: Random
  snapshot(): AccessSnapshot
}

/** The delivery report of the admin API, from the file that the service of shreds writes. It is read in pages, since the control plane must not be held. */
export function shredReportHandler(deps: ShredReportDeps): Pick<AdminHandlers, 'shredReport'> {
  const file = join(deps.stateDir, ...REPORT_FILE)

  async function read(
    by: Grouping,
    period: { fromMs: number; toMs: number; subscriptionId: string | undefined },
  ): Promise<{ rows: DeliveryRow[]; quantilesOf: ReturnType<typeof delayQuantiles> }> {
    if (!existsSync(file)) return { rows: [], quantilesOf: delayQuantiles([], by) }
    await using reports = await openReportStore(file, { clock: systemClock, random: deps.random, create: false })
    const slices = createTimeSlices()
    let sums: DeliveryRow[] = []
    let rows = 0
    for await (const page of reports.pages(period)) {
      sums = sumDelivery([...sums, ...page], by)
      rows += page.length
      if (rows > ROWS_MAX || sums.length > LINES_MAX)
        throw new ServiceError(
          'invalid-value',
          `a delivery report reads at most ${ROWS_MAX} rows and has at most ${LINES_MAX} lines`,
          { fix: 'Choose a shorter period, a subscription, or by=day.' },
        )
      if (slices.isSpent()) await slices.yield()
    }
    return { rows: sums, quantilesOf: delayQuantiles(await reports.delays(period), by) }
  }

  return {
    async shredReport({ query, nowMs }) {
      const text = (name: string) => query.get(name) || undefined
      const by = text('by') ?? 'hour'
      if (!isGrouping(by))
        throw new ServiceError('invalid-value', `"${by}" is not a grouping: use one of ${GROUPINGS.join(', ')}`)
      const [month, until] = [text('month'), text('until')]
      // As the command line: the last day, where no period is given.
      const since = text('since') ?? (month === undefined && until === undefined ? '24h' : undefined)
      const period = usagePeriodOf({ month, since, until, by }, nowMs, '')
      const name = text('subscription')
      const subscriptionId = name === undefined ? undefined : (await lookUp(deps.store, 'subscriptions', name)).id
      const { rows, quantilesOf } = await read(by, { ...period, subscriptionId })
      const items = rows.map(({ hour, subscriptionId: id, duplicates, ...counts }) => ({
        ...(by === 'total' ? {} : { from: isoTime(hour) }),
        subscription: deps.snapshot().subscription(id)?.name ?? id,
        subscription_id: id,
        ...(toWireJson({ ...counts, ...quantilesOf(hour) }) as object),
        duplicates_suppressed: duplicates,
      }))
      return { body: { from: isoTime(period.fromMs), until: isoTime(period.toMs), by, items, next_cursor: null } }
    },
  }
}

function isGrouping(text: string): text is Grouping {
  return (GROUPINGS as readonly string[]).includes(text)
}
