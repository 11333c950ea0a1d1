import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import { SEARCH_ID } from '../../../ui/focus-search.ts'
import type { CustomerRecord, Page, SubscriptionRecord } from '../../client/wire.ts'
import type { Route } from '../../model/route.ts'
import { goTo } from '../follow-hash.ts'
import { useStore } from '../store.ts'

type Found = { readonly kind: 'customer' | 'subscription'; readonly name: string; readonly note: string }
type State = { readonly results: readonly Found[]; readonly message: string }

const IDLE: State = { results: [], message: '' }
const SHOWN_MAX = 6
const CHARACTERS_MAX = 100
/** While the user types, only the last text is searched for. */
const TYPING_MS = 150

/** Finds customers and subscriptions by name; the key `/` focuses it. */
export function Search() {
  const { client } = useStore()
  const text = useSignal('')
  const state = useSignal<State>(IDLE)
  const form = useRef<HTMLFormElement>(null)
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined)

  useEffect(() => {
    const close = (event: Event): void => {
      const isOutside = event.target instanceof Node && form.current?.contains(event.target) === false
      if (event instanceof KeyboardEvent ? event.key === 'Escape' : isOutside) state.value = IDLE
    }
    addEventListener('pointerdown', close)
    addEventListener('keydown', close)
    return () => {
      removeEventListener('pointerdown', close)
      removeEventListener('keydown', close)
      clearTimeout(timer.current)
    }
  }, [])

  const open = (found: Found): void => {
    text.value = ''
    state.value = IDLE
    const to: Route = { view: `${found.kind}s`, id: found.name, query: {} }
    goTo(to)
  }

  const find = async (isSubmitted: boolean): Promise<void> => {
    const asked = text.value.trim()
    if (asked === '') {
      state.value = IDLE
      return
    }
    const query = { search: asked, limit: String(SHOWN_MAX) }
    const [customers, subscriptions] = await Promise.all([
      client.call<Page<CustomerRecord>>('customerList', { query }),
      client.call<Page<SubscriptionRecord>>('subList', { query }),
    ])
    // The user may have gone on typing.
    if (text.value.trim() !== asked) return
    const results: Found[] = [
      ...(customers.ok ? customers.value.items : []).map(({ name, contact }) => ({
        kind: 'customer' as const,
        name,
        note: contact,
      })),
      ...(subscriptions.ok ? subscriptions.value.items : []).map(({ name, customer = '' }) => ({
        kind: 'subscription' as const,
        name,
        note: customer,
      })),
    ]
    const [only] = results
    if (isSubmitted && only !== undefined && results.length === 1) return open(only)
    const error = customers.ok ? undefined : customers.error.message
    state.value = { results, message: error ?? (results.length === 0 ? 'Nothing found' : `${results.length} found`) }
  }

  return (
    <form
      ref={form}
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        clearTimeout(timer.current)
        void find(true)
      }}
    >
      <input
        id={SEARCH_ID}
        name="search"
        type="search"
        aria-label="Customer or subscription"
        placeholder="Customer or subscription  /"
        autoComplete="off"
        spellcheck={false}
        maxLength={CHARACTERS_MAX}
        value={text.value}
        onInput={(event) => {
          text.value = event.currentTarget.value
          clearTimeout(timer.current)
          timer.current = setTimeout(() => void find(false), TYPING_MS)
        }}
      />
      <div class={state.value.message === '' ? 'found' : 'found found-open'}>
        <p class="dim" role="status">
          {state.value.message}
        </p>
        {state.value.results.length > 0 && (
          <ul>
            {state.value.results.map((found) => (
              <li key={`${found.kind} ${found.name}`}>
                <button type="button" onClick={() => open(found)}>
                  <span class="dim">{found.kind}</span>
                  <span>
                    <bdi>{found.name}</bdi> <span class="dim">{found.note}</span>
                  </span>
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </form>
  )
}
