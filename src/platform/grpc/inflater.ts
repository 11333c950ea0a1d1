import { createConcurrencyLimit } from '../../core/concurrency-limit.ts'
import { gunzipBytes, type Unpacked } from '../http/gzip.ts'

/** Inflates one message, unless `isWanted` is false by the time it starts. */
export type Inflate = (packed: Uint8Array, of: InflateRequest) => Promise<Unpacked | 'unwanted'>

export type InflateRequest = { readonly bytesMax: number; readonly isWanted: () => boolean }

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
export function createInflater(gunzip: typeof gunzipBytes = gunzipBytes): Inflater {
  const all = createConcurrencyLimit(RUNNING_MAX)
  return {
    forConnection() {
      const own = createConcurrencyLimit(1)
      return (packed, { bytesMax, isWanted }) =>
        own.run(async () => {
          if (!isWanted()) return 'unwanted'
          return all.run(async () => (isWanted() ? gunzip(packed, { bodyBytesMax: bytesMax }) : 'unwanted'))
        })
    },
  }
}
