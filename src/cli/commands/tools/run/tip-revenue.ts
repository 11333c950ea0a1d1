import { join } from 'node:path'
import { parseSince } from '../../../../contract/dates.ts'
import { ServiceError } from '../../../../core/error.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { openLedgerToRead } from '../../../../sender/tips/ledger-file.ts'
import { readTips, type TipGroup } from '../../../../sender/tips/report.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { findSettings } from '../../../find-settings.ts'
import { printList } from '../../../output/print.ts'

type RevenueFlags = ListFlags & { since?: string; until?: string; by?: TipGroup }

export async function tipRevenue(this: CliContext, flags: RevenueFlags): Promise<void> {
  const { stateDir } = await findSettings(this, flags)
  const nowMs = systemClock.nowMs()
  const fromMs = parseSince(flags.since ?? '30d', nowMs)
  const toMs = flags.until === undefined ? nowMs : parseSince(flags.until, nowMs)
  if (toMs < fromMs) throw new ServiceError('invalid-value', '--until is before --since')
  const by = flags.by ?? 'day'
  await using database = await openLedgerToRead(join(stateDir, 'sender'), { clock: systemClock })
  const rows = database === undefined ? [] : await readTips(database, { fromMs, toMs, by })
  printList(this, flags, {
    rows,
    empty:
      database === undefined ? 'no tips yet: the sender has not run with this state folder' : 'no tips in this period',
    columns: [
      { title: by.toUpperCase(), value: (row) => row.group },
      { title: 'TIPS', wire: 'tip_lamports', value: (row) => row.tipLamports, show: (row) => solOf(row.tipLamports) },
      { title: 'LANDED', value: (row) => row.landed },
      {
        title: 'OFFERED',
        wire: 'offered_lamports',
        value: (row) => row.offeredLamports,
        show: (row) => solOf(row.offeredLamports),
      },
      { title: 'ACCEPTED', value: (row) => row.accepted },
      { title: 'FAILED', value: (row) => row.failed },
      { title: 'EXPIRED', value: (row) => row.expired },
    ],
  })
}

function solOf(lamports: number): string {
  return `${(lamports / 1e9).toFixed(9)} SOL`
}
