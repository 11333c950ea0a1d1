import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { messageOf, ServiceError } from '../../core/error.ts'
import { fileError } from '../files/error.ts'

/** Result codes of SQLite (https://www.sqlite.org/rescode.html); the low byte of an extended code is its primary code. */
const BUSY = 5
const LOCKED = 6
const READONLY = 8
const IOERR = 10
const CORRUPT = 11
const FULL = 13
const CANTOPEN = 14
const NOTADB = 26

const CONSTRAINT_UNIQUE = 2067
const CONSTRAINT_PRIMARYKEY = 1555

/** Below this much free space an I/O error is reported as a full disk. */
const FREE_BYTES_LOW = 64 * 1024

/** The name of a database, and what the operator does when it is damaged. */
export type SqliteLocation = { readonly file: string; readonly restoreAdvice: string }

type SqliteFault = Error & { errcode: number }

function isSqliteFault(error: unknown): error is SqliteFault {
  return error instanceof Error && typeof (error as Partial<SqliteFault>).errcode === 'number'
}

/** Translates errors of SQLite and of the file system to ServiceError; returns a mistake in a statement unchanged. */
export function sqliteError(error: unknown, { file, restoreAdvice }: SqliteLocation): unknown {
  const options = { fields: { file }, cause: error }
  const message = messageOf(error)
  const damaged = () => new ServiceError('store-corrupt', `${file}: ${message}`, { ...options, fix: restoreAdvice })
  // No number of ours is that large.
  if ((error as NodeJS.ErrnoException).code === 'ERR_OUT_OF_RANGE') return damaged()
  if (!isSqliteFault(error)) return fileError(error, file)
  if (error.errcode === CONSTRAINT_UNIQUE || error.errcode === CONSTRAINT_PRIMARYKEY) {
    return new ServiceError('already-exists', message, options)
  }
  switch (error.errcode & 0xff) {
    case BUSY:
    case LOCKED:
      return new ServiceError('store-locked', `${file} is being written by another process`, options)
    case FULL:
      return new ServiceError('disk-full', `no space is left on the disk of ${file}`, options)
    case CORRUPT:
    case NOTADB:
      return damaged()
    case CANTOPEN:
    case READONLY:
      // On a full disk the files beside the database cannot be created either.
      if (isDiskFull(file)) return new ServiceError('disk-full', `no space is left on the disk of ${file}`, options)
      return new ServiceError('state-unwritable', `${file} cannot be opened for writing: ${message}`, options)
    case IOERR:
      if (isDiskFull(file)) return new ServiceError('disk-full', `no space is left on the disk of ${file}`, options)
      return new ServiceError('store-unavailable', `${file} cannot be read or written: ${message}`, options)
    default:
      return error
  }
}

function isDiskFull(file: string): boolean {
  try {
    const { bavail, bsize } = statfsSync(dirname(file))
    return bavail * bsize < FREE_BYTES_LOW
  } catch {
    return false
  }
}
