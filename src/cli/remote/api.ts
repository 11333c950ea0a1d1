import { ADMIN_ROUTES, type AdminRoute, type AdminRouteId, IDEMPOTENCY_HEADER } from '../../contract/admin-routes.ts'
import { ADMIN_REPLIES } from '../../contract/schemas/admin-replies.ts'
import type { Clock } from '../../core/clock.ts'
import { isServiceError, ServiceError } from '../../core/error.ts'
import type { Random } from '../../core/random.ts'
import type { Secret } from '../../platform/config/secret-ref.ts'
import { createHttpClient, type HttpReply, readReplyText } from '../../platform/http/client/client.ts'
import { systemCertificates } from '../../platform/net/system-certificates.ts'
import { delay } from '../../platform/process/clock.ts'
import { errorOf, noResponse, notOurs, type RemoteFault } from './faults.ts'
import { fromWire } from './from-wire.ts'

export type RemoteInput = {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | undefined>>
  readonly body?: object | undefined
}

/** The admin API of another process, for one command. */
export type RemoteApi = Disposable & {
  /** The response, with the names and times of records. Throws the error of the API, or that there is none. */
  call<Value>(id: AdminRouteId, input?: RemoteInput): Promise<Value>
  /** The response as it was sent. */
  raw<Value>(id: AdminRouteId, input?: RemoteInput): Promise<Value>
  /** The items of all pages of a list. */
  list<Item>(id: AdminRouteId, input?: RemoteInput): Promise<Item[]>
  /** The text of a long response as it arrives. */
  text(id: AdminRouteId, contentType: string, input?: RemoteInput): AsyncIterable<string>
}

export type RemoteApiOptions = {
  readonly url: URL
  readonly token: Secret
  /** Changes are checked and not made. */
  readonly isDryRun: boolean
}

const CONNECT_MS_MAX = 10_000
/** The limit of one attempt, until the whole response is read; of a long text, between two pieces. */
const RESPONSE_MS_MAX = 30_000
const SILENT = `nothing within ${RESPONSE_MS_MAX / 1000} s`
const RESPONSE_BYTES_MAX = 32 * 1024 * 1024
const TEXT_BYTES_MAX = 8 * 1024 ** 3
const ATTEMPTS_MAX = 3
const RETRY_MS = 500
const RETRY_AFTER_MS_MAX = 5000
const PAGE_ITEMS = 1000
const PAGES_MAX = 1000

