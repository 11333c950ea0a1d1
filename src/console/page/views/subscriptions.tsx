import { showDaysLeft, showLastDay } from '../../../ui/model/time.ts'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Switch } from '../../../ui/parts/switch.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { Page, SubscriptionRecord } from '../../client/wire.ts'
import { createSubscription } from '../actions/subscriptions.ts'
import { goTo } from '../go-to.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { CustomerLink, SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Pager, usePaging } from '../ui/pager.tsx'
import { TextFilter } from '../ui/text-filter.tsx'

const STATES = ['', 'active', 'suspended', 'expired', 'cancelled'].map((value) => ({
  value,
  label: value === '' ? 'All' : `${value[0]?.toUpperCase()}${value.slice(1)}`,
}))
const ENDINGS = [
  { value: '', label: 'Any end' },
  { value: '7d', label: 'Ends in 7 days' },
  { value: '30d', label: '30 days' },
]

export function SubscriptionsView() {
  const store = useStore()
  const { search = '', state = '', ending = '' } = store.route.value.query
  const paging = usePaging(`${search} ${state} ${ending}`)
  const query = { search, state, ending, cursor: paging.cursor }
  const loaded = useLoad<Page<SubscriptionRecord>>('subList', { query })
  const select = (chosen: Record<string, string>) =>
    goTo({ view: 'subscriptions', query: { search, state, ending, ...chosen } })
  return (
    <>
      <Heading
        title="Subscriptions"
        aside={
          <ActionButton needs="provision" tone="primary" spec={() => createSubscription(store)}>
            Create subscription
          </ActionButton>
        }
      />
      <div class="filter-row">
        <TextFilter value={search} label="Name" onChange={(text) => select({ search: text })} />
        <Switch label="State" options={STATES} value={state} onChange={(value) => select({ state: value })} />
        <Switch label="Ending" options={ENDINGS} value={ending} onChange={(value) => select({ ending: value })} />
      </div>
      <Loading of={loaded.value}>
        {(page) => (
          <>
            <Table
              label="Subscriptions"
              rows={page.items}
              keyOf={(row) => row.id}
              columns={[
                { title: 'Name', cell: (row) => <SubscriptionLink name={row.name} /> },
                { title: 'Customer', cell: (row) => <CustomerLink name={row.customer} /> },
                { title: 'Plan', cell: (row) => row.plan, isMinor: true },
                { title: 'Products', cell: (row) => row.products.join(', '), isMinor: true },
                { title: 'State', cell: (row) => <Badge state={row.state} /> },
                {
                  title: 'Last day',
                  cell: (row) => (
                    <span title={showDaysLeft(row.valid_until, Date.now())}>{showLastDay(row.valid_until)}</span>
                  ),
                  isMinor: true,
                },
              ]}
              none={
                search + state + ending === '' ? (
                  <p>No subscriptions yet. Add a customer first, then create its subscription.</p>
                ) : (
                  <p>No subscription matches. Clear the search or choose another state.</p>
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
