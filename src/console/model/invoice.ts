import type { InvoiceLine } from '../client/wire.ts'
import { printCsv } from './csv.ts'

/** The lines of an invoice preview for a spreadsheet. */
export function invoiceCsv(lines: readonly InvoiceLine[]): string {
  return printCsv(lines, [
    { name: 'customer', value: (line) => line.customer },
    { name: 'subscription', value: (line) => line.subscription },
    { name: 'subscription_id', value: (line) => line.subscription_id },
    { name: 'plan', value: (line) => line.plan },
    { name: 'days', value: (line) => line.days },
    { name: 'days_of_month', value: (line) => line.days_of_month },
    { name: 'units', value: (line) => line.units },
    { name: 'currency', value: (line) => line.currency },
    { name: 'base', value: (line) => line.base },
    { name: 'usage', value: (line) => line.usage },
    { name: 'amount', value: (line) => line.amount },
  ])
}
