import type { Clock } from '../../core/clock.ts'

export type CachedDocument<Value> = {
  /** The document; loaded if there is none or it is too old. */
  get(): Promise<Value>
  /** Loads it again, unless an attempt was made within `gapMs`: then the present one. */
  renew(): Promise<Value>
}

export type CachedDocumentOptions = {
  readonly ageMsMax: number
  /** Between two attempts to load it. A failure is repeated to all callers until then. */
  readonly gapMs: number
}

/** A document of another server that is loaded at a bounded rate, whatever callers ask for. */
export function createCachedDocument<Value>(
  load: () => Promise<Value>,
  { ageMsMax, gapMs }: CachedDocumentOptions,
  clock: Clock,
): CachedDocument<Value> {
  let last: { readonly atMs: number; readonly loading: Promise<Value> } | undefined
  let loaded: { readonly atMs: number; readonly value: Value } | undefined

  function attempt(nowMs: number): Promise<Value> {
    if (last !== undefined && nowMs - last.atMs < gapMs) return last.loading
    const loading = load().then((value) => {
      loaded = { atMs: nowMs, value }
      return value
    })
    // The callers handle it; without this a failure without a waiting caller would end the process.
    loading.catch(() => {})
    last = { atMs: nowMs, loading }
    return loading
  }

  return {
    async get() {
      const nowMs = clock.monotonicMs()
      return loaded !== undefined && nowMs - loaded.atMs < ageMsMax ? loaded.value : attempt(nowMs)
    },
    async renew() {
      return attempt(clock.monotonicMs())
    },
  }
}
