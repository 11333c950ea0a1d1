import type { ComponentChildren } from 'preact'
import type { AccountError } from '../client.ts'
import type { Loaded } from './load.ts'

/** What was loaded, or why there is nothing yet. */
export function Loading<Value>({ of, children }: { of: Loaded<Value>; children: (value: Value) => ComponentChildren }) {
  return (
    <>
      {of.error && <ErrorNotice error={of.error} />}
      {of.value !== undefined && children(of.value)}
      {of.value === undefined && of.error === undefined && (
        <p class="dim waiting" role="status">
          Loading…
        </p>
      )}
    </>
  )
}

/** An error with what to do about it. */
export function ErrorNotice({ error }: { error: AccountError }) {
  return (
    <div class="notice notice-error" role="alert">
      <p>{error.message}</p>
      {error.fix && <p>{error.fix}</p>}
      {error.requestId && <p class="dim">Request {error.requestId}</p>}
    </div>
  )
}
