import { closeSync, fsyncSync, openSync, renameSync, writeSync } from 'node:fs'
import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isServiceError, messageOf, ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { secureRandom } from '../process/random.ts'
import { fileError } from './error.ts'
import { linkOrMove, type MakeLink } from './link.ts'

export type FileOptions = { mode?: number; random?: Random }

const WRITE_CHARS = 256 * 1024

/**
 * Replaces the file: readers see the old content or the new, also after a crash at any point. Content and name are on the disk before this
 * returns.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: FileOptions = {},
): Promise<void> {
  const temporary = temporaryOf(path, options.random)
  try {
    await writeNew(temporary, data, options.mode ?? 0o600)
    await renameDurably(temporary, path)
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw writeError(path, error)
  }
}

/** The system calls of `writeFileAtomicSync`; tests record them. */
export type AtomicWriteCalls = {
  openSync(path: string, flags: 'w' | 'r', mode?: number): number
  writeSync(descriptor: number, text: string): number
  fsyncSync(descriptor: number): void
  closeSync(descriptor: number): void
  renameSync(from: string, to: string): void
}

const SYSTEM_CALLS: AtomicWriteCalls = { openSync, writeSync, fsyncSync, closeSync, renameSync }

/** As `writeFileAtomic`, for a small text and a single writer: a temporary file that a crash left behind is overwritten. */
export function writeFileAtomicSync(path: string, text: string, calls: AtomicWriteCalls = SYSTEM_CALLS): void {
  const temporary = `${path}.next`
  withDescriptor(calls.openSync(temporary, 'w', 0o600), calls, (descriptor) => {
    calls.writeSync(descriptor, text)
    calls.fsyncSync(descriptor)
  })
  calls.renameSync(temporary, path)
  withDescriptor(calls.openSync(dirname(path), 'r'), calls, calls.fsyncSync)
}

function withDescriptor(descriptor: number, calls: AtomicWriteCalls, run: (descriptor: number) => void): void {
  try {
    run(descriptor)
  } finally {
    calls.closeSync(descriptor)
  }
}

/**
 * Creates a file that is complete or absent, also after a crash: written under a temporary name, synced, then linked. An existing file is never
 * replaced. Only its owner may read it.
 */
export async function createFileAtomic<T>(
  path: string,
  write: (put: (text: string) => Promise<void>) => Promise<T>,
  deps: { readonly random?: Random; readonly link?: MakeLink } = {},
): Promise<T> {
  const temporary = temporaryOf(path, deps.random)
  try {
    const result = await writeStreamed(temporary, write)
    await linkOrMove(temporary, path, deps.link)
    await syncPath(dirname(path))
    return result
  } catch (error) {
    throw isServiceError(error) ? error : createError(error as NodeJS.ErrnoException, path)
  } finally {
    await unlink(temporary).catch(() => {})
  }
}

/** A rename is durable only once the folder that holds the name is synced. */
export async function renameDurably(from: string, to: string): Promise<void> {
  await rename(from, to)
  await syncPath(dirname(to))
}

/** Resolves when the content of a file, or the names in a folder, are on the disk. */
export async function syncPath(path: string): Promise<void> {
  await using handle = await open(path, 'r')
  await handle.sync()
}

function temporaryOf(path: string, random: Random = secureRandom): string {
  return `${path}.${Buffer.from(random.bytes(6)).toString('hex')}.tmp`
}

async function writeNew(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  // 'wx' follows no link and opens no file that another user may have put there to read along.
  await using file: FileHandle = await open(path, 'wx', mode)
  await file.writeFile(data)
  await file.sync()
}

async function writeStreamed<T>(path: string, write: (put: (text: string) => Promise<void>) => Promise<T>): Promise<T> {
  await using file = await open(path, 'wx', 0o600)
  let buffered = ''
  const result = await write(async (text) => {
    buffered += text
    if (buffered.length < WRITE_CHARS) return
    await file.appendFile(buffered)
    buffered = ''
  })
  await file.appendFile(buffered)
  await file.sync()
  return result
}

function writeError(path: string, error: unknown): ServiceError {
  return new ServiceError('state-unwritable', `${path} cannot be written: ${messageOf(error)}`, {
    fields: { path },
    fix: `Check the free space and the rights on ${dirname(path)}.`,
    cause: error,
  })
}

/** The error of a new file at a path that is taken. */
export function alreadyExists(path: string): ServiceError {
  return new ServiceError('already-exists', `${path} already exists`, {
    fix: 'Name a new file; an existing one is never replaced.',
  })
}

function createError(error: NodeJS.ErrnoException, path: string): unknown {
  if (error.code === 'EEXIST') {
    return alreadyExists(path)
  }
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') {
    return new ServiceError('not-found', `there is no folder ${dirname(path)}: ${messageOf(error)}`, {
      fix: `Make it (mkdir -p ${dirname(path)}), or name a file in an existing folder.`,
    })
  }
  return fileError(error, path)
}
