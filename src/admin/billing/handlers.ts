import { lookUp, refuseOtherRevision } from '../../access/provisioning/context.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { exportUsage } from '../../access/usage/export.ts'
import type { AdminBodies } from '../../contract/schemas/admin.ts'
import {
  USAGE_EXPORT_CONTENT_TYPES,
  USAGE_EXPORT_FORMATS,
  USAGE_EXPORT_GROUPINGS,
} from '../../contract/usage-export.ts'
import { isoTime, toWireJson } from '../../contract/wire-json.ts'
import { ServiceError } from '../../core/error.ts'
import type { AdminCall, AdminHandlers } from '../api/handler.ts'
import { readBack } from '../api/read-back.ts'
import { parseBillingId } from './billing-id.ts'
import { previewInvoice } from './invoice.ts'
import { BILLING_SINKS, type PlanPrices } from './options.ts'
import type { BillingProcessStatus } from './service.ts'
import { readBillingStatus } from './status.ts'

/** Exports that run at the same time. */
export const EXPORTS_MAX = 4

export type BillingHandlerDeps = {
  readonly store: AccessStore
  /** Undefined where no billing system is configured. */
  readonly sink: string | undefined
  readonly settleMs: number
  readonly prices: PlanPrices
  /** What the process knows that sends; undefined where this one does not. */
  readonly sending?: () => BillingProcessStatus | undefined
}

type BillingHandlers = Pick<
  AdminHandlers,
  | 'usageExport'
  | 'invoicePreview'
  | 'billingStatus'
  | 'billingRetry'
  | 'billingPause'
  | 'billingResume'
  | 'customerBillingId'
>

/** The routes of the admin API about billing. */
export function billingHandlers(deps: BillingHandlerDeps): BillingHandlers {
  const { store, settleMs, prices, sending } = deps
  let exports = 0

  /** Counted from the first line to the last, or to the end of the connection. */
  async function* counted(lines: AsyncIterable<string>): AsyncGenerator<string> {
    if (exports >= EXPORTS_MAX)
      throw new ServiceError('busy', `${EXPORTS_MAX} exports are under way (limit: exports)`, { fix: 'Retry later.' })
    exports += 1
    try {
      yield* lines
    } finally {
      exports -= 1
    }
  }

  async function customerOf(query: AdminCall['query']): Promise<string | undefined> {
    const name = query.get('customer')
    return name === null ? undefined : (await lookUp(store, 'customers', name)).id
  }

  /** Undefined only for a dry run, which also works where no billing system is configured. */
  function sinkToChange({ isDryRun }: AdminCall, given: string | undefined): string | undefined {
    const sink = knownSink(given ?? deps.sink)
    if (sink !== undefined || isDryRun) return sink
    throw new ServiceError('usage', 'no billing system is configured', {
      fix: 'Set billing.sink in the configuration, or name it with --sink.',
    })
  }

  const setPaused = (paused: boolean) => async (call: AdminCall) => {
    const sink = sinkToChange(call, (call.body as AdminBodies['billingPause'])?.sink)
    if (sink !== undefined && !call.isDryRun) await store.billing.setPaused(call, sink, paused)
    return { body: { sink: sink ?? null, paused } }
  }

  return {
    async usageExport({ query }) {
      const format = choiceOf(query, 'format', USAGE_EXPORT_FORMATS, 'csv')
      const by = choiceOf(query, 'by', USAGE_EXPORT_GROUPINGS, 'day')
      const customerId = await customerOf(query)
      const lines = counted(exportUsage(store, { ...monthOf(query), customerId, by, format }))
      return { body: '', lines, contentType: USAGE_EXPORT_CONTENT_TYPES[format] }
    },
    async invoicePreview({ query }) {
      const customerId = await customerOf(query)
      const period = monthOf(query)
      return {
        body: toWireJson({ ...(await previewInvoice(store, prices, { ...period, customerId })), isPreview: true }),
      }
    },
    async billingStatus({ query, nowMs }) {
      const sink = knownSink(query.get('sink') ?? deps.sink)
      if (sink === undefined) return { body: { sink: null } }
      const { plannedUntil, behindSeconds, deadLetters, dead, ...status } = await readBillingStatus(store, {
        sink,
        settleMs,
        nowMs,
      })
      return {
        body: {
          ...status,
          planned_until: plannedUntil,
          behind_seconds: behindSeconds,
          dead_letters: deadLetters,
          ...sendingWire(sending?.()),
          dead: await Promise.all(
            dead.map(async ({ outcomeUnknown, ...letter }) => ({
              ...letter,
              subscription_name: (await store.get('subscriptions', letter.subscription))?.name ?? null,
              outcome_unknown: outcomeUnknown,
            })),
          ),
        },
      }
    },
    async billingRetry(call) {
      const body = (call.body as AdminBodies['billingRetry']) ?? {}
      const sink = sinkToChange(call, body.sink)
      if (sink === undefined || call.isDryRun) return { body: { sink: sink ?? null, changed: 0, unknown: 0 } }
      const { changed, unknown } = await store.billing.retry(call, sink, {
        ids: body.ids,
        isUnknownIncluded: body.include_unknown === true,
        isMarkedSent: body.mark_sent === true,
      })
      return { body: { sink, changed, unknown } }
    },
    billingPause: setPaused(true),
    billingResume: setPaused(false),
    async customerBillingId(call) {
      const given = (call.body as AdminBodies['customerBillingId']).billing_id
      const billingId = parseBillingId(given ?? '')
      const customer = await lookUp(store, 'customers', call.params['customer'] ?? '')
      const { id, name } = customer
      const body = { customer: name, customer_id: id, billing_id: billingId }
      if (call.isDryRun) {
        refuseOtherRevision('customer', customer, call.ifRevision)
        return { body }
      }
      await store.billing.setBillingId(call, id, billingId)
      const stored = await readBack(() => store.get('customers', id))
      return { body, ...(stored && { revision: stored.revision }) }
    },
  }
}

function sendingWire(sending: BillingProcessStatus | undefined): object {
  return {
    last_success_at: isoTime(sending?.lastSuccessMs),
    failing: sending?.failing ?? null,
    customers_without_billing_id: sending?.unmapped ?? [],
  }
}

function knownSink(name: string | undefined): string | undefined {
  if (name === undefined || BILLING_SINKS.some((sink) => sink === name)) return name
  throw new ServiceError('invalid-value', `"${name}" is not a billing system: use one of ${BILLING_SINKS.join(', ')}`)
}

function choiceOf<const T extends string>(query: AdminCall['query'], name: string, values: readonly T[], none: T): T {
  const given = query.get(name)
  if (given === null) return none
  const found = values.find((value) => value === given)
  if (found !== undefined) return found
  throw new ServiceError('invalid-value', `${name} is "${given}": give one of ${values.join(', ')}`)
}

function monthOf(query: AdminCall['query']): { fromMs: number; toMs: number } {
  const [, year, month] = /^(\d{4})-(0[1-9]|1[0-2])$/.exec(query.get('month') ?? '') ?? []
  if (year === undefined) throw new ServiceError('invalid-value', 'month is missing or not a month such as 2026-10')
  return { fromMs: Date.UTC(Number(year), Number(month) - 1), toMs: Date.UTC(Number(year), Number(month)) }
}
