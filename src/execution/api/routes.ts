import type {
  HealthRecord,
  LifecycleRecord,
  RecentBlocks,
  RouteError,
  StatusRecord,
  TpsRecord,
} from '../../contract/execution-routes.ts'
import type { History } from '../history/history.ts'
import type { Proposal } from '../history/proposals.ts'
import type { Liveness } from '../source/liveness.ts'
import type { Views } from './views.ts'

/** A response before it is encoded. */
export type RouteResponse = { readonly status: number; readonly body: unknown }

export type RouteDeps = {
  readonly views: Views
  readonly history: Pick<History, 'proposals'>
  readonly liveness: Pick<Liveness, 'ageMs' | 'uptimeMs' | 'status' | 'isHealthy'>
  readonly window: () => { oldestSeq: number; newestSeq: number }
  readonly connections: () => number
  readonly ringSeqno: () => number
  /** The block numbers that JSON-RPC can read. */
  readonly held: () => RecentBlocks['held']
}

export type Route = (query: URLSearchParams, deps: RouteDeps) => RouteResponse

const RECENT_DEFAULT = 120
const RECENT_MAX = 512

/** Paths without a block number. */
const ROUTES: Readonly<Record<string, Route>> = {
  '/v1/tps': (_, { views }) => ok({ tps: views.tps } satisfies TpsRecord),
  '/v1/contention': (_, { views }) => okOr(views.contention, 'no contention data yet'),
  '/v1/conflicts': (_, { views }) => okOr(views.conflicts, 'no conflict data yet'),
  '/v1/top-accesses': (_, { views }) => okOr(views.topAccesses, 'no access data yet'),
  '/v1/status': (_, deps) => ok(statusOf(deps)),
  '/v1/blocks': recentBlocks,
  '/v1/blocks/lifecycle': (_, { views }) => ok(views.lifecycle.records()),
  '/health': (_, deps) => {
    const health = healthOf(deps)
    return { status: health.result.healthy ? 200 : 503, body: health }
  },
}

const OF_BLOCK = /^\/v1\/blocks\/([^/]+)\/(lifecycle|contention)$/

/** The route of a path; undefined where there is none. */
export function findRoute(path: string): Route | undefined {
  if (Object.hasOwn(ROUTES, path)) return ROUTES[path]
  const match = OF_BLOCK.exec(path)
  if (match === null) return undefined
  const [, number = '', what] = match
  return (_, { views, history }) => {
    const wanted = parseBlockNumber(number)
    if (wanted === undefined) return routeError(400, 'invalid block number')
    const record = views.lifecycle.record(wanted)
    // Blocks from before a restart are in the history only. Of a block that is known here, it may have figures of an abandoned proposal.
    const earlier = record === undefined ? history.proposals.byNumber(wanted) : undefined
    const found =
      what === 'lifecycle'
        ? (record ?? completedRecord(earlier))
        : (views.contentionOf(wanted) ?? earlier?.figures?.contention)
    return found === undefined ? routeError(404, 'block not found') : ok(found)
  }
}

/** A block that was forgotten before it was completed has the stage of that time, which may be out of date. */
function completedRecord(proposal: Proposal | undefined): LifecycleRecord | undefined {
  const stage = proposal?.record?.current_stage
  return stage === 'Verified' || stage === 'Rejected' ? proposal?.record : undefined
}

const U64_MAX = 2n ** 64n - 1n

/** A block number of a path; undefined where it is none. No block has one that a double does not hold, so nothing is found for it. */
export function parseBlockNumber(text: string): number | undefined {
  if (!/^\d{1,20}$/.test(text) || BigInt(text) > U64_MAX) return undefined
  return Math.min(Number(text), Number.MAX_SAFE_INTEGER)
}

export function routeError(status: 400 | 404 | 503, error: string): RouteResponse {
  return { status, body: { error } satisfies RouteError }
}

export function isOpenRoute(path: string): boolean {
  return path === '/health'
}

/** Exactly the fields of the specification. */
function statusOf({ views, liveness, window, connections, ringSeqno }: RouteDeps): StatusRecord {
  const { oldestSeq, newestSeq } = window()
  return {
    status: liveness.status,
    block_number: views.blockNumber,
    connected_clients: connections(),
    uptime_secs: Math.floor(liveness.uptimeMs / 1000),
    last_event_age_secs: Math.floor(liveness.ageMs / 1000),
    ring_seqno: ringSeqno(),
    oldest_seqno: oldestSeq,
    newest_seqno: newestSeq,
  }
}

function healthOf({ views, liveness }: RouteDeps): HealthRecord {
  return {
    jsonrpc: '2.0',
    result: {
      healthy: liveness.isHealthy,
      number: views.blockNumber,
      last_event_age_secs: Math.floor(liveness.ageMs / 1000),
    },
  }
}

function recentBlocks(query: URLSearchParams, { views, held }: RouteDeps): RouteResponse {
  const given = query.get('count') ?? String(RECENT_DEFAULT)
  if (!/^\d{1,6}$/.test(given) || Number(given) < 1 || Number(given) > RECENT_MAX)
    return routeError(400, `count is a number from 1 to ${RECENT_MAX}`)
  return ok({ blocks: views.recentBlocks(Number(given)), held: held() } satisfies RecentBlocks)
}

function ok(body: unknown): RouteResponse {
  return { status: 200, body }
}

function okOr(body: unknown, error: string): RouteResponse {
  return body === undefined ? routeError(503, error) : ok(body)
}
