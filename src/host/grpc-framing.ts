import { gunzipSync, gzipSync } from 'node:zlib'
import { GrpcCode, type GrpcStatus } from './grpc-status.ts'

/** Every gRPC message is preceded by one byte (1 = compressed) and its length as u32, big endian. */
const FRAME_PREFIX_BYTES = 5

export type GrpcEncoding = 'identity' | 'gzip'

/** The value of `grpc-accept-encoding` this side answers with. */
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

/** Below this a batch is worth filling further; one more message may take it beyond. */
const BATCH_BYTES = 64 * 1024

/**
 * Collects messages, each made of parts that already exist as bytes, into one buffer to be written at once. Writing
 * message by message costs several times as much.
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

  /** The collected frames; the batch is empty afterwards and does not touch them again. */
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

/** Room for one message more when a batch is all but full. */
const BATCH_SLACK_BYTES = 4 * 1024

export type MessageReader = {
  /** Takes bytes as they come; answers the status to end the call with when they cannot be a message. */
  push(chunk: Uint8Array): GrpcStatus | undefined
  /** False while part of a message is missing. */
  isAtBoundary(): boolean
}

type MessageReaderOptions = { readonly encoding: GrpcEncoding; readonly messageBytesMax: number }

/** Cuts a byte stream into messages. Each message is a buffer of its own or a view that nothing writes to again. */
export function createMessageReader(
  options: MessageReaderOptions,
  onMessage: (message: Uint8Array) => void,
): MessageReader {
  const { encoding, messageBytesMax } = options
  let pending: Uint8Array[] = []
  let pendingBytes = 0
  /** Bytes needed before it is worth looking again: a prefix, then prefix and message. */
  let neededBytes = FRAME_PREFIX_BYTES

  function push(chunk: Uint8Array): GrpcStatus | undefined {
    pending.push(chunk)
    pendingBytes += chunk.length
    if (pendingBytes < neededBytes) return undefined

    const bytes = pending.length === 1 ? chunk : Buffer.concat(pending, pendingBytes)
    let at = 0
    neededBytes = FRAME_PREFIX_BYTES
    while (bytes.length - at >= FRAME_PREFIX_BYTES) {
      const length = readU32(bytes, at + 1)
      if (length > messageBytesMax) return tooLarge(length)
      if (bytes.length - at < FRAME_PREFIX_BYTES + length) {
        neededBytes = FRAME_PREFIX_BYTES + length
        break
      }
      const from = at + FRAME_PREFIX_BYTES
      at = from + length
      const problem = deliver(bytes[from - FRAME_PREFIX_BYTES] as number, bytes.subarray(from, at))
      if (problem) return problem
    }
    pending = at === bytes.length ? [] : [bytes.subarray(at)]
    pendingBytes = bytes.length - at
    return undefined
  }

  function deliver(flag: number, body: Uint8Array): GrpcStatus | undefined {
    if (flag === 0) {
      onMessage(body)
      return undefined
    }
    if (flag !== 1) return { code: GrpcCode.internal, message: 'unknown flag in the prefix of a message' }
    if (encoding === 'identity') {
      return { code: GrpcCode.internal, message: 'a compressed message without grpc-encoding' }
    }
    const unzipped = gunzip(body)
    if (!(unzipped instanceof Uint8Array)) return unzipped
    onMessage(unzipped)
    return undefined
  }

  function gunzip(body: Uint8Array): Uint8Array | GrpcStatus {
    try {
      return gunzipSync(body, { maxOutputLength: messageBytesMax })
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') return tooLarge(undefined)
      return { code: GrpcCode.internal, message: 'a compressed message that cannot be decompressed' }
    }
  }

  function tooLarge(length: number | undefined): GrpcStatus {
    const found = length === undefined ? 'decompressed message' : `message of ${length} bytes`
    return { code: GrpcCode.resourceExhausted, message: `${found} is larger than the allowed ${messageBytesMax}` }
  }

  return { push, isAtBoundary: () => pendingBytes === 0 }
}

function readU32(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) * 0x1000000 +
    (((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number))
  )
}
