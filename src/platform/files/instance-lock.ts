import { existsSync, readFileSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { isServiceError, messageOf, ServiceError } from '../../core/error.ts'
import type { StateFolder } from './state-folder.ts'

export type InstanceLock = Disposable & { readonly path: string }

const SQLITE_BUSY = 5
const SQLITE_FULL = 13

/**
 * Ensures one process per state folder. The lock is an exclusive SQLite transaction on its own file: the kernel releases it
 * when the process ends for any reason, so there are no stale locks.
 *
 * SQLite's locks belong to the process, and closing any descriptor of the file would release them. So nothing else may open
 * `lock`; `lock.pid` beside it names the holder.
 */
export function takeInstanceLock(state: Pick<StateFolder, 'path' | 'file'>): InstanceLock {
  const lock = lockFile(state)
  try {
    writeFileSync(state.file('lock.pid'), `${process.pid}\n`, { mode: 0o600 })
    return lock
  } catch (error) {
    lock[Symbol.dispose]()
    throw unwritable(state.path, error)
  }
}

/** Whether a process holds the lock of this folder. */
export function isInstanceLocked(state: Pick<StateFolder, 'path' | 'file'>): boolean {
  if (!existsSync(state.file('lock'))) return false
  try {
    lockFile(state)[Symbol.dispose]()
    return false
  } catch (error) {
    if (isServiceError(error, 'instance-running')) return true
    throw error
  }
}

function lockFile(state: Pick<StateFolder, 'path' | 'file'>): InstanceLock {
  const path = state.file('lock')
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path)
    database.exec('PRAGMA journal_mode = DELETE; PRAGMA busy_timeout = 0; BEGIN EXCLUSIVE')
  } catch (error) {
    database?.close()
    if ((error as { errcode?: number }).errcode === SQLITE_BUSY) {
      throw heldError(state.path, state.file('lock.pid'), error)
    }
    if ((error as { errcode?: number }).errcode === SQLITE_FULL) {
      throw new ServiceError('disk-full', `the disk of ${state.path} is full`, { fields: { path }, cause: error })
    }
    throw unwritable(state.path, error)
  }
  const held = database
  return {
    path,
    [Symbol.dispose]() {
      if (held.isOpen) held.close()
    },
  }
}

function unwritable(folder: string, cause: unknown): ServiceError {
  return new ServiceError('state-unwritable', `state folder ${folder} cannot be locked: ${messageOf(cause)}`, {
    fields: { folder },
    fix: `Check that the service user may write ${folder} and that its file system supports locks.`,
    cause,
  })
}

function heldError(folder: string, pidPath: string, cause: unknown): ServiceError {
  const pid = readPid(pidPath)
  const holder = pid === undefined ? 'another process' : `process ${pid}`
  return new ServiceError('instance-running', `${holder} already runs on the state folder ${folder}`, {
    fields: { folder, pid },
    fix: `Stop it first (sluice drain${pid === undefined ? '' : `, or kill -TERM ${pid}`}), or give this one a folder of its own with --state.`,
    cause,
  })
}

function readPid(path: string): number | undefined {
  try {
    const pid = Number(readFileSync(path, 'utf8').trim())
    return Number.isSafeInteger(pid) && pid > 0 ? pid : undefined
  } catch {
    return undefined
  }
}
