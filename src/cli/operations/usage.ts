import { lookUp } from '../../access/provisioning/context.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { exportUsage } from '../../access/usage/export.ts'
import {
  groupUsage,
  readUsageLines,
  type UsageLine,
  type UsagePeriod,
  usagePeriodOf,
} from '../../access/usage/report.ts'
import { parseMonth } from '../../contract/dates.ts'
import {
  USAGE_EXPORT_CONTENT_TYPES,
  type UsageExportFormat,
  type UsageExportGrouping,
} from '../../contract/usage-export.ts'
import { ServiceError } from '../../core/error.ts'
import { systemClock } from '../../platform/process/clock.ts'
import type { Group } from './open.ts'

export type NamedUsage = UsageLine & {
  readonly subscription: string
  readonly customer: string | undefined
  readonly customerId: string | undefined
}

export type UsageRequest = {
  readonly customer?: string
  readonly sub?: string
  readonly month?: string
  readonly since?: string
  readonly until?: string
  readonly by: 'hour' | 'day' | 'total' | 'method'
}

export type UsageReport = {
  readonly period: UsagePeriod
  readonly rows: readonly NamedUsage[]
  /** Units of the period that were used before methods were counted. */
  readonly missingUnits: number
  /** Known on this machine only. */
  readonly keepDays: number | undefined
}

export type ExportRequest = {
  readonly month: string
  readonly customer: string | undefined
  readonly by: UsageExportGrouping
  readonly format: UsageExportFormat
}

export type UsageOperations = {
  report(request: UsageRequest): Promise<UsageReport>
  export(request: ExportRequest): Promise<AsyncIterable<string>>
}

export const usageGroup: Group<UsageOperations> = {
  local({ store, nowMs, config }) {
    return {
      async report(request) {
        const { by } = request
        const period = usagePeriodOf(request, nowMs)
        const selected = await selectedSubscriptions(store, request)
        const read = async (grouping: typeof by) =>
          (await Promise.all(selected.map((id) => readUsageLines(store, grouping, period, id)))).flat()
        // Read before the methods: what is added meanwhile must not count as missing there.
        const total = by === 'method' ? await read('total') : []
        const lines = await read(by)
        const subscriptions = new Map((await store.list('subscriptions')).map((sub) => [sub.id, sub]))
        const customers = new Map((await store.list('customers')).map((customer) => [customer.id, customer]))
        const rows = groupUsage(lines, by).map((line) => {
          const subscription = subscriptions.get(line.subscriptionId)
          const customer = customers.get(subscription?.customerId ?? '')
          const names = { customer: customer?.name, customerId: customer?.id }
          return { ...line, subscription: subscription?.name ?? line.subscriptionId, ...names }
        })
        const missingUnits = by === 'method' ? unitsOf(total) - unitsOf(lines) : 0
        return { period, rows, missingUnits, keepDays: config.access.usage.keepDays }
      },
      async export({ month, customer, by, format }) {
        const customerId = customer === undefined ? undefined : (await lookUp(store, 'customers', customer)).id
        return exportUsage(store, { ...parseMonth(month), customerId, by, format })
      },
    }
  },

  remote(api) {
    type Line = Omit<NamedUsage, 'subscriptionId' | 'hour' | 'subscription'> & {
      readonly from?: string
      readonly subscription: string | null
      readonly subscriptionId: string | null
    }
    type Report = { readonly from: string; readonly until: string; readonly items: readonly Line[] }
    return {
      async report(request) {
        // The same message for a wrong period, with the names of the flags.
        usagePeriodOf(request, systemClock.nowMs())
        const { by, sub, customer, month, since, until } = request
        const ask = (grouping: typeof by) =>
          api.call<Report & { total: { units: number } }>('usage', {
            query: { by: grouping, subscription: sub, customer, month, since, until },
          })
        const total = by === 'method' ? (await ask('total')).total.units : 0
        const report = await ask(by)
        const rows = report.items.map(({ from, ...line }) => ({
          ...line,
          hour: from === undefined ? 0 : Date.parse(from),
          subscriptionId: line.subscriptionId ?? '',
          subscription: line.subscription ?? line.subscriptionId ?? OTHERS,
        }))
        return {
          period: { fromMs: Date.parse(report.from), toMs: Date.parse(report.until) },
          rows,
          missingUnits: by === 'method' ? total - unitsOf(rows) : 0,
          keepDays: undefined,
        }
      },
      async export({ month, customer, by, format }) {
        parseMonth(month)
        const input = { query: { month, customer, by, format } }
        return api.text('usageExport', USAGE_EXPORT_CONTENT_TYPES[format], input)
      },
    }
  },
}

/** The sum of the subscriptions that have no lines of their own in a remote report. */
const OTHERS = '(others)'

/** The ids that the flags select, of cancelled subscriptions and removed customers too. One undefined stands for all. */
async function selectedSubscriptions(store: AccessStore, request: UsageRequest): Promise<(string | undefined)[]> {
  const sub = request.sub === undefined ? undefined : await lookUp(store, 'subscriptions', request.sub)
  const customer = request.customer === undefined ? undefined : await lookUp(store, 'customers', request.customer)
  if (sub !== undefined && customer !== undefined && sub.customerId !== customer.id) {
    throw new ServiceError(
      'invalid-value',
      `subscription "${sub.name}" does not belong to customer "${customer.name}"`,
      {
        fix: 'Leave out one of the two flags.',
      },
    )
  }
  if (sub !== undefined || customer === undefined) return [sub?.id]
  return (await store.find('subscriptions', { customerId: customer.id })).map(({ id }) => id)
}

function unitsOf(lines: readonly { readonly units: number }[]): number {
  return lines.reduce((sum, { units }) => sum + units, 0)
}
