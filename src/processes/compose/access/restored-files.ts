import { existsSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { AUDIT_LINE_BYTES_MAX, type AuditHead, readLink } from '../../../access/audit/line.ts'
import { openSqlite } from '../../../platform/db/sqlite.ts'
import { openAppendFile } from '../../../platform/files/append.ts'
import { renameDurably } from '../../../platform/files/atomic.ts'
import { linkOrCopy } from '../../../platform/files/link.ts'
import { systemClock } from '../../../platform/process/clock.ts'

/**
 * Replaces a database file and keeps the old one beside it. A file exists under the name at every moment: if the process is killed, the store is the old
 * one or the new one, never an empty one. Returns the paths of the old files.
 */
export async function putInPlace(draft: string, file: string, stamp: string): Promise<string[]> {
  if (existsSync(file)) await foldWal(file)
  const kept = [...(await keepLinked(file, stamp)), ...(await keepLinked(file, stamp, '-wal'))]
  // SQLite would apply the WAL of the old file to the new one.
  for (const ending of ['-wal', '-shm']) await rm(file + ending, { force: true })
  await renameDurably(draft, file)
  return kept
}

/** Keeps a file, if it exists, under a second name: it stays where it is until it is replaced. Returns the new path. */
export async function keepLinked(file: string, stamp: string, ending = ''): Promise<string[]> {
  if (!existsSync(file + ending)) return []
  const aside = `${keptName(file, stamp)}${ending}`
  await linkOrCopy(file + ending, aside)
  return [aside]
}

/** Renames a file, if it exists. Returns the new path. */
export async function keepAside(file: string, stamp: string): Promise<string[]> {
  if (!existsSync(file)) return []
  const aside = keptName(file, stamp)
  await renameDurably(file, aside)
  return [aside]
}

function keptName(file: string, stamp: string): string {
  return `${file}.before-restore-${stamp}`
}

/** Number of changes in an audit file after this line of the same chain. */
export async function countLaterChanges(auditFile: string, { seq }: AuditHead): Promise<number> {
  await using file = await openAppendFile(auditFile, 'read')
  if (file === undefined) return 0
  let later = 0
  for await (const { bytes, ended } of file.lines(0, AUDIT_LINE_BYTES_MAX))
    if (ended && (readLink(bytes)?.seq ?? 0) > seq) later += 1
  return later
}

/** Checkpoints the WAL of a sound database; a damaged one is kept unchanged. */
async function foldWal(file: string): Promise<void> {
  try {
    await using database = await openSqlite({ file }, { clock: systemClock })
    await database.rows('PRAGMA wal_checkpoint(TRUNCATE)')
  } catch {
    // A damaged database is kept with its WAL.
  }
}
