import type { Access } from '../../access/call-access.ts'
import type { Clock } from '../../core/clock.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import type { SharedTable } from '../../core/shared-table.ts'
import type { Paths } from '../../platform/http/server/path-rules.ts'
import { checkBytesMax, checkSubscribeRequest } from '../geyser/check-subscribe-request.ts'
import type { ListenerMeter } from '../metrics.ts'
import { accountOf } from './account.ts'
import type { AllConnections } from './all-connections.ts'
import type { AccountEndpoint, EndpointResponse } from './endpoint.ts'
import { type AccountReports, NO_REPORTS } from './reports.ts'
import { respondWithShreds } from './shreds.ts'
import { respondWithUsage } from './usage.ts'
import { whoami } from './whoami.ts'

export type AccountEndpointsDeps = {
  readonly access: Access
  readonly connections: AllConnections
  readonly meter: Pick<ListenerMeter, 'refused'>
  readonly clock: Clock
  /** The public address of the WebSocket server; sent with a ticket. */
  readonly wsUrl?: string | undefined
  /** The buckets of all threads; without it they are of this thread alone. */
  readonly table?: SharedTable | undefined
  /** What was decoded and lost; undefined where ShredStream Decoded is not offered. */
  readonly decodedReport?: (() => Promise<object | undefined>) | undefined
  /** What the store has about the customer; the endpoints that show it respond with 404 where it is missing. */
  readonly reports?: AccountReports | undefined
  /** The addresses of the services, by name. */
  readonly addresses?: Readonly<Record<string, string>> | undefined
}

export type AccountEndpoints = {
  /** The endpoint at this path, which has no query. */
  at(path: string): AccountEndpoint | undefined
}

/** The endpoints of the RPC server for the customer's own account. */
export function createAccountEndpoints(deps: AccountEndpointsDeps): AccountEndpoints {
  const { access, connections, meter, clock, wsUrl, reports = NO_REPORTS } = deps
  const rate = { perSecond: PAGES_PER_SECOND, burst: 10 * PAGES_PER_SECOND }
  const buckets = createKeyedBuckets(rate, () => clock.monotonicMs(), deps.table)
  const endpoints = new Map<string, AccountEndpoint>([
    [
      '/v1/whoami',
      {
        product: ANY_PRODUCT,
        takesBody: false,
        async respond(caller) {
          const own = await connections.of(caller.subscription.id)
          const shown = { connections: own.slice(0, CONNECTIONS_SHOWN_MAX) }
          return { status: 200, body: { ...whoami(access, caller, clock.nowMs()), ...shown } }
        },
      },
    ],
    [
      '/v1/connections',
      {
        takesBody: false,
        async respond(caller) {
          const own = await connections.of(caller.subscription.id)
          return { status: 200, body: { total: own.length, connections: own.slice(0, CONNECTIONS_LISTED_MAX) } }
        },
      },
    ],
    [
      '/v1/ws-ticket',
      {
        takesBody: false,
        respond(caller) {
          const { ticket, expiresAtMs } = access.issueTicket(caller, clock.nowMs())
          const url = wsUrl === undefined ? {} : { url: `${wsUrl}/?ticket=${ticket}` }
          return { status: 200, body: { ticket, expires_at: new Date(expiresAtMs).toISOString(), ...url } }
        },
      },
    ],
    [
      '/v1/decoded/report',
      {
        product: 'shreds-decoded',
        takesBody: false,
        async respond(_caller, { requestId }) {
          const report = await deps.decodedReport?.()
          if (report !== undefined) return { status: 200, body: report }
          const message = 'decoded shreds are not served by this process'
          return { status: 404, body: { error: 'not-found', message, request_id: requestId } }
        },
      },
    ],
    [
      '/v1/account',
      {
        product: ANY_PRODUCT,
        pages: ACCOUNT_PAGES,
        takesBody: false,
        respond: (caller) => accountOf({ ...deps, reports }, caller),
      },
    ],
    [
      '/v1/usage',
      {
        product: ANY_PRODUCT,
        pages: USAGE_PAGES,
        takesBody: false,
        respond: (caller, request) => respondWithUsage(reports, caller.subscription.id, request, clock.nowMs()),
      },
    ],
    [
      '/v1/shreds',
      {
        product: 'shreds-raw',
        pages: USAGE_PAGES,
        takesBody: false,
        respond: (caller, { requestId }) => respondWithShreds({ access, reports, clock }, caller, requestId),
      },
    ],
    [
      '/v1/geyser/check',
      {
        takesBody: true,
        bodyBytesMax: checkBytesMax,
        respond: (caller, { body, requestId }) => checkSubscribeRequest(access, caller, body, requestId),
      },
    ],
  ])

  /** A connection of another subscription gets the same response as an unknown one. */
  function closeEndpoint(id: string): AccountEndpoint {
    return {
      takesBody: false,
      async respond(caller, { requestId }) {
        if (await connections.close(caller.subscription.id, id)) return { status: 200, body: { id, closed: true } }
        const message = 'no open connection of this subscription has this id; GET /v1/connections lists them'
        return { status: 404, body: { error: 'not-found', message, request_id: requestId } }
      },
    }
  }

  function limited(endpoint: AccountEndpoint): AccountEndpoint {
    return {
      ...endpoint,
      respond(caller, request) {
        const cost = (endpoint.pages ?? 1) + request.body.length / BODY_BYTES_PER_PAGE
        if (buckets.take(caller.subscription.id, cost).ok) return endpoint.respond(caller, request)
        meter.refused('pagesPerSecond', { subscription: caller.subscription.id, code: 'rate-limited' })
        return tooMany(request.requestId)
      },
    }
  }

  return {
    at(path) {
      const [, id] = CLOSE_PATH.exec(path) ?? []
      const endpoint = id === undefined ? endpoints.get(path) : closeEndpoint(id)
      return endpoint && limited(endpoint)
    },
  }
}

function tooMany(requestId: string): EndpointResponse {
  const message = `limit reached: ${PAGES_PER_SECOND} pages per second`
  const data = { limit: 'pagesPerSecond', size: PAGES_PER_SECOND, request_id: requestId }
  return { status: 429, headers: { 'retry-after': '1' }, body: { error: 'rate-limited', message, ...data } }
}

/** Requests cost no units but have a rate for each subscription; the burst is ten seconds. */
export const PAGES_PER_SECOND = 20
/** Reports that are read from the store cost as much as this many requests; the account is mostly in memory. */
export const USAGE_PAGES = 5
const ACCOUNT_PAGES = 2
/** Open to every valid token: an account belongs to the customers of all products. */
const ANY_PRODUCT = 'sender'
/** Each such part of a body costs as much as one more request. */
const BODY_BYTES_PER_PAGE = 16 * 1024

/** The paths with their methods. */
export const ACCOUNT_PATHS = {
  '/v1/whoami': ['GET'],
  '/v1/connections': ['GET'],
  '/v1/connections/{id}/close': ['POST'],
  '/v1/ws-ticket': ['POST'],
  '/v1/decoded/report': ['GET'],
  '/v1/account': ['GET'],
  '/v1/usage': ['GET'],
  '/v1/shreds': ['GET'],
  '/v1/geyser/check': ['POST'],
} as const satisfies Paths

const CLOSE_PATH = /^\/v1\/connections\/([^/]+)\/close$/
/** In `/v1/whoami`, and in `/v1/connections`. */
const CONNECTIONS_SHOWN_MAX = 100
const CONNECTIONS_LISTED_MAX = 1000
