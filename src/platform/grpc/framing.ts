import { gzipSync } from 'node:zlib'
import { FRAME_PREFIX_BYTES, FrameReader } from './frame-reader.ts'
import { GrpcCode, type GrpcStatus } from './status.ts'

export type GrpcEncoding = 'identity' | 'gzip'

/** The value of `grpc-accept-encoding` in responses. */
export const ACCEPTED_ENCODINGS = 'identity,gzip'

/** One message with its prefix. */
export function frameMessage(message: Uint8Array, encoding: GrpcEncoding = 'identity'): Buffer {
  const body = encoding === 'gzip' ? gzipSync(message) : message
  const frame = Buffer.allocUnsafe(FRAME_PREFIX_BYTES + body.length)
  frame[0] = encoding === 'gzip' ? 1 : 0
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
    if (this.#encoding === 'gzip') {
      this.#put(frameMessage(Buffer.concat([...head, body], bytes), 'gzip'))
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
    const larger = Buffer.allocUnsafeSlow(Math.max(BATCH_BYTES + BATCH_SLACK_BYTES, needed))
    if (this.#buffer) larger.set(this.#buffer.subarray(0, this.#length))
    this.#buffer = larger
    return larger
  }
}

/** Space for one more message when a batch is almost full. */
const BATCH_SLACK_BYTES = 4 * 1024

export type MessageReader = {
  /** Takes a chunk of bytes; returns the status to end the call with when they are malformed. */
  push(chunk: Uint8Array): GrpcStatus | undefined
}

/** Splits the response of a server into messages. They are uncompressed, because this side accepts no encoding. */
export function createMessageReader(
  { messageBytesMax }: { readonly messageBytesMax: number },
  onMessage: (message: Uint8Array) => void,
): MessageReader {
  const frames = new FrameReader()
  return {
    push(chunk) {
      frames.push(chunk)
      for (;;) {
        const frame = frames.next(messageBytesMax)
        if (frame === undefined) return undefined
        if ('code' in frame) return frame
        if (frame.isCompressed)
          return { code: GrpcCode.internal, message: 'a compressed message without grpc-encoding' }
        onMessage(frame.body)
      }
    },
  }
}
