import type { OidcOptions } from '../../../src/admin/oidc/options.ts'
import { startEngines } from '../store/engines.ts'
import { startHostileIssuer } from './hostile-issuer.ts'
import { startTestAdmin } from './start.ts'

export const ROLES = { ops: 'support', bosses: 'owner', readers: 'read-only' } as const

export type OidcRig = Awaited<ReturnType<typeof startOidcRig>>

/** A store, on which each test opens an admin API of its own with an issuer of its own. */
export async function startOidcRig() {
  const engines = await startEngines()
  const store = await (await engines.bench('sqlite')).open()
  return {
    store,
    async open(options: Partial<OidcOptions> = {}, more: Parameters<typeof startTestAdmin>[1] = {}) {
      const opened = new AsyncDisposableStack()
      const issuer = opened.use(await startHostileIssuer())
      const oidc = { issuer: issuer.url, clientId: 'sluice', roles: ROLES, ...options }
      const admin = opened.use(await startTestAdmin(store, { oidc, ...more }))
      return { issuer, admin, oidc, [Symbol.asyncDispose]: () => opened.disposeAsync() }
    },
    async [Symbol.asyncDispose]() {
      await store[Symbol.asyncDispose]()
      await engines[Symbol.asyncDispose]()
    },
  }
}
