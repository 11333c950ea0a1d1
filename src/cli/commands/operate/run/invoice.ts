import type { InvoiceLine } from '../../../../admin/billing/invoice.ts'
import type { CliContext, ListFlags } from '../../../define.ts'
import { billing } from '../../../operations/billing.ts'
import { openOperations } from '../../../operations/open.ts'
import { type Column, printJson, printList, write } from '../../../output/print.ts'

const COLUMNS: readonly Column<InvoiceLine>[] = [
  { title: 'CUSTOMER', value: ({ customer }) => customer },
  { title: 'SUBSCRIPTION', value: ({ subscription }) => subscription },
  { title: 'PLAN', value: ({ plan }) => plan },
  { title: 'DAYS', value: ({ days }) => days, show: ({ days, daysOfMonth }) => `${days}/${daysOfMonth}` },
  { title: 'UNITS', value: ({ units }) => units },
  { title: 'BYTES', value: ({ bytes }) => bytes },
  { title: 'BASE', value: ({ base }) => base },
  { title: 'USAGE', value: ({ usage }) => usage },
  { title: 'TRANSFER', value: ({ transfer }) => transfer },
  { title: 'AMOUNT', value: ({ amount }) => amount },
  { title: 'CURRENCY', value: ({ currency }) => currency },
  { title: 'DAYS OF MONTH', value: ({ daysOfMonth }) => daysOfMonth, wide: true },
  { title: 'CUSTOMER ID', value: ({ customerId }) => customerId, wide: true },
  { title: 'SUBSCRIPTION ID', value: ({ subscriptionId }) => subscriptionId, wide: true },
]

export async function invoicePreview(
  this: CliContext,
  flags: ListFlags & { readonly month: string; readonly customer?: string },
): Promise<void> {
  await using on = await openOperations(billing, this, flags, 'read')
  const invoice = await on.preview({ month: flags.month, customer: flags.customer })
  if (flags.json === true || flags.output === 'json') return printJson(this, { ...invoice, isPreview: true })
  const empty = `nothing to show for ${flags.month}`
  printList(this, flags, { rows: invoice.lines, columns: COLUMNS, empty })
  for (const { currency, amount } of invoice.totals) write(this, `total ${amount} ${currency}`)
  if (invoice.withoutPrice > 0)
    write(this, `${invoice.withoutPrice} subscriptions have no price: set billing.prices.PLAN for their plans`)
  write(this, 'a preview: Sluice makes no invoice and takes no money')
}
