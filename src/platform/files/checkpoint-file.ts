import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { dirname } from 'node:path'
import { crc32 } from 'node:zlib'
import { syncPath } from './atomic.ts'
import { fileError } from './error.ts'

/**
 * A content that is replaced as a whole and survives a crash at any point, also on a full disk: two files take turns, so that the last complete save
 * stays until the next one is on the disk, and their space is reserved when they are opened.
 *
 *   sluice-checkpoint 1 <save number> <content bytes> <crc32 of number and content>\n<content><unused bytes>
 */
export type CheckpointFile = AsyncDisposable & {
  /** The two files, for messages. */
  readonly name: string
  /** The content of the last complete save before this one was opened; empty when there is none. */
  readonly found: string
  /** Whether there is a file that contains something, but no complete save: it was damaged, or cut by a crash in its first save. */
  readonly isDamaged: boolean
  /** Resolves when the content is on the disk. A failed save leaves the one before it. */
  save(content: string): Promise<void>
  /** Deletes both contents, where a save fails. */
  discard(): Promise<void>
}

const ENDINGS = ['.a', '.b'] as const
/** The numbers are padded, so that the header has always the same size. */
const HEADER_BYTES = 64
const HEADER = /^sluice-checkpoint 1 (\d{16}) (\d{12}) ([0-9a-f]{8})\s*\n$/

/** Creates the files if needed (0600) and reserves the space. A disk without that space is no error: a save then takes what it finds. */
export async function openCheckpointFile(
  path: string,
  { reservedBytes, contentBytesMax }: { readonly reservedBytes: number; readonly contentBytesMax: number },
): Promise<CheckpointFile> {
  await using opening = new AsyncDisposableStack()
  const files: FileHandle[] = []
  const found: Found[] = []
  for (const ending of ENDINGS) {
    const file = opening.use(await openFile(`${path}${ending}`))
    files.push(file)
    found.push(await readSave(file, contentBytesMax))
    await reserve(file, reservedBytes)
  }
  let current = (found[1]?.number ?? 0) > (found[0]?.number ?? 0) ? 1 : 0
  let number = found[current]?.number ?? 0
  let last: Promise<void> = Promise.resolve()
  const opened = opening.move()

  return {
    name: `${path}${ENDINGS[0]} and ${ENDINGS[1]}`,
    found: found[current]?.content ?? '',
    isDamaged: number === 0 && found.some(({ isDamaged }) => isDamaged),
    save: (content) => inOrder(() => save(content)),
    discard: () => inOrder(discard),
    [Symbol.asyncDispose]: () => inOrder(() => opened.disposeAsync()),
  }

  /** One at a time: two saves at once would write the same file. */
  function inOrder(run: () => Promise<void>): Promise<void> {
    const done = last.then(run)
    last = done.catch(() => {})
    return done
  }

  async function save(content: string): Promise<void> {
    const next = 1 - current
    const bytes = Buffer.from(content)
    if (bytes.length > contentBytesMax) throw new RangeError(`a checkpoint has at most ${contentBytesMax} bytes`)
    const file = files[next] as FileHandle
    try {
      await writeAll(file, Buffer.concat([headerOf(number + 1, bytes), bytes]))
      await file.datasync()
    } catch (error) {
      throw fileError(error, `${path}${ENDINGS[next as 0 | 1]}`)
    }
    current = next
    number += 1
  }

  async function discard(): Promise<void> {
    // The older save first: after a crash between the two it would be taken for the last one.
    for (const file of [files[1 - current], files[current]] as FileHandle[]) {
      await file.truncate(0)
      await file.datasync()
    }
    number = 0
  }
}

type Found = { readonly number: number; readonly content: string; readonly isDamaged: boolean }

const NOTHING: Found = { number: 0, content: '', isDamaged: false }

async function openFile(path: string): Promise<FileHandle> {
  const { O_RDWR, O_CREAT, O_EXCL, O_NOFOLLOW } = constants
  try {
    return await open(path, O_RDWR | O_NOFOLLOW)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw fileError(error, path)
  }
  try {
    const made = await open(path, O_RDWR | O_CREAT | O_EXCL, 0o600)
    await syncPath(dirname(path))
    return made
  } catch (error) {
    throw fileError(error, path)
  }
}

async function readSave(file: FileHandle, contentBytesMax: number): Promise<Found> {
  const head = await readAt(file, 0, HEADER_BYTES)
  if (head.every((byte) => byte === 0)) return NOTHING
  const [, number, bytes, check] = HEADER.exec(head.toString('latin1')) ?? []
  if (number === undefined || Number(bytes) > contentBytesMax) return { ...NOTHING, isDamaged: true }
  const content = await readAt(file, HEADER_BYTES, Number(bytes))
  if (content.length !== Number(bytes) || checkOf(Number(number), content) !== check)
    return { ...NOTHING, isDamaged: true }
  return { number: Number(number), content: content.toString('utf8'), isDamaged: false }
}

async function readAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length)
  let done = 0
  while (done < length) {
    const { bytesRead } = await file.read(bytes, done, length - done, at + done)
    if (bytesRead === 0) break
    done += bytesRead
  }
  return bytes.subarray(0, done)
}

/** Writes zeros: blocks of a sparse file are not allocated, and a write into them fails on a full disk. */
async function reserve(file: FileHandle, reservedBytes: number): Promise<void> {
  const { size } = await file.stat()
  if (size >= reservedBytes) return
  try {
    await writeAll(file, Buffer.alloc(reservedBytes - size), size)
    await file.datasync()
  } catch {
    // Saves still work while the disk has space.
  }
}

async function writeAll(file: FileHandle, bytes: Buffer, at = 0): Promise<void> {
  for (let done = 0; done < bytes.length; )
    done += (await file.write(bytes, done, bytes.length - done, at + done)).bytesWritten
}

function headerOf(number: number, content: Uint8Array): Buffer {
  const text = `sluice-checkpoint 1 ${digits(number, 16)} ${digits(content.length, 12)} ${checkOf(number, content)}`
  return Buffer.from(`${text.padEnd(HEADER_BYTES - 1)}\n`)
}

function checkOf(number: number, content: Uint8Array): string {
  return crc32(content, crc32(digits(number, 16)))
    .toString(16)
    .padStart(8, '0')
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0')
}
