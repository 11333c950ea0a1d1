import { createReadStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdDecompress } from 'node:zlib'
import { openRingFile, type RingFile } from './reader.ts'

/** Bytes of one page of a decompressed snapshot; pages of zeros are not stored. */
const PAGE_BYTES = 2 ** 20

export type SnapshotOptions = {
  /** A snapshot that decompresses to more is refused. */
  unpackedBytesMax?: number
}

/** A terabyte: rings are mostly zeros, and zeros cost nothing here. */
const UNPACKED_BYTES_MAX = 2 ** 40

/**
 * Decompresses a snapshot while reading it. A ring is mostly empty, so only pages that are not all zero are in memory; a ring of the
 * node's default size would otherwise take 642 MiB.
 */
export async function openCompressedSnapshot(path: string, options: SnapshotOptions = {}): Promise<RingFile> {
  const { unpackedBytesMax = UNPACKED_BYTES_MAX } = options
  const pages: (Buffer | undefined)[] = []
  let sizeBytes = 0
  let page = Buffer.alloc(PAGE_BYTES)
  let pageBytes = 0
  const turnPage = (): void => {
    const isEmpty = page.equals(EMPTY_PAGE)
    pages.push(isEmpty ? undefined : page)
    page = isEmpty ? page : Buffer.alloc(PAGE_BYTES)
    pageBytes = 0
  }
  await pipeline(
    createReadStream(path),
    createZstdDecompress({ chunkSize: PAGE_BYTES, params: WINDOW }),
    async (unpacked: AsyncIterable<Buffer>) => {
      for await (const chunk of unpacked) {
        sizeBytes += chunk.length
        if (sizeBytes > unpackedBytesMax) throw new Error(`${path} unpacks to more than ${unpackedBytesMax} bytes`)
        for (let at = 0; at < chunk.length; ) {
          const count = Math.min(chunk.length - at, PAGE_BYTES - pageBytes)
          chunk.copy(page, pageBytes, at, at + count)
          pageBytes += count
          at += count
          if (pageBytes === PAGE_BYTES) turnPage()
        }
      }
    },
  )
  turnPage()
  return {
    sizeBytes,
    isStatic: true,
    mode: 'unpacked',
    read(position, target, targetAt, length) {
      for (let done = 0; done < length; ) {
        const at = (position + done) % PAGE_BYTES
        const count = Math.min(length - done, PAGE_BYTES - at)
        const from = pages[Math.floor((position + done) / PAGE_BYTES)] ?? EMPTY_PAGE
        from.copy(target, targetAt + done, at, at + count)
        done += count
      }
    },
    isReplaced: () => false,
    close: () => void (pages.length = 0),
  }
}

const EMPTY_PAGE = Buffer.alloc(PAGE_BYTES)

/** Snapshots are compressed with long windows; by default a frame with such a window is refused. */
const WINDOW = { [constants.ZSTD_d_windowLogMax]: 31 }

const ZSTD_MAGIC = 0xfd2fb528

/** Whether the file is compressed; false for everything else, an empty file included. */
export function isCompressed(path: string): boolean {
  const file = openRingFile(path, { isSnapshot: true, isPlain: true })
  if (file === undefined) return false
  const magic = Buffer.alloc(4)
  file.read(0, magic, 0, 4)
  file.close()
  return magic.readUInt32LE(0) === ZSTD_MAGIC
}
