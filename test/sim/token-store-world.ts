import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { BUILT_IN_PLANS } from '../../src/access/plan.ts'
import type { Provisioning } from '../../src/access/provisioning/context.ts'
import { addCustomer, setCustomerState } from '../../src/access/provisioning/customers.ts'
import {
  cancelSubscription,
  createSubscription,
  resumeSubscription,
  suspendSubscription,
} from '../../src/access/provisioning/subscriptions.ts'
import { revokeTokens, rotateToken } from '../../src/access/provisioning/tokens.ts'
import { type AccessService, startAccess } from '../../src/access/service.ts'
import { openStore } from '../../src/access/store/open.ts'
import type { AccessStore } from '../../src/access/store/store.ts'
import { createManualClock, type ManualClock } from '../../src/core/clock.ts'
import { ServiceError } from '../../src/core/error.ts'
import { createSeededRandom } from '../../src/core/random.ts'
import { silentLogger } from '../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry } from '../../src/platform/telemetry/metrics-registry.ts'
import { createRandom } from '../support/process/property.ts'
import { CONTEXT } from '../support/store/engines.ts'
import type { SimWorld } from './run-seeds.ts'

/**
 * An operator changes customers, subscriptions and tokens in one process; two gateways follow the same store in theirs. Gateways are
 * restarted, hours pass, the wall clock is set back. After each second both must accept exactly the tokens that a list of the operator's
 * changes makes valid, and the store must be intact.
 */

const EVENTS = ['changes', 'refusedChanges', 'rotations', 'graces', 'restarts', 'admitted', 'refused'] as const
type Seen = Record<(typeof EVENTS)[number], number>

const STEPS = 24
/** A changed store is noticed within this time. */
const NOTICED_MS = 1000
/** Expiry is delayed by the clock skew that machines may have. */
const SKEW_MS = 60_000
const HOUR_MS = 3_600_000
/** A power loss is not simulated, so the files can be in memory. */
const FOLDERS = existsSync('/dev/shm') ? '/dev/shm' : tmpdir()

/** A subscription in the model of what the operator did. */
type ModelSubscription = {
  readonly subscription: string
  readonly customer: string
  readonly validUntil: number | null
  state: 'active' | 'suspended' | 'cancelled'
  readonly tokens: { readonly secret: string; endsAtMs: number }[]
}

class World {
  readonly random: (below: number) => number
  readonly clock: ManualClock
  readonly model: ModelSubscription[] = []
  readonly customers = new Map<string, 'active' | 'suspended'>()
  readonly seen: Seen = { changes: 0, refusedChanges: 0, rotations: 0, graces: 0, restarts: 0, admitted: 0, refused: 0 }
  readonly #chance: ReturnType<typeof createSeededRandom>
  readonly #folder: string
  readonly gateways: { store: AccessStore; access: AccessService }[] = []
  #operator: AccessStore | undefined

  constructor(seed: number, folder: string) {
    this.random = createRandom(seed)
    this.#chance = createSeededRandom(seed)
    this.clock = createManualClock()
    this.#folder = folder
  }

