import type { Clock } from '../../core/clock.ts'
import type { Logger } from '../../platform/telemetry/logger.ts'

export type NoPathLogDeps = {
  readonly clock: Clock
  readonly log: Pick<Logger, 'warn'>
  /** All paths, of which none is open. */
  readonly paths: readonly string[]
}

const LOG_MS = 60_000

/** Called for each transaction that is refused because no path is open. Logs the first at once, then once a minute how many were refused in it. */
export function createNoPathLog({ clock, log, paths }: NoPathLogDeps): () => void {
  let isWaiting = false
  let refused = 0

  function print(text: string): void {
    isWaiting = refused > 0
    if (!isWaiting) return
    log.warn({ paths, refused }, text)
    refused = 0
    clock.setTimer(LOG_MS, () => print('transactions were refused in the last minute: no path was open')).unref?.()
  }

  return () => {
    refused += 1
    if (!isWaiting) print('a transaction is refused: no path is open')
  }
}
