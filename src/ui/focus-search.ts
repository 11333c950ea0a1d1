/** The id of the input that `/` focuses. */
export const SEARCH_ID = 'search'

/** Focuses the search of the page on `/`, except while the user types. */
export function focusSearch(event: KeyboardEvent): void {
  if (event.key !== '/' || event.ctrlKey || event.metaKey || event.altKey) return
  const at = event.target instanceof Element ? event.target.closest('input, textarea, select') : null
  if (at !== null) return
  event.preventDefault()
  document.getElementById(SEARCH_ID)?.focus()
}
