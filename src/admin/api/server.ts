import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Actor } from '../../access/store/model.ts'
import { type AdminRouteId, IDEMPOTENCY_HEADER, ROLE_PERMISSIONS, SIGN_IN_PATH } from '../../contract/admin-routes.ts'
import type { DocsUrl } from '../../contract/errors.ts'
import { createKeyedBuckets } from '../../core/keyed-buckets.ts'
import { splitTarget } from '../../platform/http/request-headers.ts'
import { sendText } from '../../platform/http/server/reply.ts'
import { requestIdOf } from '../../platform/http/server/request-id.ts'
import { type StaticFiles, sendStaticFile } from '../../platform/http/server/static-file.ts'
import { peerKey } from '../../platform/net/connection-caps.ts'
import type { BaseDeps } from '../../platform/process/base-deps.ts'
import { type Authenticator, type Identity, refuseForgery, tooMany } from '../auth/authenticate.ts'
import { respondToSession, SESSION_PATH } from '../auth/session-endpoint.ts'
import type { Sessions } from '../auth/sessions.ts'
import { respondToSignIn } from '../auth/sign-in-endpoint.ts'
import { type AdminMetrics, statusClass } from '../metrics.ts'
import { createOidcEndpoint } from '../oidc/endpoint.ts'
import type { ConfiguredSignIn } from '../oidc/sign-in.ts'
import { AdminError, type AdminRefusal, errorReply, errorText } from './errors.ts'
import { type FoundRoute, findRoute } from './find-route.ts'
import type { AdminHandlers, AdminReply } from './handler.ts'
import { checkIdempotencyKey, createIdempotency, type IdempotentRequest } from './idempotency.ts'
import { isChange, readIfMatch, readJson, readQuery, validateBody } from './read-request.ts'
import { sendLines } from './send-lines.ts'

export type AdminServerDeps = BaseDeps & {
  readonly handlers: Partial<AdminHandlers>
  readonly authenticator: Authenticator
  readonly sessions: Sessions
  readonly metrics: AdminMetrics
  /** The files of the console. */
  readonly page?: StaticFiles | undefined
  /** Pages of errors; errors have no `docs_url` where it is missing. */
  readonly docsUrl?: DocsUrl | undefined
  /** The user of the process; the actor of a change names the administrator besides. */
  readonly actor: Actor
  readonly isSecure: boolean
  /** Where browsers reach this listener, if it is configured. */
  readonly publicUrl?: string | undefined
  readonly oidc: ConfiguredSignIn
  isAllowedHost(host: string | undefined): boolean
  clientAddress(request: IncomingMessage): string
}

const PER_ADDRESS = { perSecond: 100, burst: 400 }
const PER_ADMIN = { perSecond: 50, burst: 200 }
/** Not part of a name such as `tesla_production`: a token is longer, and nothing of a word precedes it. */
const TOKEN = /(?:(?<![0-9a-z])|(?<=%[0-9a-f]{2}))sl[ac](?:_|%5f)[0-9a-z]{24,}/i

const SECURITY = {
  'content-security-policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'cache-control': 'no-store',
}

type Sent = {
  readonly status: number
  readonly text: string
  readonly headers: Record<string, string>
  readonly lines?: AsyncIterable<string>
}

