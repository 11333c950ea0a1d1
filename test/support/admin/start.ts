import { addAdmin, type IssuedAdmin } from '../../../src/access/provisioning/admins.ts'
import type { AccessStore } from '../../../src/access/store/store.ts'
import type { AdminHandlers } from '../../../src/admin/api/handler.ts'
import { type OidcOptions, oidcOptions } from '../../../src/admin/oidc/options.ts'
import { createConfiguredSignIn } from '../../../src/admin/oidc/sign-in.ts'
import { startAdmin } from '../../../src/admin/service.ts'
import type { AdminRole } from '../../../src/contract/admin-routes.ts'
import type { Clock } from '../../../src/core/clock.ts'
import { Secret } from '../../../src/platform/config/secret-ref.ts'
import type { StaticFiles } from '../../../src/platform/http/server/static-file.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { createLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import { CONTEXT } from '../store/engines.ts'

/** What every reference to a secret is in these tests. */
export const CLIENT_SECRET = 'secret of the client: +/&='

/** The admin service on a real store, with its log. */
export async function startTestAdmin(
  store: AccessStore,
  {
    handlers = {},
    clock = systemClock,
    page,
    requestTimeoutMs,
    oidc: given,
    trustedProxies = [],
    publicUrl,
  }: {
    handlers?: Partial<AdminHandlers>
    clock?: Clock
    page?: StaticFiles
    requestTimeoutMs?: number
    oidc?: Partial<OidcOptions>
    trustedProxies?: readonly string[]
    publicUrl?: string
  } = {},
) {
  let text = ''
  const log = createLogger({ level: 'trace', destination: { write: (line: string) => (text += line) } })
  const registry = createMetricsRegistry()
  const oidc = createConfiguredSignIn(given === undefined ? undefined : oidcOptions.parse(given), {
    ...{ clock, random: secureRandom },
    readSecret: async () => new Secret(CLIENT_SECRET),
  })
  const server = await startAdmin(
    {
      listen: { host: '127.0.0.1', port: 0 },
      hosts: [],
      trustedProxies,
      publicUrl,
      ...(requestTimeoutMs === undefined ? {} : { requestTimeoutMs }),
    },
    { log, clock, random: secureRandom, store, registry, handlers, page, oidc, actor: CONTEXT.actor },
  )
  const url = `http://127.0.0.1:${server.address.port}`
  return {
    url,
    port: server.address.port,
    log: () => text,
    registry,
    oidc,
    add: (name: string, role: AdminRole, expiresMs: number | null = null): Promise<IssuedAdmin> =>
      addAdmin({ store, random: secureRandom, nowMs: clock.nowMs(), actor: CONTEXT.actor }, { name, role, expiresMs }),
    /** A request with a token. */
    call: (
      method: string,
      path: string,
      token: string,
      more: { body?: unknown; headers?: Record<string, string> } = {},
    ) =>
      fetch(`${url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', ...more.headers },
        ...(more.body === undefined ? {} : { body: JSON.stringify(more.body) }),
      }),
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]()
      registry[Symbol.dispose]()
    },
  }
}
