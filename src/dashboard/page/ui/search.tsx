import { useSignal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'
import type { SearchResult, SearchResults } from '../../../contract/execution-history.ts'
import type { RecentBlocks } from '../../../contract/execution-routes.ts'
import { SEARCH_ID } from '../../../ui/focus-search.ts'
import { cleanName, isAddress, shortHex } from '../../../ui/safe-text.ts'
import { heldText, joinResults, namedContracts, routeOf, SEARCH_CHARACTERS_MAX } from '../../model/search.ts'
import { goTo } from '../follow-hash.ts'
import { useStore } from '../store.ts'

type State = { readonly results: readonly SearchResult[]; readonly message: string; readonly isRefused: boolean }

const IDLE: State = { results: [], message: '', isRefused: false }

/** Search for blocks, transactions and contracts; the key `/` focuses it. */
export function Search() {
  const { service, labels } = useStore()
  const text = useSignal('')
  const state = useSignal<State>(IDLE)
  const form = useRef<HTMLFormElement>(null)

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
    }
  }, [])

  const open = (result: SearchResult): void => {
    goTo(routeOf(result))
    text.value = ''
    state.value = IDLE
  }

  const find = async (query: string): Promise<void> => {
    const asked = text.value
    const named = namedContracts(labels.all.value, query)
    const found = await service.get<SearchResults>(`v1/search?q=${encodeURIComponent(query)}`)
    // The user may have gone on typing.
    if (text.value !== asked) return
    const results = joinResults(named, found.ok ? found.value.results : [], query)
    const [only] = results
    if (only !== undefined && results.length === 1) return open(only)
    if (results.length > 0) {
      const more = found.ok && found.value.truncated ? ', and more' : ''
      state.value = { results, message: `${results.length} found${more}`, isRefused: false }
      return
    }
    const held = found.ok ? await service.get<RecentBlocks>('v1/blocks?count=1') : undefined
    const message = found.ok
      ? `Nothing found for “${cleanName(query)}”. ${held?.ok === true ? heldText(held.value.held) : ''}`
      : `The search failed: ${cleanName(found.error)}.`
    if (text.value === asked) state.value = { results: [], message, isRefused: true }
  }

  return (
    <form
      ref={form}
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const query = text.value.trim()
        if (query !== '') void find(query)
      }}
    >
      <input
        id={SEARCH_ID}
        name="search"
        type="search"
        aria-label="Block, transaction, contract or name"
        placeholder="Block, transaction, contract or name"
        autoComplete="off"
        spellcheck={false}
        maxLength={SEARCH_CHARACTERS_MAX}
        value={text.value}
        aria-invalid={state.value.isRefused}
        aria-describedby="search-status"
        onInput={(event) => {
          text.value = event.currentTarget.value
          state.value = IDLE
        }}
      />
      <div class={state.value.message === '' ? 'found' : 'found found-open'}>
        <p id="search-status" class={state.value.isRefused ? 'refused' : 'dim'} role="status">
          {state.value.message}
        </p>
        {state.value.results.length > 0 && (
          <ul>
            {state.value.results.map((result) => (
              <li key={`${result.kind} ${idOf(result)}`}>
                <button type="button" onClick={() => open(result)}>
                  <span class="dim">{result.kind}</span>
                  <Result result={result} />
                </button>
              </li>
            ))}
          </ul>
        )}
      </div>
    </form>
  )
}

function idOf(result: SearchResult): string {
  return result.kind === 'block' ? result.id : result.kind === 'transaction' ? result.hash : result.address
}

function Result({ result }: { result: SearchResult }) {
  const { labels } = useStore()
  switch (result.kind) {
    case 'block':
      return (
        <span>
          <span class="number">{String(result.number)}</span> <span class="hex dim">{shortHex(result.id, 6, 4)}</span>
        </span>
      )
    case 'transaction':
      return (
        <span>
          <span class="hex">{shortHex(result.hash, 8, 6)}</span>{' '}
          <span class="dim number">in block {String(result.block_number)}</span>
        </span>
      )
    case 'contract': {
      const name = labels.all.value.get(result.address) ?? (result.name === null ? '' : cleanName(result.name))
      return (
        <span>
          {name !== '' && <bdi>{name}</bdi>}{' '}
          <span class="hex dim">{isAddress(result.address) ? shortHex(result.address, 6, 4) : ''}</span>
        </span>
      )
    }
  }
}
