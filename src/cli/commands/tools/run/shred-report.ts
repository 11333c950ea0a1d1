import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { lookUp } from '../../../../access/provisioning/context.ts'
import { printBytesShort } from '../../../../core/bytes.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { secureRandom } from '../../../../platform/process/random.ts'
import { REPORT_FILE } from '../../../../processes/compose/services/shreds.ts'
import { sumDelivery } from '../../../../shreds/report/delivery.ts'
import { type DeliveryRow, openReportStore } from '../../../../shreds/report/store.ts'
import { parseSince } from '../../../dates.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { FROM_COLUMN, printList } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'

export type ReportFlags = ListFlags & { since?: string; by?: 'hour' | 'day' | 'total' }

/** Delivery per subscription and hour. */
export async function reportDelivery(this: CliContext, flags: ReportFlags, subscription?: string): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const only = subscription === undefined ? undefined : await lookUp(session.store, 'subscriptions', subscription)
  const names = new Map((await session.store.list('subscriptions')).map((sub) => [sub.id, sub.name]))
  const rows = await readRows(join(session.stateDir, ...REPORT_FILE), {
    fromMs: parseSince(flags.since ?? '24h', session.nowMs),
    ...(only === undefined ? {} : { subscriptionId: only.id }),
  })
  const by = flags.by ?? 'hour'
  printList(this, flags, {
    rows: sumDelivery(rows, by),
    empty: 'nothing was sent in this period',
    columns: [
      ...(by === 'total' ? [] : [FROM_COLUMN]),
      { title: 'SUBSCRIPTION', value: (row) => names.get(row.subscriptionId) ?? row.subscriptionId },
      { title: 'PACKETS', value: (row) => row.packets },
      { title: 'BYTES', value: (row) => row.bytes, show: (row) => printBytesShort(row.bytes) },
      { title: 'SLOTS', value: (row) => row.slots },
      { title: 'FIRST SLOT', value: (row) => row.firstSlot, wide: true },
      { title: 'LAST SLOT', value: (row) => row.lastSlot, wide: true },
      { title: 'OVER RATE', wire: 'unsent_rate', value: (row) => row.unsentRate },
      { title: 'OVER TOTAL', wire: 'unsent_total_rate', value: (row) => row.unsentTotalRate },
      { title: 'BUFFER FULL', wire: 'unsent_buffer', value: (row) => row.unsentBuffer },
      { title: 'PAUSED', wire: 'unsent_paused', value: (row) => row.unsentPaused },
      { title: 'ERRORS', wire: 'unsent_error', value: (row) => row.unsentError },
      { title: 'REFUSALS', value: (row) => row.refusals },
      { title: 'DUPLICATES', wire: 'duplicates_suppressed', value: (row) => row.duplicates },
    ],
  })
}

async function readRows(file: string, filter: { fromMs: number; subscriptionId?: string }): Promise<DeliveryRow[]> {
  if (!existsSync(file)) return []
  await using store = await openReportStore(file, { clock: systemClock, random: secureRandom, create: false })
  return store.list(filter)
}
