import { formatCompact } from '../format.ts'

/** How much of a limit is used. */
export function Meter({ used, max }: { used: number; max: number }) {
  const share = max > 0 ? used / max : 0
  const tone = share >= 1 ? 'poor' : share >= 0.8 ? 'fair' : 'good'
  return (
    <span class={`meter tone-${tone}`}>
      <span class="meter-bar" aria-hidden="true">
        <i style={{ width: `${Math.min(100, share * 100)}%` }} />
      </span>
      <span class="number">
        {Math.round(share * 100)} %<span class="dim"> of {formatCompact(max)}</span>
      </span>
    </span>
  )
}
