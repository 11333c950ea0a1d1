import { BUILT_IN_PLANS, createPlanTable } from '../../../src/access/plan.ts'
import { followStore } from '../../../src/access/snapshot/follow.ts'
import { openStore, type StoreLocation } from '../../../src/access/store/open.ts'
import type { AdminCall, AdminReply } from '../../../src/admin/api/handler.ts'
import type { HandlerDeps } from '../../../src/admin/api/handlers/deps.ts'
import { createHandlers } from '../../../src/admin/api/handlers/handlers.ts'
import { billingHandlers } from '../../../src/admin/billing/handlers.ts'
import type { ProductKey } from '../../../src/contract/products.ts'
import { systemClock } from '../../../src/platform/process/clock.ts'
import { secureRandom } from '../../../src/platform/process/random.ts'
import { silentLogger } from '../../../src/platform/telemetry/logger.ts'

export type HandlerId = keyof ReturnType<typeof createHandlers> | keyof ReturnType<typeof billingHandlers>

export type CallInput = {
  readonly params?: Record<string, string>
  readonly query?: Record<string, string>
  readonly body?: unknown
  readonly nowMs?: number
  readonly isDryRun?: boolean
  readonly ifRevision?: number
}

const OFFERED: ReadonlySet<ProductKey> = new Set([
  'bundle',
  'indexer',
  'shreds-raw',
  'dedicated-node',
  'sender',
  'execution',
])

/** The handlers of the admin API on a real store, called as the server calls them. */
export async function openHandlers(
  folder: string,
  running: Partial<HandlerDeps['running']> = {},
  location?: StoreLocation,
) {
  const store = await openStore(
    {
      location: location ?? { engine: 'sqlite', file: `${folder}/access.db` },
      audit: { file: `${folder}/audit.log`, mirror: 'test', toolVersion: '0' },
      check: 'quick',
    },
    { clock: systemClock, random: secureRandom, log: silentLogger },
  )
  const follower = await followStore(store, { log: silentLogger, clock: systemClock })
  const plans = createPlanTable(BUILT_IN_PLANS)
  const handlers = {
    ...billingHandlers({ store, sink: undefined, settleMs: 0, prices: {} }),
    ...createHandlers({
      store,
      random: secureRandom,
      snapshot: follower.current,
      plans: () => plans,
      offered: OFFERED,
      card: ({ subscription }) => `card of ${subscription.name}`,
      checkDestination() {},
      checkNodeAddresses: () => [],
      running: { call: async () => null as never, monthUnits: () => [], ...running },
    }),
  }
  return {
    store,
    handlers,
    snapshot: follower.current,
    call(id: HandlerId, input: CallInput = {}): Promise<AdminReply> {
      const call: AdminCall = {
        params: input.params ?? {},
        query: new URLSearchParams(input.query),
        body: input.body,
        actor: { uid: 1, user: 'op', sudoUser: null, tty: null },
        nowMs: input.nowMs ?? systemClock.nowMs(),
        isDryRun: input.isDryRun ?? false,
        ifRevision: input.ifRevision,
        signal: new AbortController().signal,
      }
      return handlers[id](call)
    },
    async [Symbol.asyncDispose]() {
      await follower[Symbol.asyncDispose]()
      await store[Symbol.asyncDispose]()
    },
  }
}

export type TestHandlers = Awaited<ReturnType<typeof openHandlers>>
