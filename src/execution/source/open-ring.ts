import { ServiceError } from '../../core/error.ts'
import type { RingRefusal } from '../../evm/ring/layout.ts'
import { createRingReader, type RingReader } from '../../evm/ring/reader.ts'
import { isHeldByWriter } from '../../platform/ring-file/lock.ts'
import { openRingFile, type RingFile } from '../../platform/ring-file/reader.ts'
import { isCompressed, openCompressedSnapshot } from '../../platform/ring-file/snapshot.ts'

/** A ring a tool looks at: one that a node writes, a file nobody writes any more, or a compressed snapshot. */
export type RingForm = 'live' | 'file' | 'zstd'

export type ToolRing = Disposable & { readonly path: string; readonly form: RingForm; readonly file: RingFile }

/** Opens what lies at a path. Throws in words when there is nothing, or nothing that may be read. */
export async function openToolRing(path: string): Promise<ToolRing> {
  try {
    const form: RingForm = isCompressed(path) ? 'zstd' : isHeldByWriter(path) === true ? 'live' : 'file'
    const file =
      form === 'zstd' ? await openCompressedSnapshot(path) : openRingFile(path, { isSnapshot: form === 'file' })
    if (file === undefined) throw new ServiceError('not-found', `there is no file ${path}`, { fix: 'Check the path.' })
    return { path, form, file, [Symbol.dispose]: () => file.close() }
  } catch (error) {
    if (error instanceof ServiceError) throw error
    const words = error instanceof Error ? error.message : String(error)
    throw new ServiceError('ring-unreadable', `${path} cannot be read: ${words}`, { cause: error })
  }
}

/** A reader from the oldest block that the ring holds whole. A file of another format is refused in words. */
export function readToolRing({ path, file }: ToolRing): RingReader {
  const created = createRingReader(file, 'oldest')
  if (!created.ok) throw refusalError(path, created)
  return created.reader
}

export function refusalError(path: string, { reason, message }: RingRefusal): ServiceError {
  return new ServiceError('ring-unreadable', `${path}: ${message}`, { fields: { reason } })
}
