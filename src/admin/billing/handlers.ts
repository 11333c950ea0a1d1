import { lookUp } from '../../access/provisioning/context.ts'
import type { AccessStore } from '../../access/store/store.ts'
import { EXPORT_FORMATS, EXPORT_GROUPINGS, exportUsage } from '../../access/usage/export.ts'
import { ServiceError } from '../../core/error.ts'
import type { AdminCall, AdminHandlers } from '../api/handler.ts'
import { readBillingStatus } from './status.ts'

/** A larger export is made by the command line, which streams. */
const EXPORT_CHARS_MAX = 16 * 1024 * 1024

export type BillingHandlerDeps = {
  readonly store: AccessStore
  /** Undefined where no billing system is configured. */
  readonly sink: string | undefined
  readonly settleMs: number
}

/** The routes of the admin API about billing. */
export function billingHandlers(deps: BillingHandlerDeps): Pick<AdminHandlers, 'usageExport' | 'billingStatus'> {
  const { store, sink, settleMs } = deps
  return {
    async usageExport({ query }) {
      const format = choiceOf(query, 'format', EXPORT_FORMATS, 'csv')
      const by = choiceOf(query, 'by', EXPORT_GROUPINGS, 'day')
      const name = query.get('customer')
      const customerId = name === null ? undefined : (await lookUp(store, 'customers', name)).id
      let body = ''
      for await (const line of exportUsage(store, { ...monthOf(query), customerId, by, format })) {
        body += line
        if (body.length > EXPORT_CHARS_MAX)
          throw new ServiceError('invalid-value', `the export is larger than ${EXPORT_CHARS_MAX} characters`, {
            fix: 'Name a customer, or run on the machine: sluice usage export --out FILE',
          })
      }
      return { body, contentType: format === 'csv' ? 'text/csv; charset=utf-8' : 'application/x-ndjson' }
    },
    async billingStatus({ nowMs }) {
      if (sink === undefined) return { body: { sink: null } }
      const { plannedUntil, behindSeconds, deadLetters, dead, ...status } = await readBillingStatus(store, {
        ...{ sink, settleMs, nowMs },
      })
      return {
        body: {
          ...status,
          planned_until: plannedUntil,
          behind_seconds: behindSeconds,
          dead_letters: deadLetters,
          dead: dead.map(({ outcomeUnknown, ...letter }) => ({ ...letter, outcome_unknown: outcomeUnknown })),
        },
      }
    },
  }
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
