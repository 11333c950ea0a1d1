import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BackupExtra } from '../../../access/backup/summary.ts'
import { writeFileAtomic } from '../../../platform/files/atomic.ts'
import { openNumberFile } from '../../../platform/files/number.ts'
import type { StateFolder } from '../../../platform/files/state-folder.ts'
import { JOURNAL_NAMES } from '../../../sender/receipts/journal.ts'
import { putCountedTips } from '../../../sender/tips/counted-tips.ts'
import { putTipDays } from '../../../sender/tips/days.ts'
import { createLedgerFile } from '../../../sender/tips/ledger-file.ts'
import { openReportStore } from '../../../shreds/report/store.ts'
import { REPORT_FILE } from '../services/shreds.ts'
import { keepAside, keepLinked, putInPlace } from './restored-files.ts'
import {
  type ContentDeps,
  findOtherKeys,
  restoredReports,
  restoredSeq,
  restoredTips,
  SEQ_FILE,
  type SecretKeys,
  TIPS_FILE,
} from './state-content.ts'

/** What a restore brings back beside the access store. */
type RestoredContent = { readonly extras: readonly BackupExtra[]; readonly keys: SecretKeys | undefined }

/** The files that a restore would replace. */
export async function findReplaced(state: StateFolder, { extras, keys }: RestoredContent): Promise<string[]> {
  const reports = state.file(...REPORT_FILE)
  const hasReports = restoredReports(extras) !== undefined && existsSync(reports)
  const tips = state.file(...TIPS_FILE)
  const hasTips = restoredTips(extras).days.length > 0 && existsSync(tips)
  return [...(await findOtherKeys(state.path, keys)), ...(hasReports ? [reports] : []), ...(hasTips ? [tips] : [])]
}

/**
 * Writes keys, sequence number, delivery reports and tips of a backup; what they replace is kept beside them. Each file is complete or absent, so a restore
 * that was interrupted can be repeated. Returns the paths of the files that were kept.
 */
export async function putStateContent(
  state: StateFolder,
  { extras, keys }: RestoredContent,
  { stamp, ...deps }: ContentDeps & { readonly stamp: string },
): Promise<string[]> {
  const kept: string[] = []
  for (const { name, text } of keys?.files ?? []) {
    const path = join(await state.folder('keys'), name)
    if (existsSync(path) && readFileSync(path, 'utf8') === text) continue
    kept.push(...(await keepLinked(path, stamp)))
    await writeFileAtomic(path, text, { mode: 0o600 })
  }
  const seq = restoredSeq(extras, deps.clock.nowMs())
  if (seq !== undefined) {
    await state.folder(SEQ_FILE[0])
    const file = openNumberFile(state.file(...SEQ_FILE))
    file.write(Math.max(seq, file.read() ?? 0))
  }
  const restored = restoredReports(extras)
  if (restored !== undefined) {
    await state.folder(REPORT_FILE[0])
    const file = state.file(...REPORT_FILE)
    const draft = `${file}.restored-${stamp}`
    {
      await using reports = await openReportStore(draft, { ...deps, create: true })
      await reports.add(restored.rows, restored.delays)
    }
    kept.push(...(await putInPlace(draft, file, stamp)))
  }
  const { days, counted } = restoredTips(extras)
  if (days.length > 0) {
    await state.folder(TIPS_FILE[0])
    const file = state.file(...TIPS_FILE)
    const draft = `${file}.restored-${stamp}`
    await createLedgerFile(draft, deps, async (tx) => {
      await putTipDays(tx, days)
      if (counted !== undefined) await putCountedTips(tx, counted)
    })
    // A backup of an earlier version does not list what it has counted: the whole journal would be counted again.
    if (counted === undefined) {
      for (const name of JOURNAL_NAMES) kept.push(...(await keepAside(state.file(TIPS_FILE[0], name), stamp)))
    }
    kept.push(...(await putInPlace(draft, file, stamp)))
  }
  return kept
}
