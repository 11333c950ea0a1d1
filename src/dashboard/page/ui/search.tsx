import { useSignal } from '@preact/signals'
import { parseSearch } from '../../model/route.ts'
import { goTo } from '../follow-hash.ts'

/** By block number or address. `/` jumps here. */
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
        {refused.value ? 'neither a block number nor an address of 20 bytes' : ''}
      </span>
    </form>
  )
}
