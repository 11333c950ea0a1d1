import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { AdminRouteId } from '../../../contract/admin-routes.ts'
import type { AdminError, AdminRequest } from '../../client/admin-client.ts'
import { useStore } from '../store.ts'

export type Loaded<Value> = {
  readonly value: Value | undefined
  readonly revision: number | undefined
  readonly error: AdminError | undefined
}

export type LoadOptions<Value> = AdminRequest & {
  /** Loads again after this time while the page is visible; a function gets what was loaded last. */
  readonly everyMs?: number | ((value: Value | undefined) => number)
  readonly isOff?: boolean
}

/** What a route responds with, loaded again after each change and in an interval. The old value stays while a new one is loaded. */
export function useLoad<Value>(id: AdminRouteId, options: LoadOptions<Value> = {}): ReadonlySignal<Loaded<Value>> {
  const { client, changes } = useStore()
  const loaded = useSignal<Loaded<Value>>({ value: undefined, revision: undefined, error: undefined })
  const { everyMs, isOff = false, params, query } = options
  const subject = JSON.stringify([id, params])
  const selected = JSON.stringify(query)
  const changed = changes.value
  useEffect(() => {
    // Another record: what was loaded belongs to the previous one.
    loaded.value = { value: undefined, revision: undefined, error: undefined }
  }, [subject])
  useEffect(() => {
    if (isOff) return
    const leave = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (): Promise<void> => {
      if (document.visibilityState === 'visible' || loaded.value.value === undefined) {
        const result = await client.call<Value>(id, {
          ...(params === undefined ? {} : { params }),
          ...(query === undefined ? {} : { query }),
          signal: leave.signal,
        })
        if (leave.signal.aborted) return
        loaded.value = result.ok
          ? { value: result.value, revision: result.revision, error: undefined }
          : { ...loaded.value, error: result.error }
      }
      const nextMs = typeof everyMs === 'function' ? everyMs(loaded.value.value) : everyMs
      if (nextMs !== undefined) timer = setTimeout(() => void load(), nextMs)
    }
    void load()
    return () => {
      leave.abort()
      clearTimeout(timer)
    }
  }, [subject, selected, changed, isOff])
  return loaded
}
