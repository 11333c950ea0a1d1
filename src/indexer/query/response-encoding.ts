import type { Transform } from 'node:stream'
import { createLz4Stream } from '../../platform/compression/lz4.ts'
import { createGzipStream, createZstdStream } from '../../platform/http/gzip.ts'

export type ResponseEncoding = 'zstd' | 'lz4' | 'gzip'

/** In ClickHouse's order of preference (chooseHTTPCompressionMethod). */
const ENCODINGS: readonly ResponseEncoding[] = ['zstd', 'lz4', 'gzip']

/** The first of our encodings that Accept-Encoding lists with a weight above zero; `*` allows gzip, which every client has. */
export function chooseEncoding(acceptEncoding: string | undefined): ResponseEncoding | undefined {
  const accepted = new Map<string, boolean>()
  for (const member of (acceptEncoding ?? '').slice(0, ACCEPT_LENGTH_MAX).split(',')) {
    const [name = '', ...parameters] = member.split(';').map((part) => part.trim().toLowerCase())
    accepted.set(name === 'x-gzip' ? 'gzip' : name, !parameters.some((each) => /^q=0(\.0{0,3})?$/.test(each)))
  }
  const listed = ENCODINGS.find((encoding) => accepted.get(encoding) === true)
  return listed ?? (accepted.get('*') === true && accepted.get('gzip') !== false ? 'gzip' : undefined)
}

/** More than a client lists. */
const ACCEPT_LENGTH_MAX = 1024

export function createEncoder(encoding: ResponseEncoding): Transform {
  switch (encoding) {
    case 'gzip':
      return createGzipStream()
    case 'zstd':
      return createZstdStream()
    case 'lz4':
      return createLz4Stream()
  }
}