/** Handles the requests of the listener: host, limits, authentication, role, then the handler of the route. */
export function createAdminRequests(deps: AdminServerDeps) {
  const { clock, metrics, log } = deps
  const perAddress = createKeyedBuckets(PER_ADDRESS, () => clock.monotonicMs())
  const perAdmin = createKeyedBuckets(PER_ADMIN, () => clock.monotonicMs())
  const idempotency = createIdempotency(clock)
  const oidc = createOidcEndpoint(deps)

  return async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const requestId = requestIdOf(request, deps)
    response.setHeader('x-request-id', requestId)
    for (const [name, value] of Object.entries(SECURITY)) response.setHeader(name, value)
    const facts: {
      route: AdminRouteId | 'session' | 'sign-in' | 'oidc' | 'page' | 'none'
      path?: string
      admin?: string
    } = {
      route: 'none',
    }
    let status = 200
    try {
      const sent = await respond(request, response, facts)
      if (sent !== undefined) {
        status = sent.status
        if (sent.lines === undefined) sendText(response, status, sent.text, sent.headers)
        else await sendLines(response, { ...sent, lines: sent.lines }, clock)
      }
    } catch (error) {
      const reply = errorReply(error, { requestId, docsUrl: deps.docsUrl })
      status = reply.status
      if (error instanceof AdminError) metrics.refused.inc({ reason: error.code as AdminRefusal })
      else if (status >= 500) log.error({ err: error, request_id: requestId }, 'admin request failed')
      // A response that has begun cannot become an error: its end is missing instead.
      if (response.headersSent) response.destroy()
      else if (facts.route === 'oidc') sendText(response, status, errorText(reply), reply.headers)
      else
        sendText(response, status, JSON.stringify(reply.body), { 'content-type': 'application/json', ...reply.headers })
    }
    metrics.requests.inc({ route: facts.route, status: statusClass(status) })
    const { path, admin } = facts
    // A stranger who reaches the port could fill the log otherwise. Refusals are counted in metrics.
    const isChange = request.method !== 'GET' && request.method !== 'HEAD' && admin !== undefined
    log[isChange ? 'info' : 'debug'](
      { method: request.method, path, status, admin, request_id: requestId },
      'admin request',
    )
  }

  async function respond(
    request: IncomingMessage,
    response: ServerResponse,
    facts: { route: string; path?: string; admin?: string },
  ): Promise<Sent | undefined> {
    if (!deps.isAllowedHost(request.headers.host))
      throw new AdminError(
        'host-not-allowed',
        'this listener does not serve the host name of the request',
        'Use an address, or add the host name to admin.hosts.',
      )
    const address = deps.clientAddress(request)
    const taken = perAddress.take(peerKey(address))
    if (!taken.ok) throw tooMany('requestsPerAddressPerSecond', `${PER_ADDRESS.perSecond}`, taken.retryAfterMs)
    const { path, query } = splitTarget(request.url)
    // Before the search for tokens: the code of an issuer is any text, and may look like one.
    if (oidc.has(path)) {
      Object.assign(facts, { route: 'oidc', path })
      const { location, cookies } = await oidc.respond(request, { path, query, address })
      response.setHeader('set-cookie', cookies)
      return { status: 303, text: '', headers: { location } }
    }
    if (TOKEN.test(request.url ?? ''))
      throw new AdminError(
        'token-in-url',
        'the URL contains a token, and URLs are logged by proxies and browsers',
        'Send it as Authorization: Bearer, and rotate this one.',
      )
    if (path === SIGN_IN_PATH) {
      Object.assign(facts, { route: 'sign-in', path })
      return jsonOf({ ...respondToSignIn(request, deps.oidc), headers: {} })
    }
    if (path === SESSION_PATH) {
      Object.assign(facts, { route: 'session', path })
      return jsonOf(await respondToSession(request, address, deps))
    }
    const file = request.method === 'GET' || request.method === 'HEAD' ? deps.page?.(path) : undefined
    if (file !== undefined) {
      facts.route = 'page'
      sendStaticFile(request, response, file)
      return undefined
    }
    const found = findRoute(request.method ?? 'GET', path)
    Object.assign(facts, { route: found.id, path: found.route.path })
    const identity = await deps.authenticator.authenticate(request, address)
    facts.admin = identity.admin.name
    authorize(request, found, identity)
    return perform(request, response, { found, query, identity, address })
  }

  function authorize(request: IncomingMessage, found: FoundRoute, { admin, session }: Identity): void {
    const taken = perAdmin.take(admin.id)
    if (!taken.ok) throw tooMany('requestsPerAdminPerSecond', `${PER_ADMIN.perSecond}`, taken.retryAfterMs)
    if (session !== undefined && isChange(found)) refuseForgery(request, session.session)
    const { permission } = found.route
    if (ROLE_PERMISSIONS[admin.role].includes(permission)) return
    throw new AdminError(
      'forbidden',
      `the role ${admin.role} has no permission "${permission}", which this route needs`,
      'Ask an owner.',
    )
  }

  async function perform(
    request: IncomingMessage,
    response: ServerResponse,
    { found, query: search, identity: { admin }, address }: Performed,
  ): Promise<Sent> {
    const { query, isDryRun } = readQuery(found, search)
    const ifRevision = readIfMatch(request, found)
    const { bytes, value } = await readJson(request)
    const body = validateBody(found, value)
    const handler = deps.handlers[found.id]
    if (handler === undefined)
      throw new AdminError('not-available', 'this route is not available in this process', 'Use the command line.')
    const { id, name, role } = admin
    const gone = new AbortController()
    response.once('close', () => gone.abort())
    const run = (): Promise<AdminReply> =>
      handler({
        params: found.params,
        query,
        body,
        actor: { ...deps.actor, admin: { id, name, role, address } },
        nowMs: clock.nowMs(),
        isDryRun,
        ifRevision,
        signal: gone.signal,
      })
    const given = isChange(found) && !isDryRun ? request.headers[IDEMPOTENCY_HEADER] : undefined
    if (given === undefined) return sentOf(isDryRun ? asDryRun(await run()) : await run())
    const once: IdempotentRequest = {
      adminId: id,
      key: checkIdempotencyKey(String(given)),
      content: [request.method ?? '', request.url ?? '', String(ifRevision), bytes],
    }
    const kept = idempotency.begin(once)
    if (kept !== undefined) return { ...kept, headers: { ...kept.headers, 'idempotency-replayed': 'true' } }
    try {
      const reply = await run()
      const sent = sentOf(reply)
      idempotency.finish(once, found.route.isSecret === true ? { created: createdBy(reply.body) } : sent)
      return sent
    } catch (error) {
      // After an error of ours it is not known whether the change was made: it is not performed again.
      const requestId = String(response.getHeader('x-request-id'))
      const { status, body: text } = errorReply(error, { requestId, docsUrl: deps.docsUrl })
      if (status === 500)
        idempotency.finish(once, {
          status,
          text: JSON.stringify(text),
          headers: { 'content-type': 'application/json' },
        })
      else idempotency.drop(once)
      throw error
    }
  }
}

