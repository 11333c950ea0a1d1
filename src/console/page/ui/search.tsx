import { SearchBox } from '../../../ui/search-box.tsx'
import { findRecords, SEARCH_CHARACTERS_MAX, TYPING_MS } from '../find-records.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'

/** Finds customers and subscriptions by name. */
export function Search() {
  const { client } = useStore()
  return (
    <SearchBox
      label="Customer or subscription"
      placeholder="Customer or subscription  /"
      charactersMax={SEARCH_CHARACTERS_MAX}
      typingMs={TYPING_MS}
      find={async (query) => {
        const { found, error } = await findRecords(client, query)
        const message = error ?? (found.length === 0 ? 'Nothing found' : `${found.length} found`)
        return { results: found, message, isRefused: found.length === 0 }
      }}
      keyOf={({ kind, name }) => `${kind} ${name}`}
      kindOf={({ kind }) => kind}
      show={({ name, note }) => (
        <span>
          <bdi>{name}</bdi> <span class="dim">{note}</span>
        </span>
      )}
      open={({ route }) => goTo(route)}
    />
  )
}
