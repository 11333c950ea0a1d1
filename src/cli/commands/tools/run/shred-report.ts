import { LOCAL_FLAGS } from '../../../../contract/local-commands.ts'
import { ServiceError } from '../../../../core/error.ts'
import { printBytesShort } from '../../../../core/human-units.ts'
import { openControl } from '../../../control.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { destinations } from '../../../operations/destinations.ts'
import { openOperations } from '../../../operations/open.ts'
import { FROM_COLUMN, printList } from '../../../output/print.ts'
import { staysLocal } from '../../../remote/target.ts'

export type ReportFlags = ListFlags & { since?: string; by?: 'hour' | 'day' | 'total'; decoded?: boolean }

/** Delivery per subscription and hour. */
export async function reportDelivery(this: CliContext, flags: ReportFlags, subscription?: string): Promise<void> {
  if (flags.decoded === true) return reportDecoded(this, flags)
  await using on = await openOperations(destinations, this, flags, 'read')
  const by = flags.by ?? 'hour'
  printList(this, flags, {
    rows: await on.report({ subscription, since: flags.since ?? '24h', by }),
    empty: 'nothing was sent in this period',
    columns: [
      ...(by === 'total' ? [] : [FROM_COLUMN]),
      { title: 'SUBSCRIPTION', value: (row) => row.subscription },
      { title: 'PACKETS', value: (row) => row.packets },
      { title: 'BYTES', value: (row) => row.bytes, show: (row) => printBytesShort(row.bytes) },
      { title: 'SLOTS', value: (row) => row.slots },
      { title: 'FIRST SLOT', value: (row) => row.firstSlot, wide: true },
      { title: 'LAST SLOT', value: (row) => row.lastSlot, wide: true },
      { title: 'P50 MS', wire: 'delay_p50_ms', value: (row) => row.delayP50Ms },
      { title: 'P99 MS', wire: 'delay_p99_ms', value: (row) => row.delayP99Ms },
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

const DECODED = 'shred report --decoded'

/** The newest slots of ShredStream Decoded, from the running process. */
async function reportDecoded(context: CliContext, flags: ReportFlags): Promise<void> {
  if (context.remote !== undefined) throw staysLocal(DECODED, LOCAL_FLAGS[DECODED] ?? '')
  using client = await openControl(context, flags)
  const report = await client.call('decoded')
  if (report === null)
    throw new ServiceError('not-found', 'ShredStream Decoded is off', {
      fix: 'Set [products.shreds-decoded] status = "preview" and restart sluice serve.',
    })
  printList(context, flags, {
    rows: report.slots,
    empty: 'no slot is closed yet',
    columns: [
      { title: 'SLOT', value: (row) => row.slot },
      { title: 'PARENT', wire: 'parent_slot', value: (row) => row.parent_slot, wide: true },
      {
        title: 'COMPLETE',
        wire: 'is_complete',
        value: (row) => row.is_complete,
        show: (row) => (row.is_complete ? 'yes' : 'no'),
      },
      { title: 'TRANSACTIONS', value: (row) => row.transactions },
      { title: 'DATA SETS', value: (row) => row.data_sets },
      { title: 'LOST', wire: 'data_sets_lost', value: (row) => row.data_sets_lost },
      { title: 'RECOVERED', wire: 'fec_sets_recovered', value: (row) => row.fec_sets_recovered },
      { title: 'NOT RECOVERABLE', wire: 'fec_sets_not_recoverable', value: (row) => row.fec_sets_not_recoverable },
      { title: 'CONFLICTING', wire: 'is_conflicting', value: (row) => row.is_conflicting, wide: true },
      { title: 'FIRST SHRED', wire: 'first_shred_at', value: (row) => row.first_shred_at, wide: true },
      { title: 'LAST SHRED', wire: 'last_shred_at', value: (row) => row.last_shred_at },
    ],
  })
}
