import { closeSync, fstatSync, readFileSync, readSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { constants, zstdDecompressSync } from 'node:zlib'
import { type FileMapper, loadFileMapper, type MappedFile } from '../files/mapped.ts'
import { openIfThere } from '../files/open-optional.ts'

/**
 * A file read by position while another process writes it, or a snapshot of such a file. Reads happen in the order in which they are
 * called, and what lies behind the end reads as zero.
 */
export type RingFile = {
  readonly sizeBytes: number
  /** True for a snapshot: nobody writes it any more. */
  readonly isStatic: boolean
  /** How it is read: a copy for each read by the system, or memory that the file is mapped to. */
  readonly mode: 'positional' | 'mapped' | 'unpacked'
  read(position: number, target: Uint8Array, targetAt: number, length: number): void
  /** True when the path no longer leads to this file: its writer stopped, or another one took the place. */
  isReplaced(): boolean
  close(): void
}

export type RingFileOptions = {
  /** A plain file is live unless this is said; a compressed one is a snapshot in any case. */
  isSnapshot?: boolean
  /** A compressed snapshot that unpacks to more is refused. */
  unpackedBytesMax?: number
  /** Gives the bytes as they lie in the file, compressed or not. */
  isPlain?: boolean
  /** Reads a plain file through a mapping instead of by position, where the machine can. */
  mapper?: FileMapper
}

/** The largest ring that is unpacked: a ring of the node's default size has 642 MiB. */
const UNPACKED_BYTES_MAX = 2 ** 31

const ZSTD_MAGIC = Buffer.of(0x28, 0xb5, 0x2f, 0xfd)

/** Opens the file at a path; undefined when there is none. Other troubles, such as EACCES, are thrown and name the path. */
export function openRingFile(path: string, options: RingFileOptions = {}): RingFile | undefined {
  const descriptor = openIfThere(path)
  if (descriptor === undefined) return undefined
  try {
    const magic = Buffer.alloc(ZSTD_MAGIC.length)
    readSync(descriptor, magic, 0, magic.length, 0)
    if (options.isPlain === true || !magic.equals(ZSTD_MAGIC)) return openPlain(path, descriptor, options)
  } catch (error) {
    closeSync(descriptor)
    throw error
  }
  closeSync(descriptor)
  return unpack(path, options.unpackedBytesMax ?? UNPACKED_BYTES_MAX)
}

/** How an operator wants a live ring to be read. */
export type RingMode = 'auto' | 'mapped' | 'positional'

/**
 * What it takes to map the ring at a path, if that is wanted. `auto` maps where a node keeps its ring, on hugetlbfs: nothing but a program
 * made for it writes there, and its pages do not count as memory of this process. A file elsewhere may be cut by a careless `cp`; reading
 * it by position is safe whatever happens to it.
 */
export async function loadRingMapper(
  path: string,
  mode: RingMode,
  load: () => Promise<FileMapper> = loadFileMapper,
): Promise<FileMapper | undefined> {
  if (mode === 'positional' || (mode === 'auto' && !isOnHugetlbfs(path))) return undefined
  return load()
}

/** Opens a live ring, mapped where there is what that takes. Where it cannot be mapped even so, it is read by position. */
export function openLiveRing(path: string, mapper: FileMapper | undefined): RingFile | undefined {
  if (mapper?.ok !== true) return openRingFile(path)
  try {
    return openRingFile(path, { mapper })
  } catch {
    // Whatever it was: if the file is at fault, this says so again.
    return openRingFile(path)
  }
}

/** Of <linux/magic.h>. */
const HUGETLBFS_MAGIC = 0x958458f6

/** The ring may not be there yet; its folder tells as well. */
function isOnHugetlbfs(path: string): boolean {
  for (const position of [path, dirname(path)]) {
    try {
      return statfsSync(position).type === HUGETLBFS_MAGIC
    } catch {}
  }
  return false
}

function openPlain(path: string, descriptor: number, { isSnapshot = false, mapper }: RingFileOptions): RingFile {
  const { dev, ino, size } = fstatSync(descriptor, { bigint: true })
  // An empty file has nothing to map; it is refused by its reader, in words.
  const mapped = mapper?.ok === true && size > 0n ? mapFile(mapper, descriptor) : undefined
  return {
    sizeBytes: Number(size),
    isStatic: isSnapshot,
    mode: mapped === undefined ? 'positional' : 'mapped',
    read: mapped?.read ?? ((...range) => readAt(descriptor, ...range)),
    isReplaced() {
      const now = statSync(path, { bigint: true, throwIfNoEntry: false })
      return now === undefined || now.ino !== ino || now.dev !== dev
    },
    close() {
      mapped?.close()
      closeSync(descriptor)
    },
  }
}

/**
 * A file cut short under its mapping ends the process when the part that is gone is touched, so its length is asked before every copy
 * and what is gone reads as zero, as it does by position. A cut in the few microseconds between the two is not caught.
 */
function mapFile(mapper: FileMapper & { ok: true }, descriptor: number): Pick<MappedFile, 'read' | 'close'> {
  const mapped = mapper.map(descriptor, { isWritable: false })
  return {
    read(position, target, targetAt, length) {
      const there = Math.max(0, Math.min(length, mapper.bytesOf(descriptor) - position))
      mapped.read(position, target, targetAt, there)
      if (there < length) target.fill(0, targetAt + there, targetAt + length)
    },
    close: () => mapped.close(),
  }
}

function readAt(descriptor: number, position: number, target: Uint8Array, targetAt: number, length: number): void {
  let done = 0
  while (done < length) {
    const count = readSync(descriptor, target, targetAt + done, length - done, position + done)
    if (count === 0) break
    done += count
  }
  if (done < length) target.fill(0, targetAt + done, targetAt + length)
}

function unpack(path: string, unpackedBytesMax: number): RingFile {
  const image = decompress(path, unpackedBytesMax)
  return {
    sizeBytes: image.length,
    isStatic: true,
    mode: 'unpacked',
    read(position, target, targetAt, length) {
      const there = Math.max(0, Math.min(length, image.length - position))
      if (there > 0) image.copy(target, targetAt, position, position + there)
      if (there < length) target.fill(0, targetAt + there, targetAt + length)
    },
    isReplaced: () => false,
    close: () => {},
  }
}

function decompress(path: string, maxOutputLength: number): Buffer {
  try {
    // A ring is mostly zeros or whole payloads; large pieces keep the number of buffers to join small.
    return zstdDecompressSync(readFileSync(path), { maxOutputLength, chunkSize: 2 ** 20, params: WINDOW })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw error
    throw new Error(`${path} unpacks to more than ${maxOutputLength} bytes`, { cause: error })
  }
}

/** Snapshots are made with long windows; without this a frame beyond the default window would be refused. */
const WINDOW = { [constants.ZSTD_d_windowLogMax]: 31 }
