import { useSignal } from '@preact/signals'
import { formatCount } from '../../../ui/format.ts'

export type FirstRows<Row> = {
  readonly rows: readonly Row[]
  /** How many follow. */
  readonly left: number
  showMore(): void
}

/** With each step ten times as many are shown, so that a long list needs few of them. */
const STEP = 10

/** The first rows of a list that is loaded whole, and more of them on demand. */
export function useFirstRows<Row>(all: readonly Row[], first: number): FirstRows<Row> {
  const count = useSignal(first)
  return {
    rows: all.slice(0, count.value),
    left: Math.max(0, all.length - count.value),
    showMore: () => (count.value *= STEP),
  }
}

export function MoreRows<Row>({ of }: { of: FirstRows<Row> }) {
  if (of.left === 0) return null
  return (
    <p class="more-rows">
      <button type="button" class="button" onClick={() => of.showMore()}>
        Show more
      </button>{' '}
      <span class="dim">{formatCount(of.left)} more</span>
    </p>
  )
}
