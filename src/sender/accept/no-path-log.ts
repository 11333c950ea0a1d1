import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'

export type NoPathLogDeps = {
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  /** All paths, of which none is open. */
  readonly paths: readonly string[]
}

const LOG_MS = 60_000

/** Called for each transaction that is refused because no path is open. Logs the first at once, then at most one line a minute. */
export function createNoPathLog({ clock, log, paths }: NoPathLogDeps): () => void {
  let loggedMs = Number.NEGATIVE_INFINITY
  let refused = 0
  return () => {
    refused += 1
    if (clock.monotonicMs() - loggedMs < LOG_MS) return
    log.warn({ paths, refused }, 'transactions are refused: no path is open')
    loggedMs = clock.monotonicMs()
    refused = 0
  }
}
