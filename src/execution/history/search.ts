import type { SearchResult, SearchResults } from '../../contract/execution-history.ts'
import type { Hex } from '../../contract/stream-events.ts'
import type { WaitingWork } from '../../core/work.ts'
import type { Blocks } from '../rpc/blocks.ts'
import type { CallMeter } from '../rpc/call-meter.ts'
import type { History } from './history.ts'
import type { HexPattern } from './prefix-index.ts'
import type { Proposal } from './proposals.ts'

export type SearchDeps = {
  readonly history: Pick<History, 'proposals' | 'contracts' | 'topAccesses'>
  readonly blocks: Pick<Blocks, 'byNumber' | 'byHash' | 'byTxn'>
  /** Names of contracts by address. */
  readonly names: ReadonlyMap<string, string>
}

/** Longer queries are refused: a hash has 66 characters. */
export const QUERY_CHARACTERS_MAX = 80
const RESULTS_MAX = 10

const NUMBER = /^#?(\d{1,15})$/
const HASH = /^(?:0x)?([0-9a-f]{64})$/
const ADDRESS = /^0x[0-9a-f]{40}$/
/** The beginning of a hash or an address, or its beginning and end as the page shortens it: `0x12ab…ef90`. */
const PART = /^(?:0x)?([0-9a-f]{4,63})(?:(?:…|\.{2,3})([0-9a-f]{0,63}))?$/

/** Looks a query up among everything that is held: block number, hash, address, name, in this order. */
export function* search(query: string, deps: SearchDeps, meter: CallMeter): WaitingWork<SearchResults> {
  const text = query.trim().toLowerCase()
  const found = [
    ...findNumber(text, deps),
    ...(yield* findHash(text, deps, meter)),
    ...findPart(text, deps),
    ...findName(text, deps),
  ]
  const results = [...new Map(found.map((result) => [keyOf(result), result])).values()]
  return { query, results: results.slice(0, RESULTS_MAX), truncated: results.length > RESULTS_MAX }
}

function findNumber(text: string, { blocks, history }: SearchDeps): SearchResult[] {
  const digits = NUMBER.exec(text)?.[1]
  if (digits === undefined) return []
  const number = Number(digits)
  const held = blocks.byNumber(number)
  if (held !== undefined) return [{ kind: 'block', number, id: held.id, hash: held.hash }]
  const proposal = history.proposals.byNumber(number)
  return proposal === undefined || proposal.record?.current_stage === 'Rejected' ? [] : [blockResult(proposal)]
}

function* findHash(text: string, { blocks, history }: SearchDeps, meter: CallMeter): WaitingWork<SearchResult[]> {
  const digits = HASH.exec(text)?.[1]
  if (digits === undefined) return []
  const hash: Hex = `0x${digits}`
  const block = blocks.byHash(hash)
  if (block !== undefined) return [{ kind: 'block', number: block.number, id: block.id, hash: block.hash }]
  const proposal = history.proposals.byId(hash)
  if (proposal !== undefined) return [blockResult(proposal)]
  const txn = yield* blocks.byTxn(hash, meter)
  return txn === undefined ? [] : [{ kind: 'transaction', hash, block_number: txn.held.number, index: txn.index }]
}

/** Contracts and blocks of the history. */
function findPart(text: string, { history, names }: SearchDeps): SearchResult[] {
  const [, start, end = ''] = PART.exec(text) ?? []
  if (start === undefined) return []
  const pattern: HexPattern = { start: `0x${start}`, end }
  const isLike = (hex: string | undefined): boolean => hex?.startsWith(pattern.start) === true && hex.endsWith(end)
  const addresses = new Set([
    ...names.keys().filter(isLike),
    ...history.contracts.find(pattern, RESULTS_MAX + 1),
    ...(history.topAccesses?.data.account.map(({ key }) => key).filter(isLike) ?? []),
  ])
  const contracts = [...addresses].filter((address) => ADDRESS.test(address)).map((address) => contract(address, names))
  const blocks = [...history.proposals.values()].filter(
    ({ id, record }) => isLike(id) || isLike(record?.eth_block_hash),
  )
  return [...contracts, ...blocks.map(blockResult)]
}

function findName(text: string, { names }: SearchDeps): SearchResult[] {
  if (text === '') return []
  const named = [...names].filter(([, name]) => name.toLowerCase().includes(text))
  // A name that equals the query comes first.
  const rank = (name: string): number => (name.toLowerCase() === text ? 0 : 1)
  return named.toSorted(([, a], [, b]) => rank(a) - rank(b)).map(([address]) => contract(address, names))
}

function contract(address: string, names: ReadonlyMap<string, string>): SearchResult {
  return { kind: 'contract', address: address as Hex, name: names.get(address) ?? null }
}

function blockResult({ id, number, record }: Proposal): SearchResult {
  return { kind: 'block', number, id, hash: record?.eth_block_hash ?? null }
}

function keyOf(result: SearchResult): string {
  if (result.kind === 'block') return result.id
  return result.kind === 'contract' ? result.address : `transaction ${result.hash}`
}