  async start(): Promise<void> {
    this.#operator = await this.#open()
    for (let at = 0; at < 2; at++) this.gateways.push(await this.#startGateway())
  }

  async end(): Promise<void> {
    assert.deepEqual(await this.#operator?.integrity(), [])
    for (const gateway of this.gateways) await this.#stopGateway(gateway)
    await this.#operator?.[Symbol.asyncDispose]()
  }

  #open(): Promise<AccessStore> {
    const { clock } = this
    const audit = { file: join(this.#folder, 'audit.log'), mirror: 'one machine', toolVersion: '0.0.0' }
    const location = { engine: 'sqlite' as const, file: join(this.#folder, 'access.db') }
    return openStore({ location, audit, check: 'quick' }, { clock, random: this.#chance, log: silentLogger })
  }

  async #startGateway(): Promise<{ store: AccessStore; access: AccessService }> {
    const store = await this.#open()
    const access = await startAccess(
      { quota: { shared: undefined }, plans: BUILT_IN_PLANS },
      {
        store,
        clock: this.clock,
        random: this.#chance,
        log: silentLogger,
        env: {},
        registry: createMetricsRegistry(),
        lifecycle: { degraded() {}, recovered() {} },
      },
    )
    return { store, access }
  }

  async #stopGateway({ store, access }: { store: AccessStore; access: AccessService }): Promise<void> {
    await access[Symbol.asyncDispose]()
    await store[Symbol.asyncDispose]()
  }

  async restartGateway(): Promise<void> {
    this.seen.restarts += 1
    const at = this.random(this.gateways.length)
    await this.#stopGateway(this.gateways[at] as { store: AccessStore; access: AccessService })
    this.gateways[at] = await this.#startGateway()
  }

  /** A change that the current state forbids must be refused with a reason and change nothing. */
  async change(work: (on: Provisioning) => Promise<void>): Promise<void> {
    const store = this.#operator as AccessStore
    const before = await store.revision()
    try {
      await work({ ...CONTEXT, nowMs: this.clock.nowMs(), store, random: this.#chance })
      this.seen.changes += 1
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error
      this.seen.refusedChanges += 1
      assert.equal(await store.revision(), before, 'a refused change modified the store')
    }
  }

  async operate(): Promise<void> {
    const { random, model } = this
    const known = model[random(Math.max(1, model.length))]
    if (known === undefined || random(5) === 0) return this.#subscribe()
    const { subscription, customer } = known
    const nowMs = this.clock.nowMs()
    switch (random(6)) {
      case 0:
        return this.change(async (on) => {
          await suspendSubscription(on, { subscription })
          known.state = 'suspended'
        })
      case 1:
        return this.change(async (on) => {
          await resumeSubscription(on, { subscription })
          known.state = 'active'
        })
      case 2:
        return this.change(async (on) => {
          if (random(4) > 0) {
            await revokeTokens(on, { subscription })
            end(known)
          } else {
            await cancelSubscription(on, { subscription })
            known.state = 'cancelled'
          }
        })
      case 3:
        return this.change(async (on) => {
          const state = this.customers.get(customer) === 'active' ? 'suspended' : 'active'
          await setCustomerState(on, { customer, state })
          this.customers.set(customer, state)
        })
      default:
        return this.change(async (on) => {
          const graceMs = random(2) * (1 + random(24)) * HOUR_MS
          const { secret } = await rotateToken(on, { subscription, graceMs })
          this.seen[graceMs > 0 ? 'graces' : 'rotations'] += 1
          end(known, graceMs > 0 ? nowMs + graceMs + SKEW_MS : undefined)
          known.tokens.push({ secret, endsAtMs: Number.POSITIVE_INFINITY })
        })
    }
  }

  async #subscribe(): Promise<void> {
    const { random, model, clock } = this
    const customer = `customer-${random(3)}`
    if (!this.customers.has(customer)) {
      await this.change(async (on) => void (await addCustomer(on, { name: customer, contact: '' })))
      this.customers.set(customer, 'active')
    }
    const subscription = `sub-${model.length}`
    const validUntil = random(3) === 0 ? clock.nowMs() + (1 + random(48)) * HOUR_MS : null
    await this.change(async (on) => {
      const made = await createSubscription(on, {
        customer,
        name: subscription,
        plan: 'starter',
        products: ['bundle'],
        overrides: {},
        validUntil,
      })
      const secret = made.token?.secret
      assert.ok(secret !== undefined)
      const token = { secret, endsAtMs: Number.POSITIVE_INFINITY }
      model.push({ subscription, customer, validUntil, state: 'active', tokens: [token] })
    })
  }

  /** Compares every issued token at every gateway with the model. */
  check(): void {
    const nowMs = this.clock.nowMs()
    for (const { customer, state, validUntil, tokens } of this.model) {
      const isOpen =
        state === 'active' &&
        this.customers.get(customer) === 'active' &&
        (validUntil === null || nowMs <= validUntil + SKEW_MS)
      for (const { secret, endsAtMs } of tokens) {
        const isGood = isOpen && nowMs <= endsAtMs
        for (const { access } of this.gateways) {
          const outcome = access.authenticate({ token: secret }, 'bundle', nowMs)
          assert.equal(outcome.ok, isGood, `${state}, ends ${endsAtMs}: ${outcome.ok ? 'opened' : outcome.reason}`)
          this.seen[outcome.ok ? 'admitted' : 'refused'] += 1
        }
      }
    }
  }
}

/** The active token ends, immediately or at a time; one that was already ending ends immediately. A token that has ended stays ended when the clock is set back. */
function end(known: ModelSubscription, endsAtMs?: number): void {
  for (const token of known.tokens) {
    const isInUse = token.endsAtMs === Number.POSITIVE_INFINITY
    token.endsAtMs = isInUse && endsAtMs !== undefined ? endsAtMs : Number.NEGATIVE_INFINITY
  }
}

async function run(seed: number): Promise<Seen> {
  const folder = await mkdtemp(join(FOLDERS, 'sluice-sim-'))
  try {
    const world = new World(seed, folder)
    const { random, clock } = world
    await world.start()
    for (let step = 0; step < STEPS; step++) {
      const choice = random(20)
      if (choice < 13) await world.operate()
      else if (choice < 18) clock.setWallMs(clock.nowMs() + (random(4) === 0 ? -1 : random(12)) * HOUR_MS)
      else if (choice < 19) await world.restartGateway()
      if (random(2) === 0) continue
      await clock.advanceAsync(NOTICED_MS)
      world.check()
    }
    await world.end()
    return world.seen
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

export const tokenStoreWorld: SimWorld<(typeof EVENTS)[number]> = { name: 'token-store', events: EVENTS, run }
