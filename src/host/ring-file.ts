import { closeSync, fstatSync, openSync, readFileSync, readSync, statSync } from 'node:fs'
import { constants, zstdDecompressSync } from 'node:zlib'
import type { FileMapper } from './mapped-file.ts'

/**
 * A file read by position while another process writes it, or a snapshot of such a file. Reads happen in the order in which they are
 * called, and what lies behind the end reads as zero.
 */
export type RingFile = {
  readonly sizeBytes: number
  /** True for a snapshot: nobody writes it any more. */
  readonly isStatic: boolean
  read(place: number, target: Uint8Array, targetAt: number, length: number): void
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

function openPlain(path: string, descriptor: number, { isSnapshot = false, mapper }: RingFileOptions): RingFile {
  const { dev, ino, size } = fstatSync(descriptor, { bigint: true })
  // An empty file has nothing to map; it is refused by its reader, in words.
  const mapped = mapper?.ok === true && size > 0n ? mapper.map(descriptor, { isWritable: false }) : undefined
  return {
    sizeBytes: Number(size),
    isStatic: isSnapshot,
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

function readAt(descriptor: number, place: number, target: Uint8Array, targetAt: number, length: number): void {
  let done = 0
  while (done < length) {
    const count = readSync(descriptor, target, targetAt + done, length - done, place + done)
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
    read(place, target, targetAt, length) {
      const there = Math.max(0, Math.min(length, image.length - place))
      if (there > 0) image.copy(target, targetAt, place, place + there)
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

function openIfThere(path: string): number | undefined {
  try {
    return openSync(path, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
