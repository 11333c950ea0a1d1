import type { SearchResult, SearchResults } from '../../../contract/execution-history.ts'
import type { RecentBlocks } from '../../../contract/execution-routes.ts'
import { cleanName, isAddress, shortHex } from '../../../ui/safe-text.ts'
import { SearchBox, type SearchOutcome } from '../../../ui/search-box.tsx'
import { heldText, joinResults, namedContracts, routeOf, SEARCH_CHARACTERS_MAX } from '../../model/search.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'

/** Search for blocks, transactions and contracts. */
export function Search() {
  const { service, labels } = useStore()

  const find = async (query: string): Promise<SearchOutcome<SearchResult>> => {
    const named = namedContracts(labels.all.value, query)
    const found = await service.get<SearchResults>(`v1/search?q=${encodeURIComponent(query)}`)
    const results = joinResults(named, found.ok ? found.value.results : [], query)
    if (results.length > 0) {
      const more = found.ok && found.value.truncated ? ', and more' : ''
      return { results, message: `${results.length} found${more}`, isRefused: false }
    }
    const held = found.ok ? await service.get<RecentBlocks>('v1/blocks?count=1') : undefined
    const message = found.ok
      ? `Nothing found for “${cleanName(query)}”. ${held?.ok === true ? heldText(held.value.held) : ''}`
      : `The search failed: ${cleanName(found.error)}.`
    return { results: [], message, isRefused: true }
  }

  return (
    <SearchBox
      label="Block, transaction, contract or name"
      placeholder="Block, transaction, contract or name"
      charactersMax={SEARCH_CHARACTERS_MAX}
      find={find}
      keyOf={(result) => `${result.kind} ${idOf(result)}`}
      kindOf={({ kind }) => kind}
      show={(result) => <Result result={result} />}
      open={(result) => goTo(routeOf(result))}
    />
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
