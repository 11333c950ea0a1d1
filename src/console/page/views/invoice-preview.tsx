import { formatCount } from '../../../ui/format.ts'
import { showBytes } from '../../../ui/model/time.ts'
import { saveFile } from '../../../ui/page/save-file.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { InvoiceLine, InvoiceRecord } from '../../client/wire.ts'
import { invoiceCsv, showAmount, sortLines } from '../../model/invoice.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { CustomerLink, SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { MonthSelect, monthNamed } from '../ui/month-select.tsx'
import { MoreRows, useFirstRows } from '../ui/more-rows.tsx'
import { TextFilter } from '../ui/text-filter.tsx'

const LINES_SHOWN = 25

/** What the prices of the plans give for a month, of all customers or one. */
export function InvoicePreview() {
  const { route } = useStore()
  const { customer = '' } = route.value.query
  const month = monthNamed(route.value.query['month'])
  const loaded = useLoad<InvoiceRecord>('invoicePreview', { query: { month, customer } })
  const select = (query: Record<string, string>) => goTo({ view: 'billing', query: { month, customer, ...query } })
  return (
    <Panel id="invoice" title="Invoice preview">
      <div class="filter-row">
        <MonthSelect id="invoice-month" value={month} onChange={(value) => select({ month: value })} />
        <TextFilter value={customer} label="Customer (all)" onChange={(text) => select({ customer: text })} />
      </div>
      <Loading of={loaded.value} missing={<p>No customer is called “{customer}”. Write the whole name.</p>}>
        {(invoice) => <Lines invoice={invoice} month={month} customer={customer} />}
      </Loading>
    </Panel>
  )
}

type LinesProps = { invoice: InvoiceRecord; month: string; customer: string }

function Lines({ invoice: { lines: unsorted, totals, without_price }, month, customer }: LinesProps) {
  const lines = sortLines(unsorted)
  const shown = useFirstRows(lines, LINES_SHOWN)
  return (
    <>
      <Table
        label="Lines of the invoice preview"
        rows={shown.rows}
        keyOf={(row) => row.subscription_id}
        columns={[
          { title: 'Subscription', cell: (row) => <SubscriptionLink name={row.subscription} /> },
          { title: 'Customer', cell: (row) => <CustomerLink name={row.customer} />, isMinor: true },
          { title: 'Plan', cell: (row) => row.plan, isMinor: true },
          { title: 'Days', align: 'right', cell: (row) => `${row.days} of ${row.days_of_month}`, isMinor: true },
          { title: 'Units', align: 'right', cell: (row) => formatCount(row.units), isMinor: true },
          { title: 'Sent', align: 'right', cell: (row) => showBytes(row.bytes), isMinor: true },
          { title: 'Month', align: 'right', cell: (row) => showAmount(row.base), isMinor: true },
          { title: 'Usage', align: 'right', cell: (row) => showAmount(row.usage), isMinor: true },
          { title: 'Transfer', align: 'right', cell: (row) => showAmount(row.transfer), isMinor: true },
          { title: 'Amount', align: 'right', cell: amountOf },
        ]}
        none={
          <p>
            {without_price > 0
              ? 'No plan that was used has a price. Add prices under [billing.prices.PLAN] in the configuration.'
              : `Nobody had a subscription in ${month}. Choose another month.`}
          </p>
        }
      />
      <MoreRows of={shown} />
      {lines.length > 0 && (
        <div class="totals">
          <p>
            {totals.map(({ currency, amount }) => (
              <b key={currency} class="number">
                {showAmount(amount)} {currency}
              </b>
            ))}{' '}
            <span class="dim">
              in {formatCount(lines.length)} {lines.length === 1 ? 'line' : 'lines'}
              {without_price > 0 && `; ${formatCount(without_price)} subscriptions have a plan without a price`}
            </span>
          </p>
          <button
            type="button"
            class="button"
            onClick={() =>
              saveFile(
                `invoice-preview-${month}${customer === '' ? '' : `-${customer}`}.csv`,
                new Blob([invoiceCsv(lines)], { type: 'text/csv;charset=utf-8' }),
              )
            }
          >
            Download CSV
          </button>
        </div>
      )}
    </>
  )
}

function amountOf({ amount, currency }: InvoiceLine) {
  return (
    <>
      <b>{showAmount(amount)}</b> {currency}
    </>
  )
}
