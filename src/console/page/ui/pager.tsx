import { useSignal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

export type Paging = {
  readonly cursor: string | undefined
  readonly page: number
  next(cursor: string): void
  back(): void
}

/** The pages that were visited; another selection begins with the first. */
export function usePaging(selection: string): Paging {
  const cursors = useSignal<readonly string[]>([])
  useEffect(() => {
    cursors.value = []
  }, [selection])
  return {
    cursor: cursors.value.at(-1),
    page: cursors.value.length + 1,
    next: (cursor) => (cursors.value = [...cursors.value, cursor]),
    back: () => (cursors.value = cursors.value.slice(0, -1)),
  }
}

export function Pager({ paging, next }: { paging: Paging; next: string | null | undefined }) {
  if (paging.page === 1 && (next === null || next === undefined)) return null
  return (
    <nav class="pager" aria-label="Pages">
      <button type="button" class="button" disabled={paging.page === 1} onClick={() => paging.back()}>
        Previous
      </button>
      <span class="number dim">Page {paging.page}</span>
      <button
        type="button"
        class="button"
        disabled={next === null || next === undefined}
        onClick={() => next != null && paging.next(next)}
      >
        Next
      </button>
    </nav>
  )
}
