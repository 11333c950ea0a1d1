import { type FileHandle, mkdir, open, readdir, unlink } from 'node:fs/promises'
import { join } from 'node:path'
import { crc32 } from 'node:zlib'
import { fileError } from './error.ts'

export type RecordLogOptions = {
  readonly folder: string
  /** A file that has reached this size is closed, and the next record begins a new one. */
  readonly segmentBytes: number
  /** Records with more are refused, and count as damage when they are read. */
  readonly headBytesMax: number
  readonly bodyBytesMax: number
}

/** Where the body of a record is. */
export type RecordPlace = {
  readonly segment: number
  readonly at: number
  readonly bytes: number
  readonly crc: number
}

export type LoggedRecord = { readonly head: Buffer; readonly place: RecordPlace }

/**
 * Records in numbered append-only files, of which the oldest can be removed. A record has a head, which is read when the log is opened, and
 * a body, which is read on request. Both have checksums: a file is read up to its first damaged record, as a crash leaves it, and a damaged
 * body is undefined. Files of an earlier process are not written to.
 */
export type RecordLog = AsyncDisposable & {
  /** Numbers of the files, oldest first. */
  readonly segments: readonly number[]
  readonly bytes: number
  /** One call at a time. After a failure the log can be used further; the record is not in it. */
  append(head: Uint8Array, body: Uint8Array): Promise<RecordPlace>
  /** The body; undefined when it is damaged or its file was removed. */
  read(place: RecordPlace): Promise<Buffer | undefined>
  /** The next record begins a new file. */
  endSegment(): Promise<void>
  removeOldest(): Promise<void>
}

type Segment = { readonly number: number; readonly path: string; readonly handle: FileHandle; bytes: number }

const MAGIC = 0x4c52_4c53
/** Magic number, bytes of the head, bytes of the body, checksum of the body, checksum of these four and the head. */
const PREFIX_BYTES = 20
const WINDOW_BYTES = 64 * 1024
const NAME = /^(\d{10})\.log$/

/** Opens the log; `onRecord` gets every record, oldest first. */
export async function openRecordLog(
  options: RecordLogOptions,
  onRecord: (record: LoggedRecord) => void,
): Promise<RecordLog> {
  const { folder } = options
  await mkdir(folder, { recursive: true, mode: 0o700 })
  const segments: Segment[] = []
  await using opening = new AsyncDisposableStack()
  opening.defer(() => closeAll(segments))
  const numbers = (await readdir(folder)).flatMap((name) => NAME.exec(name)?.[1] ?? [])
  for (const digits of numbers.toSorted()) {
    const segment = await openSegment(Number(digits), 'r')
    segments.push(segment)
    await readSegment(segment, options, onRecord)
  }
  opening.move()
  let next = (segments.at(-1)?.number ?? 0) + 1
  /** The file that is written to. */
  let current: Segment | undefined

  async function openSegment(number: number, flags: 'r' | 'wx+'): Promise<Segment> {
    const path = join(folder, `${String(number).padStart(10, '0')}.log`)
    const handle = await open(path, flags, 0o600)
    return { number, path, handle, bytes: (await handle.stat()).size }
  }

  async function endSegment(): Promise<void> {
    const ended = current
    current = undefined
    await ended?.handle.datasync()
  }

  async function writable(): Promise<Segment> {
    if (current !== undefined && current.bytes >= options.segmentBytes) await endSegment()
    if (current !== undefined) return current
    const opened = await openSegment(next, 'wx+')
    next += 1
    segments.push(opened)
    current = opened
    return opened
  }

  return {
    get segments() {
      return segments.map(({ number }) => number)
    },
    get bytes() {
      return segments.reduce((sum, segment) => sum + segment.bytes, 0)
    },
    async append(head, body) {
      if (head.length > options.headBytesMax || body.length > options.bodyBytesMax)
        throw new RangeError('the record is too large')
      try {
        const segment = await writable()
        const crc = crc32(body)
        const from = segment.bytes
        await writeAll(segment.handle, [prefixOf(head, body.length, crc), head, body], from)
        const at = from + PREFIX_BYTES + head.length
        segment.bytes = at + body.length
        return { segment: segment.number, at, bytes: body.length, crc }
      } catch (error) {
        // The next record overwrites what was written of this one.
        throw fileError(error, folder)
      }
    },
    async read({ segment, at, bytes, crc }) {
      const found = segments.find(({ number }) => number === segment)
      const body = await found?.handle.read(Buffer.allocUnsafe(bytes), 0, bytes, at).catch(() => undefined)
      if (body === undefined || body.bytesRead < bytes) return undefined
      return crc32(body.buffer) === crc ? body.buffer : undefined
    },
    endSegment,
    async removeOldest() {
      const oldest = segments.shift()
      if (oldest === undefined) return
      if (oldest === current) current = undefined
      await oldest.handle.close()
      await unlink(oldest.path)
    },
    [Symbol.asyncDispose]: () => closeAll(segments),
  }
}

