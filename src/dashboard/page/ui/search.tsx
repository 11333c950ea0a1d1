import { useSignal } from '@preact/signals'
import { parseSearch } from '../../model/route.ts'
import { goTo } from '../follow-hash.ts'

/** Search by block number or address; the key `/` focuses it. */
export function Search() {
  const text = useSignal('')
  const refused = useSignal(false)
  return (
    <form
      class="search"
      role="search"
      onSubmit={(event) => {
        event.preventDefault()
        const route = parseSearch(text.value)
        refused.value = route === undefined
        if (route === undefined) return
        goTo(route)
        text.value = ''
      }}
    >
      <input
        id="search"
        name="search"
        type="search"
        aria-label="Block number or address"
        placeholder="Block number or address"
        autoComplete="off"
        spellcheck={false}
        maxLength={80}
        value={text.value}
        aria-invalid={refused.value}
        aria-describedby="search-refused"
        onInput={(event) => {
          text.value = event.currentTarget.value
          refused.value = false
        }}
      />
      <span id="search-refused" class="refused" role="status">
        {refused.value ? 'not a block number or a 20-byte address' : ''}
      </span>
    </form>
  )
}
