import { ROLE_PERMISSIONS } from '../../../contract/admin-routes.ts'
import { isoTime } from '../../../contract/wire-json.ts'
import { ServiceError } from '../../../core/error.ts'
import type { AdminHandlers } from '../handler.ts'
import { auditHandlers } from './audit.ts'
import { catalogueHandlers } from './catalogue.ts'
import { customerHandlers } from './customers.ts'
import type { HandlerDeps } from './deps.ts'
import { destinationHandlers } from './destinations.ts'
import { nodeHandlers } from './nodes.ts'
import { overviewHandlers } from './overview.ts'
import { overviewSeriesHandlers } from './overview-series.ts'
import { processHandlers } from './process.ts'
import { subscriptionHandlers } from './subscriptions.ts'
import { secretHandlers } from './tokens.ts'
import { usageHandlers } from './usage.ts'

/** Routes that other parts handle: administrators, billing, notices, and the report of shreds, which is a file of that service. */
type Others =
  | 'adminList'
  | 'adminAdd'
  | 'adminRotate'
  | 'adminRemove'
  | 'usageExport'
  | 'invoicePreview'
  | 'billingStatus'
  | 'billingRetry'
  | 'billingPause'
  | 'billingResume'
  | 'customerBillingId'
  | 'notices'
  | 'noticeTest'
  | 'shredReport'

/** The handlers of customers, subscriptions and the running process. */
export function createHandlers(deps: HandlerDeps): Omit<AdminHandlers, Others> {
  return {
    async me({ actor, nowMs }) {
      if (actor.admin === undefined) throw new ServiceError('unauthorized', 'the request has no administrator')
      const { id, name, role } = actor.admin
      return { body: { id, name, role, permissions: ROLE_PERMISSIONS[role], now: isoTime(nowMs) } }
    },
    ...customerHandlers(deps),
    ...subscriptionHandlers(deps),
    ...secretHandlers(deps),
    ...destinationHandlers(deps),
    ...nodeHandlers(deps),
    ...processHandlers(deps),
    ...catalogueHandlers(deps),
    ...usageHandlers(deps),
    ...auditHandlers(deps),
    ...overviewHandlers(deps),
    ...overviewSeriesHandlers(deps),
  }
}
