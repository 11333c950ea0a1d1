import type { ComponentChildren } from 'preact'
import { ErrorNotice } from './error-notice.tsx'
import type { Loaded } from './load.ts'

/** What was loaded, or why there is nothing yet. */
export function Loading<Value>({ of, children }: { of: Loaded<Value>; children: (value: Value) => ComponentChildren }) {
  return (
    <>
      {of.error && <ErrorNotice error={of.error} />}
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
