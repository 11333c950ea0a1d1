import assert from 'node:assert/strict'
import type { AccessService } from '../../../access/service.ts'
import type { AccessStore } from '../../../access/store/store.ts'
import { createHandlers } from '../../../admin/api/handlers/handlers.ts'
import type { RunningProtocol } from '../../../admin/api/handlers/running.ts'
import { billingHandlers } from '../../../admin/billing/handlers.ts'
import type { Billing } from '../../../admin/billing/service.ts'
import { noticeHandlers } from '../../../admin/notices/handlers.ts'
import type { Notices } from '../../../admin/notices/service.ts'
import { offeredProducts } from '../../../contract/product-options.ts'
import { ServiceError } from '../../../core/error.ts'
import type { Random } from '../../../core/random.ts'
import type { ControlMethods } from '../../../platform/process/control-socket.ts'
import type { NodesOptions } from '../../../upstreams/node-spec.ts'
import type { Endpoints } from '../access/endpoints.ts'
import { handoverCard } from '../access/handover-card.ts'
import { findForbidden, type NodeAddresses } from '../config/forbidden-addresses.ts'
import type { Settings } from '../config/settings.ts'
import { shredReportHandler } from './shred-report.ts'
import { checkDestination } from './shreds.ts'

export type AdminHandlerDeps = {
  readonly store: AccessStore
  readonly access: Pick<AccessService, 'snapshot' | 'plans' | 'monthUnits'>
  readonly random: Random
  /** As of the last reload. */
  readonly nodesOptions: () => Pick<NodesOptions, 'allowPrivate'>
  /** Undefined where no billing system is configured. */
  readonly billing?: Pick<Billing, 'status'> | undefined
  /** Undefined where notices have no receiver. */
  readonly notices?: Pick<Notices, 'list' | 'test'> | undefined
  /** Endpoints and control methods of the process. They are known after the admin API listens, since they report its address: undefined until then. */
  readonly operator: () => RunningOperator | undefined
}

type RunningOperator = { readonly endpoints: Endpoints; readonly methods: Partial<ControlMethods<RunningProtocol>> }

/** The handlers of the admin API, on what this process has. */
export function openAdminHandlers(settings: Settings, deps: AdminHandlerDeps) {
  const { store, access, random, nodesOptions, operator, notices, billing } = deps
  const { config } = settings
  const { sink, settleMs, prices } = config.billing
  const handlers = createHandlers({
    store,
    random,
    snapshot: access.snapshot,
    plans: access.plans,
    offered: offeredProducts(config.products),
    prices,
    card: (created) => {
      const { plan, overrides } = created.subscription
      return handoverCard({
        ...created,
        limits: access.plans().limitsOf(plan, overrides),
        endpoints: operator()?.endpoints ?? settings.endpoints,
      })
    },
    checkDestination: (address) => checkDestination(address, settings),
    checkNodeAddresses: (addresses) => checkNodeAddresses(addresses, nodesOptions().allowPrivate),
    running: {
      async call(method, ...[params]) {
        const opened = operator()
        if (opened === undefined)
          throw new ServiceError('busy', 'the process is starting', { fix: 'Retry in a second.' })
        const run = opened.methods[method]
        assert(run !== undefined, `the process has the control method ${method}`)
        return run(params, { signal: new AbortController().signal })
      },
      monthUnits: access.monthUnits,
    },
  })
  return {
    ...handlers,
    ...billingHandlers({ store, sink, settleMs, prices, sending: () => billing?.status() }),
    ...noticeHandlers(notices),
    ...shredReportHandler({ stateDir: settings.stateDir, store, snapshot: access.snapshot, random }),
  }
}

/** Refuses an address that is never connected to. One that the configuration does not allow yet is stored, with a warning. */
function checkNodeAddresses(addresses: NodeAddresses, allowPrivate: boolean): string[] {
  return findForbidden(addresses, allowPrivate).map(({ server, message, isOnlyPrivate }) => {
    if (!isOnlyPrivate) throw new ServiceError('invalid-value', `${server}: ${message}`)
    return `${server} is a loopback or private address: allow it with upstreams.allowPrivate = true in the configuration`
  })
}
