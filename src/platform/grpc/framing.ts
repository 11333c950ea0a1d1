import type { IncomingHttpHeaders } from 'node:http2'
import { constants, gzipSync, zstdCompressSync } from 'node:zlib'
import { FRAME_PREFIX_BYTES, FrameReader } from './frame-reader.ts'
import { GrpcCode, type GrpcStatus } from './status.ts'

const ENCODINGS = ['identity', 'gzip', 'zstd'] as const
export type GrpcEncoding = (typeof ENCODINGS)[number]

/** The value of `grpc-accept-encoding` in responses. */
export const ACCEPTED_ENCODINGS = ENCODINGS.join(',')

/** The encoding that a `grpc-encoding` header names; undefined for one that is not supported. */
export function encodingOf(header: string | string[] | undefined): GrpcEncoding | undefined {
  return header === undefined ? 'identity' : ENCODINGS.find((encoding) => encoding === header)
}

/** The encoding of responses: the one the client uses itself, if it accepts it. */
export function responseEncoding(headers: IncomingHttpHeaders): GrpcEncoding {
  const sent = encodingOf(headers['grpc-encoding']) ?? 'identity'
  const accepted = String(headers['grpc-accept-encoding'] ?? '').split(',')
  return accepted.some((name) => name.trim() === sent) ? sent : 'identity'
}

const ZSTD_FASTEST = { params: { [constants.ZSTD_c_compressionLevel]: 1 } }
const COMPRESS: Readonly<Record<GrpcEncoding, (message: Uint8Array) => Uint8Array>> = {
  identity: (message) => message,
  gzip: (message) => gzipSync(message),
  zstd: (message) => zstdCompressSync(message, ZSTD_FASTEST),
}

/** One message with its prefix. */
export function frameMessage(message: Uint8Array, encoding: GrpcEncoding = 'identity'): Buffer {
  const body = COMPRESS[encoding](message)
  const frame = Buffer.allocUnsafe(FRAME_PREFIX_BYTES + body.length)
  frame[0] = encoding === 'identity' ? 0 : 1
  frame.writeUInt32BE(body.length, 1)
  frame.set(body, FRAME_PREFIX_BYTES)
  return frame
}

/** A batch of this size is full; the last message may exceed it. */
const BATCH_BYTES = 64 * 1024

/**
 * Collects messages in one buffer for one write; their parts already exist as bytes. Writing message by message costs several times as much.
 */
export class FrameBatch {
  readonly #encoding: GrpcEncoding
  #buffer: Buffer | undefined
  #length = 0
  /** The length of the previous batch: the next one is often about as long. */
  #lastLength = 0

  constructor(encoding: GrpcEncoding) {
    this.#encoding = encoding
  }

  get isFull(): boolean {
    return this.#length >= BATCH_BYTES
  }

  get isEmpty(): boolean {
    return this.#length === 0
  }

  /** One message: `head` part by part, then `body`. */
  add(head: readonly Uint8Array[], body: Uint8Array): void {
    let bytes = body.length
    for (const part of head) bytes += part.length
    if (this.#encoding !== 'identity') {
      this.#put(frameMessage(Buffer.concat([...head, body], bytes), this.#encoding))
      return
    }
    const buffer = this.#reserve(FRAME_PREFIX_BYTES + bytes)
    buffer[this.#length] = 0
    buffer.writeUInt32BE(bytes, this.#length + 1)
    let at = this.#length + FRAME_PREFIX_BYTES
    for (const part of head) {
      buffer.set(part, at)
      at += part.length
    }
    buffer.set(body, at)
    this.#length = at + body.length
  }

  /** The collected frames; the batch is empty afterwards and does not write to them again. */
  take(): Uint8Array {
    const taken = this.#buffer?.subarray(0, this.#length) ?? Buffer.alloc(0)
    this.#buffer = undefined
    this.#lastLength = this.#length
    this.#length = 0
    return taken
  }

  #put(frame: Uint8Array): void {
    this.#reserve(frame.length).set(frame, this.#length)
    this.#length += frame.length
  }

  #reserve(bytes: number): Buffer {
    const needed = this.#length + bytes
    if (this.#buffer && needed <= this.#buffer.length) return this.#buffer
    // Small ones come from Node's pool. A batch that waits for a slow client holds little more memory than its bytes.
    const larger = Buffer.allocUnsafe(Math.max(needed, this.#buffer ? 2 * this.#buffer.length : this.#lastLength))
    if (this.#buffer) larger.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = larger
    return larger
  }
}

export type MessageReader = {
  /**
   * Takes a chunk of bytes; returns the status to end the call with when they are malformed. With `release` the memory of the chunk is given back when its
   * complete messages were read, so that they are valid only until `onMessage` returns.
   */
  push(chunk: Uint8Array, release?: () => void): GrpcStatus | undefined
}

/** Splits the response of a server into messages. They are uncompressed, because this side accepts no encoding. */
export function createMessageReader(
  { messageBytesMax }: { readonly messageBytesMax: number },
  onMessage: (message: Uint8Array) => void,
): MessageReader {
  const frames = new FrameReader()

  function readAll(): GrpcStatus | undefined {
    for (;;) {
      const frame = frames.next(messageBytesMax)
      if (frame === undefined || 'code' in frame) return frame
      if (frame.isCompressed) return { code: GrpcCode.internal, message: 'a compressed message without grpc-encoding' }
      onMessage(frame.body)
    }
  }

  return {
    push(chunk, release) {
      frames.push(chunk)
      const problem = readAll()
      if (release === undefined) return problem
      frames.keepRest()
      release()
      return problem
    },
  }
}
