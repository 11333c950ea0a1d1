import type { ComponentChildren } from 'preact'
import { ErrorNotice } from './error-notice.tsx'
import type { PageError } from './page-error.ts'
import type { Loaded } from './polled-load.ts'

type LoadedViewProps<Value> = {
  of: Loaded<Value, PageError>
  children: (value: Value) => ComponentChildren
  onRetry?: () => void
}

/** What was loaded, or why there is nothing yet. */
export function LoadedView<Value>({ of, children, onRetry }: LoadedViewProps<Value>) {
  return (
    <>
      {of.error && <ErrorNotice error={of.error} onRetry={onRetry} />}
      {of.value !== undefined && children(of.value)}
      {of.value === undefined && of.error === undefined && (
        <p class="dim waiting" role="status">
          Loading…
        </p>
      )}
    </>
  )
}
