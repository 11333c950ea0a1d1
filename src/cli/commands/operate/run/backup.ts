import { checkBackup } from '../../../../access/backup/restore.ts'
import type { BackupSummary } from '../../../../access/backup/summary.ts'
import { createFileAtomic } from '../../../../platform/files/atomic.ts'
import { systemClock } from '../../../../platform/process/clock.ts'
import { VERSION } from '../../../../processes/compose/process/version.ts'
import type { CliContext, CommonFlags } from '../../../define.ts'
import { printFacts, printJson, write } from '../../../output/print.ts'
import { openSession } from '../../../session.ts'

export async function backup(this: CliContext, flags: CommonFlags, file: string): Promise<void> {
  await using session = await openSession(this, flags, 'read')
  const facts = { madeAtMs: systemClock.nowMs(), version: VERSION }
  await createFileAtomic(file, (put) => session.store.backup(put, facts))
  // A backup counts only if it can be read back.
  const summary = await checkBackup(file)
  if (flags.json === true) return printJson(this, summaryWire(file, summary))
  printFacts(this, summaryFacts(summary))
  write(this, `${file} written (mode 0600) and read back; restore it with: sluice restore ${file}`)
}

export function summaryWire(file: string, { header, counts, sha256 }: BackupSummary): object {
  return { file, ...header, counts, sha256 }
}

export function summaryFacts({ header, counts, sha256 }: BackupSummary): (readonly [string, string | number])[] {
  const count = (kind: string) => counts[kind] ?? 0
  return [
    ['made', `${header.made_at} by Sluice ${header.version}`],
    ['revision', header.revision],
    [
      'customers',
      `${count('customers')} customers, ${count('subscriptions')} subscriptions, ${count('tokens')} token hashes, ${count('usage')} hours of usage`,
    ],
    ['audit', `${header.audit.seq} lines, chain complete`],
    ['sha256', sha256],
  ]
}
