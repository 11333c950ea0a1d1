import {
  type CompressCallback,
  constants,
  createGzip,
  createZstdCompress,
  type Gzip,
  gunzip,
  gzip,
  type ZstdCompress,
  zstdDecompress,
} from 'node:zlib'
import type { ResponseRest } from './response-rest.ts'

/** The fastest level, also the default of nginx: JSON shrinks to a fifth at any level. */
const OPTIONS = { level: constants.Z_BEST_SPEED }

/** A compressing stream with backpressure. */
export function createGzipStream(): Gzip {
  return createGzip(OPTIONS)
}

/** Level 1 with a window of 512 KiB, so that a response takes little memory here and at the client. */
const ZSTD_OPTIONS = {
  params: { [constants.ZSTD_c_compressionLevel]: 1, [constants.ZSTD_c_windowLog]: 19 },
}

/** The same for zstd. */
export function createZstdStream(): ZstdCompress {
  return createZstdCompress(ZSTD_OPTIONS)
}

/** Compresses on the thread pool. */
export function gzipBytes(bytes: Uint8Array | string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    gzip(bytes, OPTIONS, (error, packed) => (error ? reject(error) : resolve(packed)))
  })
}

export type Unpacked =
  | { readonly ok: true; readonly body: Buffer }
  /** `bytes`: what was inflated before it failed, at most. */
  | { readonly ok: false; readonly reason: 'too-large' | 'ratio' | 'malformed'; readonly bytes: number }

/** Bytes that one compressed byte may inflate to. Requests are mostly addresses, which compress to a half. */
export const INFLATE_RATIO_MAX = 32
/** Up to this size the ratio is not checked. */
const RATIO_FREE_BYTES = 64 * 1024

/** The window of a frame is allocated before anything is inflated. 8 MiB is what every decoder has to support (RFC 9659). */
const ZSTD_WINDOW_LOG_MAX = 23

/** Inflates on the thread pool, up to a size and a ratio. Stops at the first byte beyond. */
export type Inflation = (packed: Uint8Array, limits: { readonly bodyBytesMax: number }) => Promise<Unpacked>

export const gunzipBytes = inflation((packed, maxOutputLength, done) => gunzip(packed, { maxOutputLength }, done))

/** Options of every decompression of what a client sends. */
export const ZSTD_PARAMS = { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX }
export const unzstdBytes = inflation((packed, maxOutputLength, done) =>
  zstdDecompress(packed, { maxOutputLength, params: ZSTD_PARAMS }, done),
)

function inflation(
  decompress: (packed: Uint8Array, maxOutputLength: number, done: CompressCallback) => void,
): Inflation {
  return (packed, { bodyBytesMax }) => {
    const byRatio = Math.max(RATIO_FREE_BYTES, packed.length * INFLATE_RATIO_MAX)
    const bytes = Math.min(byRatio, bodyBytesMax)
    const beyond = byRatio < bodyBytesMax ? 'ratio' : 'too-large'
    return new Promise((resolve) => {
      decompress(packed, bytes, (error, body) => {
        if (error === null) resolve({ ok: true, body })
        else resolve({ ok: false, reason: isTooLarge(error) ? beyond : 'malformed', bytes })
      })
    })
  }
}

function isTooLarge(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_BUFFER_TOO_LARGE'
}

/** Compresses a response while it streams: `first`, then `rest`, with backpressure. */
export function gzipRest(first: Buffer, rest: ResponseRest): ResponseRest {
  const compressor = createGzip(OPTIONS)
  let isOver = false
  return {
    start(listener) {
      compressor.on('data', (chunk: Buffer) => listener.onData(chunk))
      compressor.on('end', () => listener.onEnd())
      compressor.on('drain', () => rest.resume())
      compressor.on('error', () => listener.onFail())
      compressor.write(first)
      rest.start({
        onData(chunk) {
          if (!compressor.write(chunk)) rest.pause()
        },
        onEnd() {
          isOver = true
          compressor.end()
        },
        onFail() {
          isOver = true
          compressor.destroy()
          listener.onFail()
        },
      })
    },
    pause: () => void compressor.pause(),
    resume: () => void compressor.resume(),
    abort() {
      compressor.destroy()
      if (!isOver) rest.abort()
      isOver = true
    },
  }
}
