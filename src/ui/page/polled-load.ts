import { type ReadonlySignal, useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

export type Loaded<Value, Failure> = {
  readonly value: Value | undefined
  /** The number of the record's version, where it has one. */
  readonly revision: number | undefined
  readonly error: Failure | undefined
}

type LoadResult<Value, Failure> =
  | { readonly ok: true; readonly value: Value; readonly revision?: number }
  | { readonly ok: false; readonly error: Failure }

type PolledLoad<Value, Failure> = {
  readonly load: (signal: AbortSignal) => Promise<LoadResult<Value, Failure>>
  /** What is loaded: what was loaded of another subject is dropped at once. */
  readonly subject: string
  /** A part of it, or the same once more: the old value stays until the new one is there. */
  readonly selection: string
  /** Loads again after this time while the page is visible; a function gets what was loaded last. */
  readonly everyMs?: number | ((value: Value | undefined) => number) | undefined
  readonly isOff?: boolean
}

const NOTHING = { value: undefined, revision: undefined, error: undefined }

/** What a request responds with, loaded again when its selection changes and in an interval. */
export function usePolledLoad<Value, Failure>(
  polled: PolledLoad<Value, Failure>,
): ReadonlySignal<Loaded<Value, Failure>> {
  const { load, subject, selection, everyMs, isOff = false } = polled
  const loaded = useSignal<Loaded<Value, Failure>>(NOTHING)
  useEffect(() => {
    loaded.value = NOTHING
  }, [subject])
  useEffect(() => {
    if (isOff) return
    const leave = new AbortController()
    let timer: ReturnType<typeof setTimeout> | undefined
    const run = async (): Promise<void> => {
      if (document.visibilityState === 'visible' || loaded.value.value === undefined) {
        const result = await load(leave.signal)
        if (leave.signal.aborted) return
        loaded.value = result.ok
          ? { value: result.value, revision: result.revision, error: undefined }
          : { ...loaded.value, error: result.error }
      }
      const nextMs = typeof everyMs === 'function' ? everyMs(loaded.value.value) : everyMs
      if (nextMs !== undefined) timer = setTimeout(() => void run(), nextMs)
    }
    void run()
    return () => {
      leave.abort()
      clearTimeout(timer)
    }
  }, [subject, selection, isOff])
  return loaded
}
