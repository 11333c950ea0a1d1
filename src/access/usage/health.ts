import type { Lifecycle } from '../../platform/process/lifecycle.ts'
import type { UsageSpool } from './spool.ts'
import type { UsageState } from './writer.ts'

/** Usage that cannot be written is reported after this time; a full disk at once. */
const USAGE_LATE_MS = 5000

export type UsageHealthDeps = {
  readonly storeName: string
  readonly spool: UsageSpool | undefined
  readonly lifecycle: Pick<Lifecycle, 'degraded' | 'recovered'>
  readonly monotonicMs: number
}

/** Reports usage that cannot be written to the store, and where it is kept. */
export function reportUsageHealth({ failing, spoolFailing }: UsageState, deps: UsageHealthDeps): void {
  const { storeName, spool, lifecycle, monotonicMs } = deps
  const kept =
    spool === undefined || spoolFailing !== undefined
      ? `usage is held in memory${spoolFailing === undefined ? '' : `, because ${spoolFailing}`}`
      : `usage is kept in ${spool.name}`
  if (failing?.code === 'disk-full')
    lifecycle.degraded('disk', `full: no space is left for ${storeName}; changes are refused, ${kept}`)
  else lifecycle.recovered('disk')
  const isLate = failing !== undefined && monotonicMs - failing.sinceMs >= USAGE_LATE_MS
  if (isLate && failing.code !== 'disk-full')
    lifecycle.degraded('usage', `cannot be written to the store (${failing.code}): ${kept}`)
  else lifecycle.recovered('usage')
}
