import { lookUp } from '../../access/provisioning/context.ts'
import { type Invoice, previewInvoice } from '../../admin/billing/invoice.ts'
import { type BillingStatus, readBillingStatus } from '../../admin/billing/status.ts'
import { parseMonth } from '../../contract/dates.ts'
import { ServiceError } from '../../core/error.ts'
import type { Group } from './open.ts'

export type SinkName = 'openmeter' | 'lago' | 'stripe'
type Sink = { readonly sink: SinkName | undefined }
type RetryInput = Sink & {
  readonly id: string | undefined
  readonly isUnknownIncluded: boolean
  readonly isMarkedSent: boolean
}

export type BillingOperations = {
  /** Undefined where no billing system is configured. */
  status(input: Sink): Promise<BillingStatus | undefined>
  retry(input: RetryInput): Promise<{ readonly changed: number; readonly unknown: number }>
  setPaused(input: Sink & { readonly paused: boolean }): Promise<void>
  preview(input: { readonly month: string; readonly customer: string | undefined }): Promise<Invoice>
}

/** The command line has no connection to hold: as many lines as there are subscriptions. */
const LINES_MAX = 10_000_000

export const billing: Group<BillingOperations> = {
  local(session, flags) {
    const { store, config, nowMs } = session
    const isDryRun = flags.dryRun === true

    /** Undefined only for a dry run, which also works where no billing system is configured. */
    function sinkOf(given: SinkName | undefined): SinkName | undefined {
      const sink = given ?? config.billing.sink
      if (sink !== undefined || isDryRun) return sink
      throw new ServiceError('usage', 'no billing system is configured', {
        fix: 'Set billing.sink in the configuration, or name it with --sink.',
      })
    }
    return {
      async status({ sink = config.billing.sink }) {
        const { settleMs } = config.billing
        return sink === undefined ? undefined : readBillingStatus(store, { sink, settleMs, nowMs })
      },
      async retry({ sink: given, id, ...which }) {
        const sink = sinkOf(given)
        if (sink === undefined || isDryRun) return { changed: 0, unknown: 0 }
        const ids = id === undefined ? undefined : [id]
        return store.billing.retry(session.provisioning(flags), sink, { ids, ...which })
      },
      async setPaused({ sink: given, paused }) {
        const sink = sinkOf(given)
        if (sink !== undefined && !isDryRun) await store.billing.setPaused(session.provisioning(flags), sink, paused)
      },
      async preview({ month, customer }) {
        const period = parseMonth(month)
        const customerId = customer === undefined ? undefined : (await lookUp(store, 'customers', customer)).id
        return previewInvoice(store, config.billing.prices, { ...period, customerId, linesMax: LINES_MAX })
      },
    }
  },

  remote(api) {
    return {
      async status({ sink }) {
        const status = await api.call<BillingStatus | { sink: null }>('billingStatus', { query: { sink } })
        return status.sink === null ? undefined : (status as BillingStatus)
      },
      retry: ({ sink, id, isUnknownIncluded, isMarkedSent }) =>
        api.call('billingRetry', {
          body: {
            sink,
            ids: id === undefined ? undefined : [id],
            include_unknown: isUnknownIncluded,
            mark_sent: isMarkedSent,
          },
        }),
      async setPaused({ sink, paused }) {
        await api.call(paused ? 'billingPause' : 'billingResume', { body: { sink } })
      },
      async preview({ month, customer }) {
        parseMonth(month)
        const { lines, totals, withoutPrice } = await api.call<Invoice>('invoicePreview', {
          query: { month, customer },
        })
        return { lines, totals, withoutPrice }
      },
    }
  },
}
