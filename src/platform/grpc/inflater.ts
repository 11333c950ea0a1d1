import { createConcurrencyLimit } from '../../core/concurrency-limit.ts'
import { gunzipBytes, type Unpacked } from '../http/gzip.ts'

/** Inflates one message for as long as somebody wants it. */
export type Inflate = (packed: Uint8Array, of: InflateRequest) => Promise<Unpacked | 'unwanted'>

export type InflateRequest = { readonly bytesMax: number; readonly isWanted: () => boolean }

export type Inflater = {
  /** For the messages of one connection, which are inflated one at a time. */
  forConnection(): Inflate
}

/** Half of Node's thread pool; files and name look-ups need it too. */
const RUNNING_MAX = 2

/**
 * Inflates messages on the thread pool, a few at once over all connections. A connection has at most one among those
 * that wait for the pool, so none of them can hold up the others by sending many.
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
