import type { Actor } from '../access/store/model.ts'
import type { AccessStore } from '../access/store/store.ts'
import type { DocsUrl } from '../contract/errors.ts'
import { createHostAllowList } from '../platform/http/server/host-allow-list.ts'
import { type HttpServer, startHttpServer } from '../platform/http/server/server.ts'
import type { StaticFiles } from '../platform/http/server/static-file.ts'
import { createClientAddress } from '../platform/net/client-address.ts'
import type { ListenerOptions } from '../platform/net/listener.ts'
import type { ListenerMetrics } from '../platform/net/listener-metrics.ts'
import type { BaseDeps } from '../platform/process/base-deps.ts'
import type { MetricsRegistry } from '../platform/telemetry/metrics-registry.ts'
import { adminsHandlers } from './api/admins.ts'
import type { AdminHandlers } from './api/handler.ts'
import { createAdminRequests } from './api/server.ts'
import { createAuthenticator } from './auth/authenticate.ts'
import { createSessions } from './auth/sessions.ts'
import { adminMetrics } from './metrics.ts'
import type { ConfiguredSignIn } from './oidc/sign-in.ts'

export type AdminServiceOptions = {
  readonly listen: ListenerOptions
  readonly publicUrl?: string | undefined
  readonly hosts: readonly string[]
  readonly trustedProxies: readonly string[]
  /** Time for a whole request, its body included. */
  readonly requestTimeoutMs?: number
}

export type AdminServiceDeps = BaseDeps &
  Partial<ListenerMetrics> & {
    readonly store: AccessStore
    readonly registry: MetricsRegistry
    /** What a process does not have responds with 501. */
    readonly handlers: Partial<AdminHandlers>
    readonly page?: StaticFiles | undefined
    /** Sign-in of people by an OpenID Connect issuer. */
    readonly oidc: ConfiguredSignIn
    readonly docsUrl?: DocsUrl | undefined
    /** The author of changes as the process has it; a change has the administrator besides. */
    readonly actor: Actor
  }

/** The admin API and the console. */
export function startAdmin(options: AdminServiceOptions, deps: AdminServiceDeps): Promise<HttpServer> {
  const { store, clock, log, oidc } = deps
  const { requestTimeoutMs } = options
  const sessions = createSessions(deps)
  const publicHost = options.publicUrl === undefined ? [] : [new URL(options.publicUrl).hostname]
  const isBehindTls = options.listen.plaintext === 'behind-proxy' || options.publicUrl?.startsWith('https:') === true
  return startHttpServer(
    {
      listen: options.listen,
      // The head is a part of the request.
      ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs, headersTimeoutMs: requestTimeoutMs }),
    },
    {
      log,
      clock,
      isForOperator: true,
      onRefused: deps.onRefused,
      onNotAfter: deps.onNotAfter,
      onRequest: createAdminRequests({
        ...deps,
        handlers: { ...adminsHandlers(deps), ...deps.handlers },
        sessions,
        authenticator: createAuthenticator({ store, sessions, clock, oidc }),
        metrics: adminMetrics(deps.registry, { sessions: () => sessions.size }),
        publicUrl: options.publicUrl,
        isSecure: options.listen.tls !== undefined || isBehindTls,
        isAllowedHost: createHostAllowList({
          listenHost: options.listen.host,
          hosts: [...options.hosts, ...publicHost],
        }),
        clientAddress: createClientAddress(options.trustedProxies),
      }),
    },
  )
}
