import type { Caller } from '../../access/authorize.ts'
import type { Access } from '../../access/service.ts'
import type { Clock } from '../../core/clock.ts'
import { CHECK_BYTES_MAX, checkGeyser } from '../geyser/check.ts'
import type { ListenerMeter } from '../metrics.ts'
import type { Connections } from './connections.ts'
import { createPageBudget, PAGES_PER_SECOND } from './request-budget.ts'
import { whoami } from './whoami.ts'

export type CustomerPagesDeps = {
  readonly access: Access
  readonly connections: Connections
  readonly meter: Pick<ListenerMeter, 'refused'>
  readonly clock: Clock
  /** Where a ticket is good; told with it. */
  readonly wsUrl?: string | undefined
}

/** One page: what it is asked with, and what it says. The door has checked token, method and size of the body before. */
export type CustomerPage = {
  readonly method: 'GET' | 'POST'
  /** Whether the page reads a body; that of the others is left unread. */
  readonly takesBody: boolean
  /** Bytes of the body, where they are fewer than the plan allows. */
  readonly bodyBytesMax?: number
  respond(caller: Caller, request: PageRequest): PageResponse | Promise<PageResponse>
}

export type PageRequest = { readonly body: Buffer; readonly requestId: string }

/** `body` leaves as JSON. */
export type PageResponse = {
  readonly status: number
  readonly body: object
  readonly headers?: Readonly<Record<string, string>> | undefined
}

export type CustomerPages = {
  /** The page at this path, without its query. */
  at(path: string): CustomerPage | undefined
}

/** What a customer may ask about itself on the RPC door, beside JSON-RPC. */
export function createCustomerPages(deps: CustomerPagesDeps): CustomerPages {
  const { access, connections, meter, clock, wsUrl } = deps
  const budget = createPageBudget(clock)
  const pages = new Map<string, CustomerPage>([
    [
      '/v1/whoami',
      {
        method: 'GET',
        takesBody: false,
        respond(caller) {
          const own = connections.of(caller.subscription.id)
          const shown = { connections: own.slice(0, CONNECTIONS_SHOWN_MAX) }
          return { status: 200, body: { ...whoami(access, caller, clock.nowMs()), ...shown } }
        },
      },
    ],
    [
      '/v1/connections',
      {
        method: 'GET',
        takesBody: false,
        respond(caller) {
          const own = connections.of(caller.subscription.id)
          return { status: 200, body: { total: own.length, connections: own.slice(0, CONNECTIONS_LISTED_MAX) } }
        },
      },
    ],
    [
      '/v1/ws-ticket',
      {
        method: 'POST',
        takesBody: false,
        respond(caller) {
          const { ticket, expiresAtMs } = access.issueTicket(caller, clock.nowMs())
          const url = wsUrl === undefined ? {} : { url: `${wsUrl}/?ticket=${ticket}` }
          return { status: 200, body: { ticket, expires_at: new Date(expiresAtMs).toISOString(), ...url } }
        },
      },
    ],
    [
      '/v1/geyser/check',
      {
        method: 'POST',
        takesBody: true,
        bodyBytesMax: CHECK_BYTES_MAX,
        respond: (caller, { body, requestId }) => checkGeyser(access, caller, body, requestId),
      },
    ],
  ])

  /** A connection of somebody else is as unknown as one that never was. */
  function closePage(id: string): CustomerPage {
    return {
      method: 'POST',
      takesBody: false,
      respond(caller, { requestId }) {
        if (connections.close(caller.subscription.id, id)) return { status: 200, body: { id, closed: true } }
        return { status: 404, body: { error: 'not-found', request_id: requestId } }
      },
    }
  }

  function limited(page: CustomerPage): CustomerPage {
    return {
      ...page,
      respond(caller, request) {
        const pages = 1 + request.body.length / PAGE_BODY_BYTES
        if (budget.take(caller.subscription.id, pages)) return page.respond(caller, request)
        meter.refused('pagesPerSecond', { subscription: caller.subscription.id, code: 'rate-limited' })
        return tooMany(request.requestId)
      },
    }
  }

  return {
    at(path) {
      const [, id] = CLOSE_PATH.exec(path) ?? []
      const page = id === undefined ? pages.get(path) : closePage(id)
      return page && limited(page)
    },
  }
}

function tooMany(requestId: string): PageResponse {
  const message = `limit reached: ${PAGES_PER_SECOND} pages per second`
  const data = { limit: 'pagesPerSecond', size: PAGES_PER_SECOND, request_id: requestId }
  return { status: 429, headers: { 'retry-after': '1' }, body: { error: 'rate-limited', message, ...data } }
}

/** A body counts as one page more for each of these bytes. */
const PAGE_BODY_BYTES = 16 * 1024
const CLOSE_PATH = /^\/v1\/connections\/(\w{1,64})\/close$/
/** With the whole of `whoami`, and on a page of their own. */
const CONNECTIONS_SHOWN_MAX = 100
const CONNECTIONS_LISTED_MAX = 1000
