import { constants, createGzip, type Gzip, gunzip, gzip } from 'node:zlib'
import type { ResponseRest } from './server/post.ts'

/** The quickest level, which is also what nginx takes: JSON shrinks to a fifth at any of them. */
const OPTIONS = { level: constants.Z_BEST_SPEED }

/** Compresses what passes, no faster than it is taken. */
export function createGzipStream(): Gzip {
  return createGzip(OPTIONS)
}

/** Compresses on a thread of the pool, not on the event loop. */
export function gzipBytes(bytes: Buffer | string): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    gzip(bytes, OPTIONS, (error, packed) => (error ? reject(error) : resolve(packed)))
  })
}

export type Unpacked =
  | { readonly ok: true; readonly body: Buffer }
  | { readonly ok: false; readonly reason: 'too-large' | 'ratio' | 'malformed' }

/** Bytes that one compressed byte may become. Requests are addresses for the most part, which compress to a half. */
export const INFLATE_RATIO_MAX = 32
/** Up to this size the ratio is not looked at. */
const RATIO_FREE_BYTES = 64 * 1024

/** Inflates on the thread pool, up to a size and up to a ratio. It stops at the first byte beyond. */
export function gunzipBytes(packed: Uint8Array, limits: { readonly bodyBytesMax: number }): Promise<Unpacked> {
  const byRatio = Math.max(RATIO_FREE_BYTES, packed.length * INFLATE_RATIO_MAX)
  const beyond = byRatio < limits.bodyBytesMax ? 'ratio' : 'too-large'
  return new Promise((resolve) => {
    gunzip(packed, { maxOutputLength: Math.min(byRatio, limits.bodyBytesMax) }, (error, body) => {
      if (error === null) resolve({ ok: true, body })
      else resolve({ ok: false, reason: isTooLarge(error) ? beyond : 'malformed' })
    })
  })
}

function isTooLarge(error: NodeJS.ErrnoException): boolean {
  return error.code === 'ERR_BUFFER_TOO_LARGE'
}

/** A large answer compressed on its way: `first` and all of `rest`, read no faster than the client takes the outcome. */
export function gzipRest(first: Buffer, rest: ResponseRest): ResponseRest {
  const packer = createGzip(OPTIONS)
  let isOver = false
  return {
    start(listener) {
      packer.on('data', (chunk: Buffer) => listener.onData(chunk))
      packer.on('end', () => listener.onEnd())
      packer.on('drain', () => rest.resume())
      packer.on('error', () => listener.onFail())
      packer.write(first)
      rest.start({
        onData(chunk) {
          if (!packer.write(chunk)) rest.pause()
        },
        onEnd() {
          isOver = true
          packer.end()
        },
        onFail() {
          isOver = true
          packer.destroy()
          listener.onFail()
        },
      })
    },
    pause: () => void packer.pause(),
    resume: () => void packer.resume(),
    abort() {
      packer.destroy()
      if (!isOver) rest.abort()
      isOver = true
    },
  }
}
