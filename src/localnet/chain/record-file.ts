import { closeSync, fstatSync, fsyncSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { crc32 } from 'node:zlib'

/**
 * A file of records, each complete or absent: u32 length, u32 CRC-32 of the body, body. A partial record left by a crash
 * is cut off when the file is opened again.
 */
const HEADER_BYTES = 8
/** Larger than any record written; a larger length on disk means that the file is damaged. */
const RECORD_BYTES_MAX = 512 * 1024 * 1024

export class RecordFile implements Disposable {
  readonly #fd: number
  #bytes: number

  private constructor(fd: number, bytes: number) {
    this.#fd = fd
    this.#bytes = bytes
  }

  /** Opens for appending. `validBytes` is the length up to which `readRecords` found valid records. */
  static open(path: string, validBytes: number): RecordFile {
    const fd = openSync(path, 'a', 0o600)
    if (fstatSync(fd).size > validBytes) ftruncateSync(fd, validBytes)
    return new RecordFile(fd, validBytes)
  }

  get bytes(): number {
    return this.#bytes
  }

  /** Writes the complete record, or throws and leaves the file unchanged. */
  append(...parts: readonly Uint8Array[]): void {
    const length = parts.reduce((sum, part) => sum + part.length, 0)
    const record = Buffer.allocUnsafe(HEADER_BYTES + length)
    let at = HEADER_BYTES
    for (const part of parts) {
      record.set(part, at)
      at += part.length
    }
    record.writeUInt32LE(length, 0)
    record.writeUInt32LE(crc32(record.subarray(HEADER_BYTES)), 4)
    try {
      for (let written = 0; written < record.length; ) written += writeSync(this.#fd, record, written)
    } catch (error) {
      ftruncateSync(this.#fd, this.#bytes)
      throw error
    }
    this.#bytes += record.length
  }

  sync(): void {
    fsyncSync(this.#fd)
  }

  [Symbol.dispose](): void {
    closeSync(this.#fd)
  }
}

/** Reads the valid records from the start; `end` of the last one is the length of the valid part. */
export function* readRecords(path: string): Generator<{ readonly body: Uint8Array; readonly end: number }> {
  const fd = openSync(path, 'r')
  try {
    const { size } = fstatSync(fd)
    const header = Buffer.alloc(HEADER_BYTES)
    let at = 0
    while (at + HEADER_BYTES <= size) {
      readExactly(fd, header, at)
      const length = header.readUInt32LE(0)
      if (length > RECORD_BYTES_MAX || at + HEADER_BYTES + length > size) return
      const body = Buffer.allocUnsafeSlow(length)
      readExactly(fd, body, at + HEADER_BYTES)
      if (crc32(body) !== header.readUInt32LE(4)) return
      at += HEADER_BYTES + length
      yield { body, end: at }
    }
  } finally {
    closeSync(fd)
  }
}

function readExactly(fd: number, into: Buffer, position: number): void {
  for (let read = 0; read < into.length; ) {
    const got = readSync(fd, into, read, into.length - read, position + read)
    if (got === 0) throw new Error('the file was truncated while it was read')
    read += got
  }
}