async function closeAll(segments: readonly Segment[]): Promise<void> {
  for (const { handle } of segments) await handle.close()
}

function prefixOf(head: Uint8Array, bodyBytes: number, bodyCrc: number): Buffer {
  const prefix = Buffer.alloc(PREFIX_BYTES)
  prefix.writeUInt32LE(MAGIC, 0)
  prefix.writeUInt32LE(head.length, 4)
  prefix.writeUInt32LE(bodyBytes, 8)
  prefix.writeUInt32LE(bodyCrc, 12)
  prefix.writeUInt32LE(crc32(head, crc32(prefix.subarray(0, 16))), 16)
  return prefix
}

async function writeAll(handle: FileHandle, parts: readonly Uint8Array[], from: number): Promise<void> {
  let at = from
  for (const part of parts) {
    for (let done = 0; done < part.length; ) {
      const { bytesWritten } = await handle.write(part, done, part.length - done, at)
      done += bytesWritten
      at += bytesWritten
    }
  }
}

/** Reads heads and skips bodies, up to the first record that is damaged or incomplete. */
async function readSegment(
  segment: Segment,
  { headBytesMax, bodyBytesMax }: RecordLogOptions,
  onRecord: (record: LoggedRecord) => void,
): Promise<void> {
  const { number, handle, bytes: size } = segment
  const readAt = windowReader(handle)
  for (let at = 0; at + PREFIX_BYTES <= size; ) {
    const prefix = await readAt(at, PREFIX_BYTES)
    if (prefix === undefined || prefix.readUInt32LE(0) !== MAGIC) return
    const [headBytes, bytes, crc, headCrc] = [4, 8, 12, 16].map((field) => prefix.readUInt32LE(field)) as Four
    const bodyAt = at + PREFIX_BYTES + headBytes
    if (headBytes > headBytesMax || bytes > bodyBytesMax || bodyAt + bytes > size) return
    const prefixCrc = crc32(prefix.subarray(0, 16))
    const head = await readAt(at + PREFIX_BYTES, headBytes)
    if (head === undefined || crc32(head, prefixCrc) !== headCrc) return
    onRecord({ head, place: { segment: number, at: bodyAt, bytes, crc } })
    at = bodyAt + bytes
  }
}

type Four = [number, number, number, number]

/** Reads parts of a file in ascending order, many of them with one system call. What it returns is valid until the next call. */
function windowReader(handle: FileHandle): (at: number, bytes: number) => Promise<Buffer | undefined> {
  let window = Buffer.alloc(0)
  let windowAt = 0
  return async (at, bytes) => {
    if (at < windowAt || at + bytes > windowAt + window.length) {
      const buffer = Buffer.allocUnsafe(Math.max(WINDOW_BYTES, bytes))
      const { bytesRead } = await handle.read(buffer, 0, buffer.length, at)
      window = buffer.subarray(0, bytesRead)
      windowAt = at
    }
    const from = at - windowAt
    return from + bytes > window.length ? undefined : window.subarray(from, from + bytes)
  }
}
