import type { SearchResult } from '../../contract/execution-history.ts'
import type { RecentBlocks } from '../../contract/execution-routes.ts'
import { isAddress } from '../../ui/safe-text.ts'
import type { Route } from './route.ts'

export const SEARCH_CHARACTERS_MAX = 80
const RESULTS_MAX = 10

/** Contracts with this text in the name that this page shows for them, the closest first: the service does not know names of this browser. */
export function namedContracts(names: ReadonlyMap<string, string>, query: string): SearchResult[] {
  const wanted = query.toLowerCase()
  // Digits are a block number, and part of many names.
  const isNumber = /^\d+$/.test(wanted)
  return [...names]
    .filter(([, name]) => (isNumber ? isSame(name, wanted) : name.toLowerCase().includes(wanted)))
    .toSorted(([, a], [, b]) => rank(a, wanted) - rank(b, wanted) || a.localeCompare(b, 'en', { numeric: true }))
    .slice(0, RESULTS_MAX)
    .map(([address, name]) => ({ kind: 'contract', address: address as `0x${string}`, name }))
}

/** 0: the whole name; 1: its beginning; 2: a part of it. */
function rank(name: string, wanted: string): number {
  const lower = name.toLowerCase()
  return lower === wanted ? 0 : lower.startsWith(wanted) ? 1 : 2
}

/** Results of this page and of the service, each once. An address can be opened also where nothing is known of it. */
export function joinResults(
  named: readonly SearchResult[],
  found: readonly SearchResult[],
  query: string,
): SearchResult[] {
  const exact = named.filter((result) => result.kind === 'contract' && isSame(result.name, query))
  const all = exact.length > 0 ? exact : [...named, ...found]
  const byAddress = new Set<string>()
  const results = all.filter((result) => {
    if (result.kind !== 'contract') return true
    const isNew = !byAddress.has(result.address)
    byAddress.add(result.address)
    return isNew
  })
  if (results.length > 0 || !isAddress(query)) return results.slice(0, RESULTS_MAX)
  return [{ kind: 'contract', address: query.toLowerCase() as `0x${string}`, name: null }]
}

function isSame(name: string | null, query: string): boolean {
  return name?.toLowerCase() === query.toLowerCase()
}

export function routeOf(result: SearchResult): Route {
  switch (result.kind) {
    case 'block':
      return { view: 'block', number: result.number }
    case 'transaction':
      return { view: 'block', number: result.block_number, txn: result.index }
    case 'contract':
      return { view: 'contract', address: result.address }
  }
}

/** Which blocks can be found. */
export function heldText(held: RecentBlocks['held']): string {
  if (held.length === 0) return 'No block is held yet.'
  return `Held are blocks ${held.map(({ from, to }) => `${from} to ${to}`).join(', ')}.`
}
