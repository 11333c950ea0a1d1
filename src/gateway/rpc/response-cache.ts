import type { NodeUser } from '../../contract/products.ts'
import type { HeldBytes } from '../../platform/http/held-bytes.ts'
import type { ResponseRest } from '../../platform/http/response-rest.ts'
import { writeCall } from '../../solana/json/json-rpc.ts'
import type { NodeResponse } from '../../upstreams/response.ts'
import type { Upstreams } from '../../upstreams/service.ts'
import type { Upstream } from '../../upstreams/upstream.ts'
import type { Forward } from './forward.ts'
import { HeldCharge } from './held-charge.ts'
import { immutableCall } from './immutable-call.ts'
import { findResponseId } from './response-id.ts'

export type ResponseCacheOptions = {
  readonly bytesMax: number
  readonly entriesMax: number
  /** A larger response is not cached. */
  readonly responseBytesMax: number
}

type CacheSection = ResponseCacheOptions & { readonly enabled: boolean; readonly answerBytesMax?: number | undefined }

/** The cache as its section of the configuration sets it up; undefined where it is off. */
export function cacheOf({ enabled, answerBytesMax, ...cache }: CacheSection): ResponseCacheOptions | undefined {
  return enabled ? { ...cache, responseBytesMax: answerBytesMax ?? cache.responseBytesMax } : undefined
}

/** The part of the cache that each of several gateway threads has. A response that fills a part alone would only evict others. */
export function cachePartOf(cache: ResponseCacheOptions, threads: number): ResponseCacheOptions {
  const bytesMax = Math.floor(cache.bytesMax / threads)
  return {
    bytesMax,
    entriesMax: Math.max(1, Math.floor(cache.entriesMax / threads)),
    responseBytesMax: Math.min(cache.responseBytesMax, bytesMax),
  }
}

/** The bytes of a response before and after its id. */
type Entry = { readonly head: Buffer; readonly tail: Buffer; readonly bytes: number }

export type ResponseCache = {
  readonly responseBytesMax: number
  readonly size: { readonly entries: number; readonly bytes: number }
  /** The cached response with this id, all other bytes as the node sent them. */
  find(key: string, id: string): Buffer | undefined
  /** Caches a response whose result is not null. */
  keep(key: string, response: Buffer): void
}

/** About what an entry occupies besides its response. */
const ENTRY_BYTES = 200

export function createResponseCache(
  { bytesMax, entriesMax, responseBytesMax }: ResponseCacheOptions,
  meter: { readonly hit: { inc(): void }; readonly miss: { inc(): void } },
): ResponseCache {
  /** The least recently used come first. */
  const entries = new Map<string, Entry>()
  let bytes = 0

  function remove(key: string, entry: Entry): void {
    entries.delete(key)
    bytes -= entry.bytes
  }

  return {
    responseBytesMax,
    get size() {
      return { entries: entries.size, bytes }
    },
    find(key, id) {
      const entry = entries.get(key)
      if (entry === undefined) {
        meter.miss.inc()
        return undefined
      }
      meter.hit.inc()
      entries.delete(key)
      entries.set(key, entry)
      return Buffer.concat([entry.head, Buffer.from(id), entry.tail])
    },
    keep(key, response) {
      if (response.length > responseBytesMax) return
      const found = findResponseId(response)
      // Errors are transient, and so is null: the block or transaction may exist later.
      if (found?.hasResult !== true) return
      const entry = {
        // Copies: a view would keep the whole buffer in memory.
        head: Buffer.from(response.subarray(0, found.idFrom)),
        tail: Buffer.from(response.subarray(found.idTo)),
        bytes: response.length + key.length + ENTRY_BYTES,
      }
      if (entry.bytes > bytesMax) return
      const before = entries.get(key)
      if (before !== undefined) remove(key, before)
      entries.set(key, entry)
      bytes += entry.bytes
      for (const [oldest, old] of entries) {
        if (bytes <= bytesMax && entries.size <= entriesMax) break
        remove(oldest, old)
      }
    },
  }
}

/** Serves immutable responses from memory. Pools share no entries: responses of a customer's dedicated nodes are for that customer alone. */
export function withResponseCache(
  forward: Forward,
  upstreams: Pick<Upstreams, 'of'>,
  { cache, heldBytes }: { readonly cache: ResponseCache; readonly heldBytes: HeldBytes },
): Forward {
  const pools = new WeakMap<Upstream, number>()
  let lastPool = 0

  function poolOf(user: NodeUser): number {
    const upstream = upstreams.of(user)
    const known = pools.get(upstream)
    if (known !== undefined) return known
    pools.set(upstream, ++lastPool)
    return lastPool
  }

  return (request, done) => {
    const { methods, single, nodeUser } = request
    const method = methods[0]
    if (single?.id === undefined || method === undefined) return forward(request, done)
    const call = immutableCall(method, single.params)
    if (call === undefined) return forward(request, done)
    // The canonical text is both the key and what is forwarded, so an entry is the response to exactly its key.
    const key = `${poolOf(nodeUser)} ${writeCall(call, undefined)}`
    const body = cache.find(key, single.id)
    if (body !== undefined) return done({ kind: 'responded', status: 200, body, rest: undefined, nodeName: CACHE })
    const canonical = { ...request, body: writeCall(call, single.id), bodyBytes: undefined }
    forward(canonical, (response) => {
      if (response.kind !== 'responded') return done(response)
      done(cached(response, cache, key, new HeldCharge(heldBytes, nodeUser.subscriptionId)))
    })
  }
}

/** In place of a node's name. */
const CACHE = 'cache'

/** Caches the response; a large one while it is streamed, up to the size limit. Until then `charge` holds its copy. */
function cached(response: NodeResponse, cache: ResponseCache, key: string, charge: HeldCharge): NodeResponse {
  const { body, rest } = response
  if (rest === undefined) {
    cache.keep(key, body)
    return response
  }
  let parts: Buffer[] | undefined = []
  let bytes = 0
  function add(part: Buffer): void {
    bytes += part.length
    if (bytes <= cache.responseBytesMax && charge.update(bytes)) parts?.push(part)
    else drop()
  }
  function drop(): void {
    parts = undefined
    charge.release()
  }
  const watched: ResponseRest = {
    start(listener) {
      add(body)
      rest.start({
        onData(chunk) {
          if (parts !== undefined) add(chunk)
          listener.onData(chunk)
        },
        onEnd() {
          if (parts !== undefined) cache.keep(key, Buffer.concat(parts))
          drop()
          listener.onEnd()
        },
        onFail(cause) {
          drop()
          listener.onFail(cause)
        },
      })
    },
    pause: () => rest.pause(),
    resume: () => rest.resume(),
    abort() {
      drop()
      rest.abort()
    },
  }
  return { ...response, rest: watched }
}
