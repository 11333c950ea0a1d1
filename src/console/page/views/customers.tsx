import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Switch } from '../../../ui/parts/switch.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { CustomerRecord, Page } from '../../client/wire.ts'
import { addCustomer } from '../actions/customers.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { CustomerLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Pager, usePaging } from '../ui/pager.tsx'
import { TextFilter } from '../ui/text-filter.tsx'
import { Time } from '../ui/time.tsx'

const STATES = [
  { value: '', label: 'All' },
  { value: 'active', label: 'Active' },
  { value: 'suspended', label: 'Suspended' },
  { value: 'removed', label: 'Removed' },
]

export function CustomersView() {
  const store = useStore()
  const { search = '', state = '' } = store.route.value.query
  const paging = usePaging(`${search} ${state}`)
  const loaded = useLoad<Page<CustomerRecord>>('customerList', { query: { search, state, cursor: paging.cursor } })
  const select = (query: Record<string, string>) => goTo({ view: 'customers', query: { search, state, ...query } })
  return (
    <>
      <Heading
        title="Customers"
        aside={
          <ActionButton needs="provision" tone="primary" spec={() => addCustomer(store)}>
            Add customer
          </ActionButton>
        }
      />
      <div class="filter-row">
        <TextFilter value={search} label="Name or contact" onChange={(text) => select({ search: text })} />
        <Switch label="State" options={STATES} value={state} onChange={(value) => select({ state: value })} />
      </div>
      <Loading of={loaded.value}>
        {(page) => (
          <>
            <Table
              label="Customers"
              rows={page.items}
              keyOf={(row) => row.id}
              columns={[
                { title: 'Name', cell: (row) => <CustomerLink name={row.name} /> },
                { title: 'State', cell: (row) => <Badge state={row.state} /> },
                { title: 'Subscriptions', align: 'right', cell: (row) => row.subscriptions ?? '' },
                { title: 'Contact', cell: (row) => row.contact, isMinor: true },
                { title: 'Added (UTC)', cell: (row) => <Time at={row.created_at} />, isMinor: true },
              ]}
              none={
                search === '' && state === '' ? (
                  <p>No customers yet. Add the first one, then create its subscription.</p>
                ) : (
                  <p>No customer matches. Clear the search or choose another state.</p>
                )
              }
            />
            <Pager paging={paging} next={page.next_cursor} />
          </>
        )}
      </Loading>
    </>
  )
}