type Performed = {
  readonly found: FoundRoute
  readonly query: string
  readonly identity: Identity
  readonly address: string
}

/** A dry run has created nothing. */
function asDryRun(reply: AdminReply): AdminReply {
  return reply.status === 201 ? { ...reply, status: 200 } : reply
}

function sentOf({ status = 200, body, contentType, revision, lines }: AdminReply): Sent {
  const etag: Record<string, string> = revision === undefined ? {} : { etag: `"${revision}"` }
  if (contentType !== undefined) {
    const headers = { 'content-type': contentType, ...etag }
    return lines === undefined ? { status, text: String(body), headers } : { status, text: '', headers, lines }
  }
  return jsonOf({ status, body, headers: etag })
}

function jsonOf(reply: { status: number; body: unknown; headers: Record<string, string> }): Sent {
  const { status, body, headers } = reply
  return { status, text: JSON.stringify(body), headers: { 'content-type': 'application/json', ...headers } }
}

const NAMING = ['id', 'name', 'subscription', 'token_id', 'username']

/** Names what a response with a secret is about, without the secret. */
function createdBy(body: unknown): string {
  const fields = (body ?? {}) as Record<string, unknown>
  const named = NAMING.filter((name) => typeof fields[name] === 'string')
  return named.map((name) => `${name} ${String(fields[name])}`).join(', ') || 'done'
}
