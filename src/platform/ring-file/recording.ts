import {
  closeSync,
  createWriteStream,
  existsSync,
  constants as fsConstants,
  fstatSync,
  ftruncateSync,
  openSync,
  readSync,
  renameSync,
  rmSync,
  statSync,
  writeSync,
} from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { constants, createZstdCompress } from 'node:zlib'
import type { FileMapper } from '../files/mapped.ts'

/** A section of a recording; sections follow each other, and unwritten parts are zero. */
export type RecordingSection = { readonly bytes: number; readonly content: Uint8Array | 'slots' | 'payloads' }

/** A recording of unknown size: two growing files beside the final one, which `finish` writes from them. */
export type RecordingFile = AsyncDisposable & {
  writeSlots(position: number, bytes: Uint8Array): void
  writePayloads(position: number, bytes: Uint8Array): void
  /** Joins the sections under the final name, which exists from here on. Compressed where the name ends in `.zst`. */
  finish(sections: readonly RecordingSection[]): Promise<void>
}

const COPY_BYTES = 2 ** 20
const { O_CREAT, O_EXCL, O_NOFOLLOW, O_RDWR } = fsConstants
/** A fast level with a long window: a ring repeats over blocks, not over bytes. */
const PACKING = { [constants.ZSTD_c_compressionLevel]: 6, [constants.ZSTD_c_windowLog]: 24 }

/** Throws EEXIST where the file exists or is being recorded. The partial files of a recording that was killed are used again. */
export function createRecordingFile(path: string, mapper: FileMapper): RecordingFile {
  const partPath = (part: string): string => `${path}.${part}.partial`
  const parts = openParts()
  let hasName = false
  let isFinished = false
  return {
    writeSlots: (position, bytes) => writeAll(parts.slots, bytes, position),
    writePayloads: (position, bytes) => writeAll(parts.payloads, bytes, position),
    async finish(sections) {
      const whole = partPath('whole')
      rmSync(whole, { force: true })
      if (path.endsWith('.zst')) {
        const packed = createZstdCompress({ params: PACKING })
        await pipeline(Readable.from(contentOf(sections)), packed, createWriteStream(whole, { flags: 'wx' }))
      } else writePlain(whole, sections)
      // Taken first, because a rename would replace a file that another process has created meanwhile.
      closeSync(openSync(path, 'wx'))
      hasName = true
      renameSync(whole, path)
      isFinished = true
    },
    async [Symbol.asyncDispose]() {
      for (const part of ['slots', 'payloads', 'whole']) rmSync(partPath(part), { force: true })
      // Last, because closing them releases the lock.
      for (const descriptor of Object.values(parts)) closeSync(descriptor)
      if (hasName && !isFinished) rmSync(path, { force: true })
    },
  }

  /** The lock of the first part shows that the recording runs. The final name is checked after it: a recording that has just ended has it. */
  function openParts(): { slots: number; payloads: number } {
    // Without locks a recording that was killed looks like one that runs.
    const slots = openSync(partPath('slots'), O_RDWR | O_CREAT | (mapper.ok ? O_NOFOLLOW : O_EXCL))
    try {
      // A recording that has just ended removes its parts: then the lock is that of a file without a name.
      const isOurs = !mapper.ok || (mapper.tryLock(slots) && isSameFile(slots, partPath('slots')))
      if (!isOurs) throw existsError(path, 'is being recorded')
    } catch (error) {
      closeSync(slots)
      throw error
    }
    try {
      if (existsSync(path)) throw existsError(path, 'exists')
      ftruncateSync(slots, 0)
      rmSync(partPath('payloads'), { force: true })
      return { slots, payloads: openSync(partPath('payloads'), 'wx+') }
    } catch (error) {
      rmSync(partPath('slots'), { force: true })
      closeSync(slots)
      throw error
    }
  }

  function* contentOf(sections: readonly RecordingSection[]): Generator<Buffer> {
    for (const { bytes, content } of sections) {
      let done = 0
      for (const piece of piecesOf(content)) {
        done += piece.length
        yield piece
      }
      for (; done < bytes; done += COPY_BYTES) yield ZEROS.subarray(0, Math.min(COPY_BYTES, bytes - done))
    }
  }

  /** Sparse: zeros after the content of a section are not written. */
  function writePlain(whole: string, sections: readonly RecordingSection[]): void {
    const target = openSync(whole, 'wx')
    try {
      let position = 0
      for (const { bytes, content } of sections) {
        let done = 0
        for (const piece of piecesOf(content)) {
          writeAll(target, piece, position + done)
          done += piece.length
        }
        position += bytes
      }
      ftruncateSync(target, position)
    } finally {
      closeSync(target)
    }
  }

  function* piecesOf(content: RecordingSection['content']): Generator<Buffer> {
    if (typeof content !== 'string') {
      yield Buffer.from(content)
      return
    }
    for (let position = 0; ; ) {
      const piece = Buffer.alloc(COPY_BYTES)
      const count = readSync(parts[content], piece, 0, COPY_BYTES, position)
      if (count === 0) return
      yield piece.subarray(0, count)
      position += count
    }
  }
}

function isSameFile(descriptor: number, path: string): boolean {
  return statSync(path, { throwIfNoEntry: false })?.ino === fstatSync(descriptor).ino
}

function existsError(path: string, state: string): NodeJS.ErrnoException {
  return Object.assign(new Error(`${path} ${state}`), { code: 'EEXIST' })
}

const ZEROS = Buffer.alloc(COPY_BYTES)

function writeAll(descriptor: number, bytes: Uint8Array, position: number): void {
  for (let done = 0; done < bytes.length; )
    done += writeSync(descriptor, bytes, done, bytes.length - done, position + done)
}