export function openRemoteApi(
  { url, token, isDryRun }: RemoteApiOptions,
  { clock, random }: { readonly clock: Clock; readonly random: Random },
): RemoteApi {
  const ca = url.protocol === 'https:' ? systemCertificates() : undefined
  const client = createHttpClient({ url: url.href, connectionsMax: 1, connectMs: CONNECT_MS_MAX, ca })
  const { origin } = url

  /** One request with its own deadline. */
  async function attempt<T>(request: Request, read: (reply: HttpReply) => Promise<T>): Promise<T> {
    const late = new AbortController()
    using _timer = clock.setTimer(RESPONSE_MS_MAX, () => late.abort())
    try {
      return await read(await client.send({ ...request, signal: late.signal }))
    } catch (error) {
      if (isServiceError(error)) throw error
      if (error instanceof RangeError) throw notOurs(origin, `it is larger than ${RESPONSE_BYTES_MAX} bytes`)
      const why = late.signal.aborted ? SILENT : lostText(error)
      throw noResponse(origin, why, request)
    }
  }

  /** A change has a key, with which the server performs it once: so it may be sent again when its response was lost. */
  async function send(id: AdminRouteId, input: RemoteInput): Promise<unknown> {
    const request = requestOf(id, input)
    for (let made = 1; ; made += 1) {
      try {
        return await attempt(request, async (reply) => readJson(id, reply))
      } catch (error) {
        const waitMs = retryMsOf(error)
        if (waitMs === undefined || made === ATTEMPTS_MAX) throw error
        await delay(clock, waitMs)
      }
    }
  }

  function requestOf(id: AdminRouteId, { params = {}, query = {}, body }: RemoteInput): Request {
    const { method, path }: AdminRoute = ADMIN_ROUTES[id]
    const isChange = method !== 'GET'
    const at = path.replaceAll(/\{(\w+)\}/g, (_all, name: string) => encodeURIComponent(params[name] ?? ''))
    const search = new URLSearchParams()
    for (const [name, value] of Object.entries(query)) if (value !== undefined) search.set(name, value)
    if (isChange && isDryRun) search.set('dry_run', 'true')
    return {
      method,
      target: search.size === 0 ? at : `${at}?${search.toString()}`,
      headers: {
        host: url.host,
        accept: 'application/json',
        authorization: `Bearer ${token.reveal()}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...(isChange && !isDryRun ? { [IDEMPOTENCY_HEADER]: Buffer.from(random.bytes(16)).toString('hex') } : {}),
      },
      body: isChange ? Buffer.from(body === undefined ? '' : JSON.stringify(body)) : undefined,
    }
  }

  async function readJson(id: AdminRouteId, reply: HttpReply): Promise<unknown> {
    const text = await readReplyText(reply, RESPONSE_BYTES_MAX)
    if (reply.status >= 400) throw errorOf(origin, reply, text)
    refuseOthers(reply, 'application/json')
    const value = parse(text)
    const schemas: { readonly [route: string]: { safeParse(value: unknown): { success: boolean } } } = ADMIN_REPLIES
    if (value === undefined || schemas[id]?.safeParse(value).success === false)
      throw notOurs(origin, `it is not what GET, POST … ${ADMIN_ROUTES[id].path} returns`)
    return value
  }

  /** A redirect is not followed: the token is for this server only. */
  function refuseOthers({ status, headers }: HttpReply, type: string): void {
    if (status >= 300)
      throw notOurs(origin, `status ${status}; redirects are not followed, since they would get the token`)
    if (status !== 200 && status !== 201) throw notOurs(origin, `status ${status}`)
    const given = String(headers['content-type'] ?? 'no content type')
    if (!given.startsWith(type)) throw notOurs(origin, `${given.slice(0, 60)} instead of ${type}`)
  }

  return {
    raw: async <Value>(id: AdminRouteId, input: RemoteInput = {}) => (await send(id, input)) as Value,
    call: async <Value>(id: AdminRouteId, input: RemoteInput = {}) => fromWire(await send(id, input)) as Value,

    async list<Item>(id: AdminRouteId, input: RemoteInput = {}): Promise<Item[]> {
      const items: Item[] = []
      let cursor: string | undefined
      for (let pages = 0; pages < PAGES_MAX; pages += 1) {
        const query = { ...input.query, ...(isPaged(id) ? { limit: String(PAGE_ITEMS), cursor } : {}) }
        const page = fromWire(await send(id, { ...input, query })) as { items: Item[]; nextCursor: string | null }
        if (isPaged(id) && page.items.length > PAGE_ITEMS)
          throw notOurs(origin, `a page has more than ${PAGE_ITEMS} items`)
        for (const item of page.items) items.push(item)
        if (page.nextCursor === null || page.nextCursor === undefined) return items
        cursor = page.nextCursor
      }
      throw notOurs(origin, `the list has more than ${PAGES_MAX} pages`)
    },

    async *text(id, contentType, input = {}) {
      const request = requestOf(id, input)
      const late = new AbortController()
      const again = () => clock.setTimer(RESPONSE_MS_MAX, () => late.abort())
      let timer = again()
      let bytes = 0
      try {
        const reply = await client.send({ ...request, signal: late.signal })
        if (reply.status >= 400) throw errorOf(origin, reply, await readReplyText(reply, RESPONSE_BYTES_MAX))
        refuseOthers(reply, contentType.split(';')[0] ?? '')
        reply.body.setEncoding('utf8')
        for await (const piece of reply.body as AsyncIterable<string>) {
          timer.cancel()
          bytes += piece.length
          if (bytes > TEXT_BYTES_MAX) throw notOurs(origin, `it is larger than ${TEXT_BYTES_MAX} bytes`)
          yield piece
          timer = again()
        }
      } catch (error) {
        if (isServiceError(error)) throw error
        const isLate = late.signal.aborted
        throw noResponse(origin, isLate ? SILENT : bytes === 0 ? lostText(error) : 'it ended in the middle', request)
      } finally {
        timer.cancel()
      }
    },

    [Symbol.dispose]: () => client[Symbol.dispose](),
  }
}

type Request = {
  readonly method: AdminRoute['method']
  readonly target: string
  readonly headers: Readonly<Record<string, string>>
  readonly body: Buffer | undefined
}

function isPaged(id: AdminRouteId): boolean {
  return (ADMIN_ROUTES[id] as AdminRoute).query?.includes('cursor') === true
}

/** How long to wait before the next attempt; undefined for what another attempt does not change. */
function retryMsOf(error: unknown): number | undefined {
  if (!(error instanceof ServiceError)) return undefined
  if (error.code === 'remote-unavailable') return RETRY_MS
  if (error.code !== 'too-many-requests' && error.code !== 'idempotency-running') return undefined
  return Math.min((error as RemoteFault).retryAfterMs ?? RETRY_MS, RETRY_AFTER_MS_MAX)
}

function lostText(error: unknown): string {
  const { cause, message } = error as Error
  return cause instanceof Error ? cause.message : message
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown
  } catch {
    return undefined
  }
}
