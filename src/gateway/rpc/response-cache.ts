import type { ResponseRest } from '../../platform/http/server/post.ts'
import type { Upstream, Upstreams } from '../../upstreams/service.ts'
import { immutableCall } from './immutable-call.ts'
import { writeCall } from './request.ts'
import { splitResponse } from './response.ts'
import type { Forward, UpstreamResponse } from './rpc.ts'

export type ResponseCacheOptions = {
  readonly bytesMax: number
  readonly entriesMax: number
  /** A larger answer is not kept. */
  readonly answerBytesMax: number
}

/** The bytes of an answer before and after its id. */
type Entry = { readonly head: Buffer; readonly tail: Buffer; readonly bytes: number }

export type ResponseCache = {
  readonly answerBytesMax: number
  readonly size: { readonly entries: number; readonly bytes: number }
  /** The whole answer with this id, byte for byte as the node gave it otherwise. */
  find(key: string, id: string): Buffer | undefined
  /** Keeps an answer that is a result and not null. */
  keep(key: string, response: Buffer): void
}

/** What an entry takes besides its answer, about. */
const ENTRY_BYTES = 200

export function createResponseCache(
  { bytesMax, entriesMax, answerBytesMax }: ResponseCacheOptions,
  meter: { readonly hit: { inc(): void }; readonly miss: { inc(): void } },
): ResponseCache {
  /** Those not asked for longest come first. */
  const entries = new Map<string, Entry>()
  let bytes = 0

  function remove(key: string, entry: Entry): void {
    entries.delete(key)
    bytes -= entry.bytes
  }

  return {
    answerBytesMax,
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
      if (response.length > answerBytesMax) return
      const split = splitResponse(response.toString('latin1'))
      // An error passes, and null is not for ever: the block or transaction may be there later.
      if (split?.hasResult !== true) return
      const entry = {
        // Copies: a piece of a larger buffer would keep all of it.
        head: Buffer.from(response.subarray(0, split.idFrom)),
        tail: Buffer.from(response.subarray(split.idTo)),
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

/** Answers what is known from memory, and remembers what can be. Pools share nothing: what one customer's own nodes said is for it alone. */
export function withResponseCache(forward: Forward, upstreams: Pick<Upstreams, 'of'>, cache: ResponseCache): Forward {
  const pools = new WeakMap<Upstream, number>()
  let lastPool = 0

  function poolOf(subscriptionId: string): number {
    const upstream = upstreams.of(subscriptionId)
    const known = pools.get(upstream)
    if (known !== undefined) return known
    pools.set(upstream, ++lastPool)
    return lastPool
  }

  return (request, done) => {
    const { methods, single, subscriptionId } = request
    const method = methods[0]
    if (single?.id === undefined || method === undefined) return forward(request, done)
    const wanted = immutableCall(method, single.params)
    if (wanted === undefined) return forward(request, done)
    // What is kept under a key is the response to exactly this text, whatever form the first caller wrote it in.
    const key = `${poolOf(subscriptionId)} ${writeCall(wanted, undefined)}`
    const known = cache.find(key, single.id)
    if (known !== undefined) return done({ kind: 'responded', body: known })
    const canonical = { ...request, body: writeCall(wanted, single.id), bodyBytes: undefined }
    forward(canonical, (response) => done(response.kind === 'responded' ? remembered(response, cache, key) : response))
  }
}

/** A large answer is remembered while it flows by, up to the size that is kept. */
function remembered(
  { body, rest }: Extract<UpstreamResponse, { kind: 'responded' }>,
  cache: ResponseCache,
  key: string,
): UpstreamResponse {
  if (rest === undefined) {
    cache.keep(key, body)
    return { kind: 'responded', body }
  }
  const parts = [body]
  let bytes = body.length
  const watched: ResponseRest = {
    start(listener) {
      rest.start({
        ...listener,
        onData(chunk) {
          bytes += chunk.length
          if (bytes <= cache.answerBytesMax) parts.push(Buffer.from(chunk))
          else parts.length = 0
          listener.onData(chunk)
        },
        onEnd() {
          if (parts.length > 0) cache.keep(key, Buffer.concat(parts))
          listener.onEnd()
        },
      })
    },
    pause: () => rest.pause(),
    resume: () => rest.resume(),
    abort: () => rest.abort(),
  }
  return { kind: 'responded', body, rest: watched }
}
