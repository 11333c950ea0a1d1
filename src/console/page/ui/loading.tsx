import type { ComponentChildren } from 'preact'
import { useStore } from '../store.ts'
import { ErrorNotice } from './error-notice.tsx'
import type { Loaded } from './load.ts'

type LoadingProps<Value> = {
  of: Loaded<Value>
  children: (value: Value) => ComponentChildren
  /** Shown where the process does not have it, which is no error. */
  missing?: ComponentChildren
}

const MISSING: readonly string[] = ['not-found', 'not-available']

/** What was loaded, or why there is nothing yet. */
export function Loading<Value>({ of, children, missing }: LoadingProps<Value>) {
  const { changes } = useStore()
  if (missing !== undefined && of.error !== undefined && MISSING.includes(of.error.code))
    return <Empty>{missing}</Empty>
  return (
    <>
      {of.error && <ErrorNotice error={of.error} onRetry={() => (changes.value += 1)} />}
      {of.value !== undefined ? (
        children(of.value)
      ) : of.error === undefined ? (
        <p class="dim waiting" role="status">
          Loading…
        </p>
      ) : null}
    </>
  )
}

/** Shown where there is nothing, with what to do. */
export function Empty({ children }: { children: ComponentChildren }) {
  return <div class="empty-state">{children}</div>
}
