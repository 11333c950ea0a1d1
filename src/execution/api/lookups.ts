import type { RecentBlocks } from '../../contract/execution-routes.ts'
import type { Hex } from '../../contract/stream-events.ts'
import type { WaitingWork } from '../../core/work.ts'
import { contractFigures } from '../history/contract-figures.ts'
import { QUERY_CHARACTERS_MAX, type SearchDeps, search } from '../history/search.ts'
import { blockTransactions } from '../rpc/block-transactions.ts'
import type { CallMeter } from '../rpc/call-meter.ts'
import { parseBlockNumber, type RouteResponse, routeError } from './routes.ts'

export type LookupDeps = SearchDeps & { readonly held: () => RecentBlocks['held'] }

/** A read that takes longer than a step of the event loop, or waits for the disk. */
export type Lookup = (query: URLSearchParams, deps: LookupDeps, meter: CallMeter) => WaitingWork<RouteResponse>

const TRANSACTIONS_DEFAULT = 100
const TRANSACTIONS_MAX = 500

const OF_BLOCK = /^\/v1\/blocks\/([^/]+)\/transactions$/
const OF_CONTRACT = /^\/v1\/contracts\/([^/]+)$/

/** The lookup of a path; undefined where there is none. */
export function findLookup(path: string): Lookup | undefined {
  if (path === '/v1/search') return respondToSearch
  const [, number] = OF_BLOCK.exec(path) ?? []
  if (number !== undefined) return (query, deps, meter) => respondWithTransactions(number, query, deps, meter)
  const [, address] = OF_CONTRACT.exec(path) ?? []
  return address === undefined ? undefined : (_, deps) => respondWithContract(address, deps)
}

function* respondToSearch(query: URLSearchParams, deps: LookupDeps, meter: CallMeter): WaitingWork<RouteResponse> {
  const text = query.get('q')?.trim() ?? ''
  if (text === '' || text.length > QUERY_CHARACTERS_MAX)
    return routeError(400, `q is a text of 1 to ${QUERY_CHARACTERS_MAX} characters`)
  return { status: 200, body: yield* search(text, deps, meter) }
}

function* respondWithTransactions(
  number: string,
  query: URLSearchParams,
  { blocks, held }: LookupDeps,
  meter: CallMeter,
): WaitingWork<RouteResponse> {
  const wanted = parseBlockNumber(number)
  if (wanted === undefined) return routeError(400, 'invalid block number')
  const limit = countOf(query.get('limit') ?? String(TRANSACTIONS_DEFAULT))
  if (limit === undefined || limit < 1 || limit > TRANSACTIONS_MAX)
    return routeError(400, `limit is a number from 1 to ${TRANSACTIONS_MAX}`)
  const offset = countOf(query.get('offset') ?? '0')
  if (offset === undefined) return routeError(400, 'offset is a number from 0 on')
  const handle = blocks.byNumber(wanted)
  if (handle === undefined) return routeError(404, `block not found: ${heldText(held())}`)
  const page = yield* blockTransactions(handle, { limit, offset }, meter)
  if (page === undefined) return routeError(404, 'block not found: events of this block are missing')
  return { status: 200, body: page }
}

function* respondWithContract(given: string, { history, names }: LookupDeps): WaitingWork<RouteResponse> {
  if (!/^0x[0-9a-fA-F]{40}$/.test(given)) return routeError(400, 'invalid address: give 0x and 40 hex characters')
  const address = given.toLowerCase() as Hex
  const figures = yield* contractFigures(history, address, names.get(address) ?? null)
  if (figures === undefined) return routeError(404, 'contract not found: the last blocks have no figures of it')
  return { status: 200, body: figures }
}

function countOf(text: string): number | undefined {
  return /^\d{1,9}$/.test(text) ? Number(text) : undefined
}

function heldText(ranges: RecentBlocks['held']): string {
  if (ranges.length === 0) return 'no block was seen yet'
  return `held are blocks ${ranges.map(({ from, to }) => `${from} to ${to}`).join(', ')}`
}
