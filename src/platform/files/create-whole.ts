import { link, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { isServiceError, messageOf, ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import { secureRandom } from '../process/random.ts'
import { fileError } from './error.ts'
import { syncPath } from './sync-path.ts'

const WRITE_CHARS = 256 * 1024

/**
 * Makes a file that is whole or not there: written under another name, on the disk, then linked into place. A file that is there already is never
 * touched. Only its owner may read it.
 */
export async function createWholeFile<T>(
  path: string,
  write: (put: (text: string) => Promise<void>) => Promise<T>,
  deps: { readonly random?: Random } = {},
): Promise<T> {
  const draft = `${path}.${Buffer.from((deps.random ?? secureRandom).bytes(6)).toString('hex')}.tmp`
  try {
    const file = await open(draft, 'wx', 0o600)
    let waiting = ''
    let result: T
    try {
      result = await write(async (text) => {
        waiting += text
        if (waiting.length < WRITE_CHARS) return
        await file.appendFile(waiting)
        waiting = ''
      })
      await file.appendFile(waiting)
      await file.sync()
    } finally {
      await file.close()
    }
    await link(draft, path)
    await syncPath(dirname(path))
    return result
  } catch (error) {
    throw isServiceError(error) ? error : createError(error as NodeJS.ErrnoException, path)
  } finally {
    await unlink(draft).catch(() => {})
  }
}

function createError(error: NodeJS.ErrnoException, path: string): unknown {
  if (error.code === 'EEXIST') {
    return new ServiceError('already-exists', `${path} is there already`, {
      fix: 'Name a new file; one that is there is never replaced.',
    })
  }
  if (error.code === 'ENOENT' || error.code === 'ENOTDIR') {
    return new ServiceError('not-found', `there is no folder ${dirname(path)}: ${messageOf(error)}`, {
      fix: `Make it (mkdir -p ${dirname(path)}), or name a file in a folder that is there.`,
    })
  }
  return fileError(error, path)
}
