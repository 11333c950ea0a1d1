import type { AccessStore } from '../../../access/store/store.ts'
import type { AdminHandlers } from '../../../admin/api/handler.ts'
import { type ConfiguredSignIn, createConfiguredSignIn } from '../../../admin/oidc/sign-in.ts'
import { startAdmin } from '../../../admin/service.ts'
import { isLoopbackName } from '../../../contract/public-url.ts'
import { resolveSecret } from '../../../platform/config/secret-ref.ts'
import type { HttpServer } from '../../../platform/http/server/server.ts'
import type { StaticFiles } from '../../../platform/http/server/static-file.ts'
import { isLoopbackHost } from '../../../platform/net/listener.ts'
import { listenerOf } from '../config/listener.ts'
import type { Settings } from '../config/settings.ts'
import { openConsole } from '../pages/console.ts'
import { currentActor } from '../process/deps.ts'
import type { Operator } from '../process/operator.ts'
import type { ServiceContext } from '../process/service-context.ts'
import { type AdminHandlerDeps, openAdminHandlers } from './admin-handlers.ts'

/** The admin API in the control plane, which is opened after all services. */
export type AdminPart = {
  /** Applies `admin.oidc` of a reload. */
  readonly setSignIn: ConfiguredSignIn['apply']
  /** The operator's side reports the address of the API, so it is undefined until that listens. */
  open(operator: () => Operator | undefined): Promise<HttpServer>
}

export function createAdminPart(
  settings: Settings,
  context: ServiceContext<'admin'>,
  deps: Omit<AdminHandlerDeps, 'operator' | 'random'>,
): AdminPart {
  const oidc = openSignIn(settings, context)
  return {
    setSignIn: oidc.apply,
    async open(operator) {
      const handlers = openAdminHandlers(settings, { ...deps, random: context.random, operator })
      const { page } = await openConsole({ log: context.log })
      return openAdmin(settings, context, { store: deps.store, handlers, oidc, page })
    },
  }
}

type AdminParts = {
  readonly store: AccessStore
  /** What the process can do; other routes respond with 501. */
  readonly handlers: Partial<AdminHandlers>
  /** The files of the console. */
  readonly page?: StaticFiles
  readonly oidc: ConfiguredSignIn
}

/** Sign-in with OpenID Connect, as `admin.oidc` has it; a reload applies the section again. */
function openSignIn(
  { config: { admin }, loaded: { folder } }: Settings,
  { clock, random, env }: Pick<ServiceContext<'admin'>, 'clock' | 'random' | 'env'>,
): ConfiguredSignIn {
  return createConfiguredSignIn(admin.oidc, {
    clock,
    random,
    readSecret: (reference) => resolveSecret(reference, { env, folder }),
  })
}

function openAdmin(
  { config: { admin }, loaded: { folder } }: Settings,
  { log, clock, random, env, registry, listenerMetrics, documents }: ServiceContext<'admin'>,
  { store, handlers, page, oidc }: AdminParts,
): Promise<HttpServer> {
  const listen = listenerOf(admin, folder)
  const docsUrl = documents.docsUrlOf('rpc')
  return startAdmin(
    { ...admin, listen },
    {
      log: log.child({ part: 'admin' }),
      clock,
      random,
      registry,
      store,
      handlers,
      page,
      oidc,
      // The terminal and sudo user of the start are not the author of a later request.
      actor: { ...currentActor(env), sudoUser: null, tty: null },
      // As for customers: a loopback address is named by a loopback listener only.
      docsUrl: (code) => {
        const url = docsUrl(code)
        const isShown = url !== undefined && (isLoopbackHost(listen.host) || !isLoopbackName(new URL(url).hostname))
        return isShown ? url : undefined
      },
      ...listenerMetrics('admin'),
    },
  )
}
