import { type FileHandle, open } from 'node:fs/promises'
import { ServiceError } from '../../core/error.ts'
import { type SqliteLocation, sqliteError } from './sqlite-error.ts'

/** Marks a file as Sluice's (https://www.sqlite.org/fileformat.html, offset 68): the letters SLUI. */
export const APPLICATION_ID = 0x534c5549
const APPLICATION_ID_AT = 68
const HEADER_BYTES = 100
const HEADER_MAGIC = 'SQLite format 3\0'

export function positionOf(file: string): SqliteLocation {
  return {
    file,
    restoreAdvice: `Restore a backup of ${file}: sluice restore BACKUP --force && sluice doctor`,
  }
}

export function corrupt({ file, restoreAdvice }: SqliteLocation, what: string): ServiceError {
  return new ServiceError('store-corrupt', `${file}: ${what}`, {
    fields: { file },
    fix: restoreAdvice,
  })
}

/** Whether a database file, or a part of one, exists. */
export async function sqliteFileExists(file: string): Promise<boolean> {
  for (const path of [file, `${file}-wal`]) {
    const handle = await openIfThere(path)
    await handle?.close()
    if (handle) return true
  }
  return false
}

/** Refuses a file that is not a database of Sluice before SQLite opens it: SQLite treats an empty file as a new database. */
export async function checkHeader(position: SqliteLocation): Promise<void> {
  const handle = await openIfThere(position.file)
  if (!handle) throw corrupt(position, 'the file is gone')
  const header = Buffer.alloc(HEADER_BYTES)
  let bytesRead: number
  try {
    bytesRead = (await handle.read(header, 0, HEADER_BYTES, 0)).bytesRead
  } catch (error) {
    throw sqliteError(error, position)
  } finally {
    await handle.close()
  }
  if (bytesRead === 0) throw corrupt(position, 'the file is empty; a store never is')
  if (bytesRead < HEADER_BYTES) throw corrupt(position, `the file ends at byte ${bytesRead}, inside its header`)
  if (header.toString('latin1', 0, HEADER_MAGIC.length) !== HEADER_MAGIC) {
    throw corrupt(position, 'the header at byte 0 is not that of a database')
  }
  if (header.readUInt32BE(APPLICATION_ID_AT) !== APPLICATION_ID) {
    throw corrupt(position, `the mark at byte ${APPLICATION_ID_AT} is not that of a file made by Sluice`)
  }
}

async function openIfThere(path: string): Promise<FileHandle | undefined> {
  try {
    return await open(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw sqliteError(error, positionOf(path))
  }
}
