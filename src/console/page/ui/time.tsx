import { showAgo, showTime } from '../../../ui/model/time.ts'

/** A time in UTC, and how long ago that is. */
export function Time({ at, none = '–' }: { at: string | null | undefined; none?: string }) {
  if (at == null) return <span class="dim">{none}</span>
  return (
    <time dateTime={at} title={`${at.slice(0, 19).replace('T', ' ')} UTC`}>
      {showTime(at)} <span class="dim minor">{showAgo(at, Date.now())}</span>
    </time>
  )
}
