import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'
import type { AccountError } from '../client.ts'
import { useStore } from './store.ts'

export type Loaded<Value> = { readonly value: Value | undefined; readonly error: AccountError | undefined }

type LoadOptions = {
  readonly query?: Readonly<Record<string, string>>
  /** Loads again after this time while the page is visible. */
  readonly everyMs?: number
  /** Another number loads again. */
  readonly round?: number
}

/** What an endpoint responds with. The old value stays while a new one is loaded. */
export function useLoad<Value>(
  path: string,
  { query = {}, everyMs, round = 0 }: LoadOptions = {},
): ReadonlySignal<Loaded<Value>> {
  const { client } = useStore()
  const loaded = useSignal<Loaded<Value>>({ value: undefined, error: undefined })
  const selected = JSON.stringify(query)
  useEffect(() => {
    const leave = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const load = async (): Promise<void> => {
      if (document.visibilityState === 'visible' || loaded.value.value === undefined) {
        const result = await client.call<Value>(path, { query, signal: leave.signal })
        if (leave.signal.aborted) return
        loaded.value = result.ok ? { value: result.value, error: undefined } : { ...loaded.value, error: result.error }
      }
      if (everyMs !== undefined) timer = setTimeout(() => void load(), everyMs)
    }
    void load()
    return () => {
      leave.abort()
      clearTimeout(timer)
    }
  }, [path, selected, round])
  return loaded
}
