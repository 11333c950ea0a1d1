import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { AccessOptions } from '../../../src/access/options.ts'
import { BUILT_IN_PLANS, type Plans } from '../../../src/access/plan.ts'
import type { Provisioning } from '../../../src/access/provisioning/context.ts'
import { addCustomer } from '../../../src/access/provisioning/customers.ts'
import { createSubscription, type SubscriptionInput } from '../../../src/access/provisioning/subscriptions.ts'
import { type AccessService, startAccess } from '../../../src/access/service.ts'
import { openStore } from '../../../src/access/store/open.ts'
import type { DocsUrl } from '../../../src/contract/errors.ts'
import type { SharedLimits } from '../../../src/gateway/limits.ts'
import {
  type GatewayListeners,
  type Gateway as GatewayService,
  startGateway as startGatewayService,
} from '../../../src/gateway/service.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { createLogger } from '../../../src/platform/telemetry/logger.ts'
import { createMetricsRegistry, type MetricsRegistry } from '../../../src/platform/telemetry/metrics-registry.ts'
import {
  type NodeOptionsInput,
  parseUpstreamsOptions,
  type UpstreamsOptionsInput,
} from '../../../src/upstreams/options.ts'
import { startUpstreams, type Upstreams } from '../../../src/upstreams/service.ts'

export type GatewayOptions = {
  /** Beside the nodes. */
  readonly upstreams?: UpstreamsOptionsInput
  /** The WebSocket address in tickets, from the port. */
  readonly wsUrl?: (port: number) => string
  readonly docsUrl?: DocsUrl
  /** Overrides. The auth tarpit is off unless a test sets failuresMax. */
  readonly bundle?: Partial<GatewayListeners>
  /** The folder of an existing store, shared with other processes and not removed. */
  readonly folder?: string
  readonly quota?: AccessOptions['quota']
  readonly limits?: SharedLimits
}

export type Gateway = AsyncDisposable & {
  readonly folder: string
  readonly url: string
  readonly ws: string
  readonly grpc: string
  readonly access: AccessService
  readonly upstreams: Upstreams
  readonly bundle: GatewayService
  readonly on: Provisioning
  readonly registry: MetricsRegistry
  /** Everything logged so far. */
  log(): string
  /** A new subscription's token. */
  subscribe(input: Partial<SubscriptionInput>): Promise<{ token: string; id: string }>
}

const ANY_PORT = { host: '127.0.0.1', port: 0 }

/** A real gateway in this process: access on SQLite, upstreams, and the three servers on free ports. */
export async function startGateway(
  nodes: NodeOptionsInput[],
  plans: Plans = BUILT_IN_PLANS,
  given: GatewayOptions = {},
): Promise<Gateway> {
  await using opening = new AsyncDisposableStack()
  const folder = given.folder ?? (await mkdtemp(join(tmpdir(), 'sluice-gateway-')))
  if (given.folder === undefined) opening.defer(() => rm(folder, { recursive: true, force: true }))
  let lines = ''
  const log = createLogger({ level: 'trace', destination: { write: (line: string) => (lines += line) } })
  const deps = { log, clock: systemClock, random: secureRandom }
  const registry = opening.use(createMetricsRegistry())
  const lifecycle = { degraded() {}, recovered() {} }
  const store = opening.use(
    await openStore(
      {
        location: { engine: 'sqlite', file: join(folder, 'access.db') },
        audit: { file: join(folder, 'audit.log'), mirror: 'test', toolVersion: '0' },
        check: 'full',
      },
      deps,
    ),
  )
  const access = opening.use(
    await startAccess({ quota: given.quota ?? {}, plans }, { ...deps, store, registry, lifecycle, env: {} }),
  )
  const options = parseUpstreamsOptions({ ...given.upstreams, nodes, allowPrivate: true })
  const upstreams = opening.use(await startUpstreams(options, { ...deps, registry, env: {} }))
  const listenerMetrics = () => ({ onRefused() {}, onNotAfter() {} })
  const bundle = opening.use(
    await startGatewayService(
      {
        rpc: ANY_PORT,
        ws: { ...ANY_PORT, queryToken: false },
        grpc: { ...ANY_PORT, healthPerSecond: 50 },
        wsUrl: given.wsUrl ?? ((port) => `ws://127.0.0.1:${port}`),
        failuresMax: Number.POSITIVE_INFINITY,
        ...given.bundle,
      },
      { ...deps, access, upstreams, registry, listenerMetrics, docsUrl: given.docsUrl, limits: given.limits },
    ),
  )
  const on: Provisioning = {
    store,
    random: secureRandom,
    nowMs: Date.now(),
    actor: { uid: 0, user: 'test', sudoUser: null, tty: null },
  }
  if (given.folder === undefined) await addCustomer(on, { name: 'acme', contact: '' })
  let made = 0
  const opened = opening.move()
  return {
    folder,
    url: `http://127.0.0.1:${bundle.rpc.port}`,
    ws: `ws://127.0.0.1:${bundle.ws.port}`,
    grpc: `127.0.0.1:${bundle.grpc.port}`,
    access,
    upstreams,
    bundle,
    on,
    registry,
    log: () => lines,
    async subscribe(input) {
      const created = await createSubscription(on, {
        customer: 'acme',
        name: `sub-${++made}`,
        plan: 'professional',
        products: ['bundle'],
        overrides: {},
        validUntil: null,
        ...input,
      })
      await seen(access, created.subscription.id)
      return { token: created.token?.secret ?? '', id: created.subscription.id }
    },
    [Symbol.asyncDispose]: () => opened.disposeAsync(),
  }
}

/** Waits until the snapshot has this subscription. */
async function seen(access: AccessService, subscriptionId: string): Promise<void> {
  while (access.snapshot().subscription(subscriptionId) === undefined) {
    const { promise, resolve } = Promise.withResolvers<void>()
    using _watching = access.onChange(resolve)
    if (access.snapshot().subscription(subscriptionId) === undefined) await promise
  }
}
