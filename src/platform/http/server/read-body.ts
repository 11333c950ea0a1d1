import type { IncomingMessage } from 'node:http'

export type Body = { ok: true; body: Buffer } | { ok: false; reason: 'too-large' | 'no-room' | 'aborted' }

export type BodyLimits = {
  readonly bodyBytesMax: number
  /** Whether so many more bytes may be held. */
  readonly mayHold?: ((bytes: number) => boolean) | undefined
}

/** Reads the body. One over the limit is not read further; the response to it ends the connection. */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<Body> {
  if (request.destroyed) return Promise.resolve({ ok: false, reason: 'aborted' })
  if (Number(request.headers['content-length'] ?? 0) > limits.bodyBytesMax) {
    return Promise.resolve({ ok: false, reason: 'too-large' })
  }
  return new Promise((resolve) => {
    const body = new GrowingBuffer(Number(request.headers['content-length'] ?? 0))
    let bytes = 0
    const finish = (result: Body) => {
      request.off('data', onData).off('end', onEnd).off('close', onClose)
      if (!result.ok) request.pause()
      resolve(result)
    }
    const onData = (chunk: Buffer) => {
      bytes += chunk.length
      if (bytes > limits.bodyBytesMax) finish({ ok: false, reason: 'too-large' })
      else if (limits.mayHold?.(chunk.length) === false) finish({ ok: false, reason: 'no-room' })
      else body.add(chunk)
    }
    const onEnd = () => finish({ ok: true, body: body.take() })
    const onClose = () => finish({ ok: false, reason: 'aborted' })
    request.on('data', onData).on('end', onEnd).on('close', onClose).on('error', ignore)
  })
}

/** One piece as it came, or several in one buffer: small ones would take many times the memory of their bytes. */
class GrowingBuffer {
  /** Bytes of the whole body, where they are known. */
  readonly #expected: number
  #bytes: Buffer = Buffer.alloc(0)
  #length = 0

  constructor(expected: number) {
    this.#expected = expected
  }

  add(piece: Buffer): void {
    const length = this.#length + piece.length
    if (this.#length === 0) this.#bytes = piece
    else {
      if (length > this.#bytes.length) this.#grow(length)
      piece.copy(this.#bytes, this.#length)
    }
    this.#length = length
  }

  take(): Buffer {
    const bytes = this.#bytes.subarray(0, this.#length)
    return bytes.length < this.#bytes.length ? Buffer.from(bytes) : bytes
  }

  #grow(length: number): void {
    // Not the whole at once: what was not received is not counted as held.
    const larger = Buffer.allocUnsafeSlow(this.#expected >= length ? Math.min(this.#expected, 2 * length) : 2 * length)
    this.#bytes.copy(larger, 0, 0, this.#length)
    this.#bytes = larger
  }
}

function ignore(): void {}
