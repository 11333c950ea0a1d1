import { useSignal } from '@preact/signals'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import { SEARCH_ID } from './focus-search.ts'

export type SearchOutcome<Result> = {
  readonly results: readonly Result[]
  readonly message: string
  /** Nothing was found, or the search failed. */
  readonly isRefused: boolean
}

type SearchBoxProps<Result> = {
  label: string
  placeholder: string
  charactersMax: number
  /** Searches while the user types, when no key was pressed for this time; without it only on Enter. */
  typingMs?: number
  find: (query: string) => Promise<SearchOutcome<Result>>
  keyOf: (result: Result) => string
  kindOf: (result: Result) => string
  show: (result: Result) => ComponentChildren
  open: (result: Result) => void
}

const STATUS_ID = 'search-status'

/** The search of a page: a field, and what was found below it. Enter opens the only result. The key `/` focuses it. */
export function SearchBox<Result>(props: SearchBoxProps<Result>) {
  const { label, placeholder, charactersMax, typingMs, find, keyOf, kindOf, show, open } = props
  const text = useSignal('')
  const outcome = useSignal<SearchOutcome<Result> | undefined>(undefined)
  const form = useRef<HTMLFormElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)

  useEffect(() => {
    const close = (event: Event): void => {
      const isOutside = event.target instanceof Node && form.current?.contains(event.target) === false
      if (event instanceof KeyboardEvent ? event.key === 'Escape' : isOutside) outcome.value = undefined
    }
    addEventListener('pointerdown', close)
    addEventListener('keydown', close)
    return () => {
      removeEventListener('pointerdown', close)
      removeEventListener('keydown', close)
      clearTimeout(timer.current)
    }
  }, [])

  const openResult = (result: Result): void => {
    text.value = ''
    outcome.value = undefined
    open(result)
  }

  const search = async (isSubmitted: boolean): Promise<void> => {
    const asked = text.value.trim()
    if (asked === '') {
      outcome.value = undefined
      return
    }
    const found = await find(asked)
    // The user may have gone on typing.
    if (text.value.trim() !== asked) return
    const [only] = found.results
    if (isSubmitted && only !== undefined && found.results.length === 1) openResult(only)
    else outcome.value = found
  }

  const { results = [], message = '', isRefused = false } = outcome.value ?? {}
  return (
    <form
      ref={form}
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        clearTimeout(timer.current)
        void search(true)
      }}
    >
      <input
        id={SEARCH_ID}
        name="search"
        type="search"
        aria-label={label}
        placeholder={placeholder}
        autoComplete="off"
        spellcheck={false}
        maxLength={charactersMax}
        value={text.value}
        aria-invalid={isRefused}
        aria-describedby={STATUS_ID}
        onInput={(event) => {
          text.value = event.currentTarget.value
          clearTimeout(timer.current)
          if (typingMs === undefined) outcome.value = undefined
          else timer.current = setTimeout(() => void search(false), typingMs)
        }}
      />
      <div class={message === '' ? 'found' : 'found found-open'}>
        <p id={STATUS_ID} class={isRefused ? 'refused' : 'dim'} role="status">
          {message}
        </p>
        {results.length > 0 && (
          <ul>
            {results.map((result) => (
              <li key={keyOf(result)}>
                <button type="button" onClick={() => openResult(result)}>
                  <span class="dim">{kindOf(result)}</span>
                  {show(result)}
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </form>
  )
}
