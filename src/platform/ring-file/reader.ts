import { closeSync, fstatSync, readFileSync, readSync, statfsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { constants, zstdDecompressSync } from 'node:zlib'
import { type FileMapper, loadFileMapper, type MappedFile } from '../files/mapped.ts'
import { openIfThere } from '../files/optional.ts'

/**
 * A file read by position while another process writes it, or a snapshot of such a file. Reads happen in the order of the
 * calls; positions beyond the end read as zero.
 */
export type RingFile = {
  readonly sizeBytes: number
  /** True for a snapshot, which is not written any more. */
  readonly isStatic: boolean
  /** How it is read: by positional reads, or through a memory mapping. */
  readonly mode: 'positional' | 'mapped' | 'unpacked'
  read(position: number, target: Uint8Array, targetAt: number, length: number): void
  /** True when the path no longer names this file: its writer stopped, or another one replaced it. */
  isReplaced(): boolean
  close(): void
}

export type RingFileOptions = {
  /** An uncompressed file is live unless this is set; a compressed one is always a snapshot. */
  isSnapshot?: boolean
  /** A compressed snapshot that unpacks to more is refused. */
  unpackedBytesMax?: number
  /** Returns the bytes as they are in the file, without decompression. */
  isPlain?: boolean
  /** Maps an uncompressed file, where mapping is available, instead of reading by position. */
  mapper?: FileMapper
}

/** The largest ring that is decompressed: a ring of the node's default size has 642 MiB. */
const UNPACKED_BYTES_MAX = 2 ** 31

const ZSTD_MAGIC = Buffer.of(0x28, 0xb5, 0x2f, 0xfd)

/** Opens the file at a path; undefined when it does not exist. Other errors, such as EACCES, are thrown with the path. */
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

/** The configured way to read a live ring. */
export type RingMode = 'auto' | 'mapped' | 'positional'

/**
 * The file mapper for the ring at a path, if the mode requires one. `auto` maps on hugetlbfs, where a node keeps its ring: only programs made
 * for it write there, and its pages do not count as memory of this process. A file elsewhere may be truncated, for example by `cp`;
 * positional reads are safe then.
 */
export async function loadRingMapper(
  path: string,
  mode: RingMode,
  load: () => Promise<FileMapper> = loadFileMapper,
): Promise<FileMapper | undefined> {
  if (mode === 'positional' || (mode === 'auto' && !isOnHugetlbfs(path))) return undefined
  return load()
}

/** Opens a live ring, mapped where a mapper is given. Where mapping fails, it is read by position. */
export function openLiveRing(path: string, mapper: FileMapper | undefined): RingFile | undefined {
  if (mapper?.ok !== true) return openRingFile(path)
  try {
    return openRingFile(path, { mapper })
  } catch {
    // If the file is the cause, the positional open throws again.
    return openRingFile(path)
  }
}

/** From <linux/magic.h>. */
const HUGETLBFS_MAGIC = 0x958458f6

/** The ring may not exist yet; its folder has the same file system. */
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
  // An empty file cannot be mapped; its reader refuses it with a message.
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
 * Access to a truncated part of a mapped file ends the process, so the length is checked before every copy, and missing bytes read as zero,
 * as they do by position. A truncation in the few microseconds between the two is not caught.
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
    // A ring is mostly zeros or complete payloads; large chunks keep the number of buffers to join small.
    return zstdDecompressSync(readFileSync(path), { maxOutputLength, chunkSize: 2 ** 20, params: WINDOW })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_BUFFER_TOO_LARGE') throw error
    throw new Error(`${path} unpacks to more than ${maxOutputLength} bytes`, { cause: error })
  }
}

/** Snapshots are compressed with long windows; by default a frame with such a window is refused. */
const WINDOW = { [constants.ZSTD_d_windowLogMax]: 31 }
