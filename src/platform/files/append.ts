import { constants } from 'node:fs'
import { type FileHandle, open, stat } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncPath } from './atomic.ts'
import { fileError } from './error.ts'

const CHUNK_BYTES = 64 * 1024
const NEWLINE = 0x0a

/** A line of a file, or the text after its last newline. */
export type FileLine = {
  readonly bytes: Uint8Array
  /** Offset of the line. */
  readonly at: number
  /** Whether a newline follows. */
  readonly ended: boolean
}

/** An append-only file of lines. Nothing is cached between calls. */
export interface AppendFile extends AsyncDisposable {
  readonly path: string
  size(): Promise<number>
  /** Lines from offset `at`. A line longer than `lineBytesMax` is returned truncated, as not ended, and is the last one. */
  lines(at: number, lineBytesMax: number): AsyncGenerator<FileLine>
  byteAt(at: number): Promise<number | undefined>
  /** Writes at an offset and returns the offset of the end. */
  writeAt(at: number, text: string): Promise<number>
  cutTo(size: number): Promise<void>
  /** Resolves when everything written is on the disk. */
  sync(): Promise<void>
}

/** `write-through` (O_DSYNC): a write returns when it is on the disk, so that no `sync` is needed. */
export type AppendMode = 'write' | 'write-through'

/** Opens the file and creates it if needed, readable by its owner only. With `read`, returns undefined when it does not exist. */
export async function openAppendFile(path: string, mode: 'read'): Promise<AppendFile | undefined>
export async function openAppendFile(path: string, mode: AppendMode): Promise<AppendFile>
export async function openAppendFile(path: string, mode: 'read' | AppendMode): Promise<AppendFile | undefined> {
  const handle = await translated(path, () => openHandle(path, mode))
  if (!handle) return undefined
  const on = <T>(call: (handle: FileHandle) => Promise<T>): Promise<T> => translated(path, () => call(handle))
  return {
    path,
    size: () => on(async () => (await handle.stat()).size),
    lines: (at, lineBytesMax) => readLines(on, at, lineBytesMax),
    async byteAt(at) {
      const byte = new Uint8Array(1)
      const { bytesRead } = await on(() => handle.read(byte, 0, 1, at))
      return bytesRead === 1 ? byte[0] : undefined
    },
    async writeAt(at, text) {
      const bytes = Buffer.from(text)
      for (let done = 0; done < bytes.length; ) {
        done += (await on(() => handle.write(bytes, done, bytes.length - done, at + done))).bytesWritten
      }
      return at + bytes.length
    },
    cutTo: (size) => on(() => handle.truncate(size)),
    sync: () => on(() => handle.datasync()),
    [Symbol.asyncDispose]: () => handle.close(),
  }
}

async function openHandle(path: string, mode: 'read' | AppendMode): Promise<FileHandle | undefined> {
  const { O_RDONLY, O_RDWR, O_CREAT, O_EXCL, O_DSYNC } = constants
  const flags = mode === 'read' ? O_RDONLY : mode === 'write' ? O_RDWR : O_RDWR | O_DSYNC
  try {
    return await open(path, flags)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    if (mode === 'read') return undefined
  }
  const made = await open(path, flags | O_CREAT | O_EXCL, 0o600)
  await syncPath(dirname(path))
  return made
}

async function* readLines(
  on: <T>(call: (handle: FileHandle) => Promise<T>) => Promise<T>,
  from: number,
  lineBytesMax: number,
): AsyncGenerator<FileLine> {
  let at = from
  let rest = Buffer.alloc(0)
  const chunk = Buffer.alloc(CHUNK_BYTES)
  for (;;) {
    const { bytesRead } = await on((handle) => handle.read(chunk, 0, CHUNK_BYTES, at + rest.length))
    if (bytesRead === 0) break
    const bytes = Buffer.concat([rest, chunk.subarray(0, bytesRead)])
    let start = 0
    for (let end = bytes.indexOf(NEWLINE, rest.length); end !== -1; end = bytes.indexOf(NEWLINE, start)) {
      yield { bytes: bytes.subarray(start, end), at: at + start, ended: true }
      start = end + 1
    }
    rest = bytes.subarray(start)
    at += start
    if (rest.length > lineBytesMax) break
  }
  if (rest.length > 0) yield { bytes: rest.subarray(0, lineBytesMax), at, ended: false }
}

/** Size in bytes, or undefined when there is no such file. */
export async function fileSize(path: string): Promise<number | undefined> {
  try {
    return (await stat(path)).size
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw fileError(error, path)
  }
}

async function translated<T>(path: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call()
  } catch (error) {
    throw fileError(error, path)
  }
}
