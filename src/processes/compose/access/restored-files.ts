import { existsSync } from 'node:fs'
import { link, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { AUDIT_LINE_BYTES_MAX, type AuditHead, readLink } from '../../../access/audit/line.ts'
import { openSqlite } from '../../../platform/db/sqlite.ts'
import { openAppendFile } from '../../../platform/files/append.ts'
import { syncPath } from '../../../platform/files/sync-path.ts'
import { systemClock } from '../../../platform/process/clock.ts'

/**
 * Puts a new database file in the place of another, which is kept beside it. At every moment there is a file under the name: killed anywhere, the
 * store is the old one or the new one and never an empty one. Returns what was kept.
 */
export async function putInPlace(draft: string, file: string, stamp: string): Promise<string[]> {
  const kept: string[] = []
  if (existsSync(file)) await foldWal(file)
  for (const ending of ['', '-wal']) {
    if (!existsSync(file + ending)) continue
    const aside = `${keptName(file, stamp)}${ending}`
    await link(file + ending, aside)
    kept.push(aside)
  }
  // A log of the old file would be taken for one of the new.
  for (const ending of ['-wal', '-shm']) await rm(file + ending, { force: true })
  await rename(draft, file)
  await syncPath(dirname(file))
  return kept
}

/** Gives a file another name, where it is there. Returns the new name. */
export async function keepAside(file: string, stamp: string): Promise<string[]> {
  if (!existsSync(file)) return []
  const aside = keptName(file, stamp)
  await rename(file, aside)
  await syncPath(dirname(file))
  return [aside]
}

function keptName(file: string, stamp: string): string {
  return `${file}.before-restore-${stamp}`
}

/** Changes in an audit file that came after this line of the same chain. */
export async function countLaterChanges(auditFile: string, { seq }: AuditHead): Promise<number> {
  await using file = await openAppendFile(auditFile, 'read')
  if (file === undefined) return 0
  let later = 0
  for await (const { bytes, ended } of file.lines(0, AUDIT_LINE_BYTES_MAX))
    if (ended && (readLink(bytes)?.seq ?? 0) > seq) later += 1
  return later
}

/** What is still in the log of a sound database goes into its file; a damaged one is kept as it is. */
async function foldWal(file: string): Promise<void> {
  try {
    await using database = await openSqlite({ file }, { clock: systemClock })
    await database.rows('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // It is kept with its log, and that is all that can be done for it.
  }
}
