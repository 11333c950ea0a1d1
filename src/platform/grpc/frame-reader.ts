import { GrpcCode, type GrpcStatus } from './status.ts'

/** Every gRPC message is preceded by one byte (1 = compressed) and its length as u32, big endian. */
export const FRAME_PREFIX_BYTES = 5

/** A status to end the call with, the limit that was reached, where it was one, and the bytes that were inflated at most, where some were. */
export type RequestProblem = GrpcStatus & {
  readonly limit?: 'grpcRequestBytes' | 'inflateRatio'
  readonly bytes?: number
}

export type Frame = { readonly isCompressed: boolean; readonly body: Uint8Array }

/**
 * Splits a byte stream into messages. A message is a view of its chunk, or of a buffer that is not overwritten. An incomplete message is held in one buffer, so that many small
 * chunks take no more memory than a few large ones.
 */
export class FrameReader {
  #bytes: Uint8Array = NOTHING
  /** Whether the bytes are those of the caller's chunk. */
  #isChunk = false
  #from = 0
  #to = 0

  push(chunk: Uint8Array): void {
    const unread = this.#to - this.#from
    if (unread === 0) {
      this.#bytes = chunk
      this.#isChunk = true
      this.#from = 0
      this.#to = chunk.length
      return
    }
    // Only a buffer of this reader has space behind its bytes; a chunk has none.
    if (this.#to + chunk.length > this.#bytes.length) {
      const larger = Buffer.allocUnsafeSlow(Math.max(unread + chunk.length, 2 * unread))
      larger.set(this.#bytes.subarray(this.#from, this.#to))
      this.#bytes = larger
      this.#isChunk = false
      this.#from = 0
      this.#to = unread
    }
    this.#bytes.set(chunk, this.#to)
    this.#to += chunk.length
  }

  /** Copies an incomplete message out of the last chunk, whose memory the caller is going to use again. */
  keepRest(): void {
    if (!this.#isChunk) return
    this.#isChunk = false
    this.#bytes = new Uint8Array(this.#bytes.subarray(this.#from, this.#to))
    this.#to -= this.#from
    this.#from = 0
  }

  /** The next complete message; the status to end the call with when the bytes are malformed; undefined when more are needed. */
  next(bytesMax: number): Frame | RequestProblem | undefined {
    if (this.#to - this.#from < FRAME_PREFIX_BYTES) return undefined
    const flag = this.#bytes[this.#from] as number
    if (flag > 1) return { code: GrpcCode.internal, message: 'unknown flag in the prefix of a message' }
    const length = readU32(this.#bytes, this.#from + 1)
    if (length > bytesMax) return tooLarge(`a message of ${length} bytes`, bytesMax)
    const from = this.#from + FRAME_PREFIX_BYTES
    if (from + length > this.#to) return undefined
    this.#from = from + length
    return { isCompressed: flag === 1, body: this.#bytes.subarray(from, from + length) }
  }

  /** False while a message is incomplete. */
  get isAtBoundary(): boolean {
    return this.#from === this.#to
  }
}

/** The refusal of a message by its size. Not RESOURCE_EXHAUSTED: clients send the same request again after it, at once and for ever. */
export function tooLarge(what: string, bytesMax: number): RequestProblem {
  const message = `limit reached: ${what}, grpcRequestBytes allows ${bytesMax}; send a smaller request`
  return { code: GrpcCode.invalidArgument, message, limit: 'grpcRequestBytes' }
}

const NOTHING = new Uint8Array(0)

function readU32(bytes: Uint8Array, at: number): number {
  return (
    (bytes[at] as number) * 0x1000000 +
    (((bytes[at + 1] as number) << 16) | ((bytes[at + 2] as number) << 8) | (bytes[at + 3] as number))
  )
}
