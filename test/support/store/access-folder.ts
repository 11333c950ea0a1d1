import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type AccessOptionsInput, parseAccessOptions } from '../../../src/access/options.ts'
import { addCustomer } from '../../../src/access/provisioning/customers.ts'
import { createSubscription } from '../../../src/access/provisioning/subscriptions.ts'
import { startAccess } from '../../../src/access/service.ts'
import { openStore } from '../../../src/access/store/open.ts'
import type { Limits } from '../../../src/contract/limits.ts'
import type { Clock } from '../../../src/core/clock.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'

/** A state folder with a real SQLite store in it, and processes started and ended on it. */
export async function openAccessFolder(clock: Clock = systemClock) {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-access-'))
  const audit = { file: join(folder, 'audit.log'), mirror: 'this machine', toolVersion: '1.2.3' }
  const location = { engine: 'sqlite', file: join(folder, 'access.db') } as const
  const openIt = () =>
    openStore({ location, audit, check: 'quick' }, { clock, random: secureRandom, log: silentLogger })
  const operator = await openIt()
  const on = () => ({
    store: operator,
    random: secureRandom,
    actor: { uid: 1, user: 'operator', sudoUser: null, tty: null },
    nowMs: clock.nowMs(),
  })
  await addCustomer(on(), { name: 'acme', contact: 'acme' })
  return {
    folder,
    on,
    async subscribe(name: string, plan = 'starter', overrides: Partial<Limits> = {}) {
      const created = await createSubscription(on(), {
        customer: 'acme',
        name,
        plan,
        products: ['bundle'],
        overrides,
        validUntil: null,
      })
      assert.ok(created.token !== undefined)
      return { id: created.subscription.id, tokenId: created.token.record.id, secret: created.token.secret }
    },
    async start(options: AccessOptionsInput = {}, threads = 1) {
      const store = await openIt()
      const registry = createMetricsRegistry()
      const health = new Map<string, string>()
      const lifecycle = {
        degraded: (part: string, reason: string) => void health.set(part, reason),
        recovered: (part: string) => void health.delete(part),
      }
      const access = await startAccess(
        { ...parseAccessOptions(options), threads },
        {
          store,
          log: silentLogger,
          clock,
          random: secureRandom,
          registry,
          lifecycle,
          env: {},
        },
      )
      const enter = (secret: string) => access.authenticate({ token: secret }, 'bundle', clock.nowMs())
      const close = async () => {
        await access[Symbol.asyncDispose]()
        await store[Symbol.asyncDispose]()
      }
      return { access, store, registry, health, enter, close, [Symbol.asyncDispose]: close }
    },
    async [Symbol.asyncDispose]() {
      await operator[Symbol.asyncDispose]()
      await rm(folder, { recursive: true, force: true })
    },
  }
}
