import { closeSync, ftruncateSync, linkSync, openSync, unlinkSync, writeSync } from 'node:fs'
import type { FileMapper } from '../files/mapped.ts'
import { openIfThere } from '../files/optional.ts'

/** A new file that others read while it is written, by position or through a mapping. */
export type RingFileWriter = Disposable & {
  readonly path: string
  write(position: number, bytes: Uint8Array): void
  /** Present when the file is mapped: writes eight bytes atomically, after all earlier writes. */
  readonly storeU64?: (position: number, value: number) => void
}

export type NewRingFile = {
  /** The length of the file; it is sparse until it is written. */
  bytes: number
  header: Uint8Array
  /** With it the file is locked while it is written, so that a second writer is refused. */
  mapper?: FileMapper
  /** Writes through the mapping. A full disk then ends the process, where a positional write throws. */
  isMapped?: boolean
}

/** Readable by all users, as a node creates it; the folder restricts access. */
const MODE = 0o664

/**
 * Creates a ring file as a node does: removes the file of a dead writer, completes the new one under a temporary name and links it, which
 * replaces nothing. Throws when a live writer holds the file. Disposing removes the file.
 */
export function createRingFile(path: string, { bytes, header, mapper, isMapped = false }: NewRingFile): RingFileWriter {
  removeAbandoned(path, mapper)
  const ownPath = `${path}.${process.pid}`
  removeIfThere(ownPath)
  const descriptor = openSync(ownPath, 'wx+', MODE)
  try {
    if (mapper?.ok === true) mapper.tryLock(descriptor)
    ftruncateSync(descriptor, bytes)
    writeAll(descriptor, header, 0)
    linkSync(ownPath, path)
  } catch (error) {
    closeSync(descriptor)
    throw error
  } finally {
    removeIfThere(ownPath)
  }
  const mapped = isMapped && mapper?.ok === true ? mapper.map(descriptor, { isWritable: true }) : undefined
  let isOpen = true
  return {
    path,
    write: mapped?.write ?? ((position, given) => writeAll(descriptor, given, position)),
    ...(mapped === undefined ? {} : { storeU64: mapped.storeU64 }),
    [Symbol.dispose]() {
      if (!isOpen) return
      isOpen = false
      removeIfThere(path)
      mapped?.close()
      closeSync(descriptor)
    },
  }
}

function removeAbandoned(path: string, mapper: FileMapper | undefined): void {
  const descriptor = openIfThere(path)
  if (descriptor === undefined) return
  try {
    if (mapper?.ok === true && !mapper.tryLock(descriptor))
      throw new Error(`${path} is being written by another process`)
    removeIfThere(path)
  } finally {
    closeSync(descriptor)
  }
}

function removeIfThere(path: string): void {
  try {
    unlinkSync(path)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}

function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; ) {
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done)
  }
}
