import { type FileHandle, open, rename, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { messageOf, ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { secureRandom } from '../process/random.ts'

export type FileOptions = { mode?: number; random?: Random }

/**
 * Replaces the file as a whole: readers see the old text or the new, also after a crash at any point. The new text is on
 * the disk, and so is the name, before this returns.
 */
export async function writeFileAtomic(
  path: string,
  data: string | Uint8Array,
  options: FileOptions = {},
): Promise<void> {
  const suffix = Buffer.from((options.random ?? secureRandom).bytes(6)).toString('hex')
  const temporary = `${path}.${suffix}.tmp`
  try {
    await writeNew(temporary, data, options.mode ?? 0o600)
    await rename(temporary, path)
    await syncFolder(dirname(path))
  } catch (error) {
    await unlink(temporary).catch(() => {})
    throw writeError(path, error)
  }
}

/** Makes a file that must not be there yet, closed to all but its owner. */
export async function createFileExclusive(
  path: string,
  data: string | Uint8Array,
  options: FileOptions = {},
): Promise<void> {
  try {
    await writeNew(path, data, options.mode ?? 0o600)
    await syncFolder(dirname(path))
  } catch (error) {
    throw writeError(path, error)
  }
}

async function writeNew(path: string, data: string | Uint8Array, mode: number): Promise<void> {
  // 'wx' follows no link and replaces no file that somebody may have put there to read along.
  await using file: FileHandle = await open(path, 'wx', mode)
  await file.writeFile(data)
  await file.sync()
}

/** A rename is durable only once the folder that holds the name is. */
async function syncFolder(path: string): Promise<void> {
  await using folder = await open(path, 'r')
  await folder.sync()
}

function writeError(path: string, error: unknown): ServiceError {
  const exists = (error as NodeJS.ErrnoException).code === 'EEXIST'
  return new ServiceError('state-unwritable', `${path} cannot be written: ${messageOf(error)}`, {
    fields: { path },
    fix: exists ? `Remove ${path} or name another file.` : `Check the free space and the rights on ${dirname(path)}.`,
    cause: error,
  })
}
