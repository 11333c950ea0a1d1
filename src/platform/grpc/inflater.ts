import { gunzipBytes, type Inflation, type Unpacked, unzstdBytes } from '../http/gzip.ts'
import { createConcurrencyLimit } from './concurrency-limit.ts'
import type { GrpcEncoding } from './framing.ts'

/** Inflates one message, unless `isWanted` is false by the time it starts. */
export type Inflate = (packed: Uint8Array, of: InflateRequest) => Promise<Unpacked | 'unwanted'>

export type InflateRequest = {
  readonly encoding: CompressedEncoding
  readonly bytesMax: number
  readonly isWanted: () => boolean
}

export type CompressedEncoding = Exclude<GrpcEncoding, 'identity'>

const INFLATIONS: Readonly<Record<CompressedEncoding, Inflation>> = { gzip: gunzipBytes, zstd: unzstdBytes }

export type Inflater = {
  /** For the messages of one connection, which are inflated one at a time. */
  forConnection(): Inflate
}

/** Half of Node's thread pool, which files and DNS lookups use too. */
const RUNNING_MAX = 2

/**
 * Inflates messages on the thread pool, a few at a time over all connections. A connection has at most one message in the queue of the pool, so it
 * cannot delay the others by sending many.
 */
export function createInflater(inflations = INFLATIONS): Inflater {
  const all = createConcurrencyLimit(RUNNING_MAX)
  return {
    forConnection() {
      const own = createConcurrencyLimit(1)
      return (packed, { encoding, bytesMax, isWanted }) =>
        own.run(async () => {
          if (!isWanted()) return 'unwanted'
          return all.run(async () =>
            isWanted() ? inflations[encoding](packed, { bodyBytesMax: bytesMax }) : 'unwanted',
          )
        })
    },
  }
}
