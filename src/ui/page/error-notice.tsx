import type { PageError } from './page-error.ts'

/** An error with what to do about it. */
export function ErrorNotice({ error, onRetry }: { error: PageError; onRetry?: (() => void) | undefined }) {
  return (
    <div class="notice notice-error" role="alert">
      <p>{error.message}</p>
      {error.fix && <p>{error.fix}</p>}
      {onRetry && (
        <p>
          <button type="button" class="button" onClick={onRetry}>
            Try again
          </button>
        </p>
      )}
      {error.requestId && <p class="dim">Request {error.requestId}</p>}
    </div>
  )
}
