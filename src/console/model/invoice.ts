import type { InvoiceLine } from '../client/wire.ts'
import { printCsv } from './csv.ts'

/** By customer, then by subscription, whatever the order of the store. */
export function sortLines(lines: readonly InvoiceLine[]): InvoiceLine[] {
  return lines.toSorted((a, b) => compareText(a.customer, b.customer) || compareText(a.subscription, b.subscription))
}

/** `17477.64` as `17,477.64`. The text stays exact: an amount is never a floating-point number. */
export function showAmount(amount: string): string {
  const [number = '', ...fraction] = amount.split('.')
  const sign = number.startsWith('-') ? '-' : ''
  const groups: string[] = []
  for (let end = number.length; end > sign.length; end -= 3)
    groups.unshift(number.slice(Math.max(sign.length, end - 3), end))
  return sign + [groups.join(','), ...fraction].join('.')
}

function compareText(a: string, b: string): number {
  return a < b ? -1 : Number(a > b)
}

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
    { name: 'bytes', value: (line) => line.bytes },
    { name: 'currency', value: (line) => line.currency },
    { name: 'base', value: (line) => line.base },
    { name: 'usage', value: (line) => line.usage },
    { name: 'transfer', value: (line) => line.transfer },
    { name: 'amount', value: (line) => line.amount },
  ])
}
