import { formatCount } from '../../../ui/format.ts'
import { showLastDay } from '../../../ui/model/time.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Facts } from '../../../ui/parts/facts.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import { Table } from '../../../ui/parts/table.tsx'
import type { CustomerDetails } from '../../client/wire.ts'
import { changeContact, removeCustomer, renameCustomer, resumeCustomer, suspendCustomer } from '../actions/customers.ts'
import { addNote, createSubscription } from '../actions/subscriptions.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { Link, SubscriptionLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Notes } from '../ui/notes.tsx'
import { Time } from '../ui/time.tsx'

export function CustomerView({ name }: { name: string }) {
  const store = useStore()
  const loaded = useLoad<CustomerDetails>('customerShow', { params: { customer: name } })
  return (
    <Loading of={loaded.value}>
      {(customer) => {
        const target = { ...customer, revision: loaded.value.revision }
        return (
          <>
            <Heading
              above={<Link to={{ view: 'customers' }}>Customers</Link>}
              title={<bdi>{customer.name}</bdi>}
              note={<Badge state={customer.state} />}
              aside={
                <>
                  {customer.state === 'active' && (
                    <ActionButton
                      needs="provision"
                      tone="primary"
                      spec={() => createSubscription(store, customer.name)}
                    >
                      Create subscription
                    </ActionButton>
                  )}
                  <ActionButton needs="provision" spec={() => renameCustomer(store, target)}>
                    Rename
                  </ActionButton>
                  {customer.state === 'active' ? (
                    <ActionButton needs="provision" tone="danger" spec={() => suspendCustomer(store, target)}>
                      Suspend
                    </ActionButton>
                  ) : (
                    <ActionButton needs="provision" spec={() => resumeCustomer(store, target)}>
                      Resume
                    </ActionButton>
                  )}
                  {customer.state !== 'removed' && (
                    <ActionButton needs="provision" tone="danger" spec={() => removeCustomer(store, target)}>
                      Remove
                    </ActionButton>
                  )}
                </>
              }
            />
            <Panel id="subscriptions" title="Subscriptions">
              <Table
                label={`Subscriptions of ${customer.name}`}
                rows={customer.subscriptions}
                keyOf={(row) => row.id}
                columns={[
                  { title: 'Name', cell: (row) => <SubscriptionLink name={row.name} /> },
                  { title: 'Plan', cell: (row) => row.plan },
                  { title: 'Products', cell: (row) => row.products.join(', '), isMinor: true },
                  { title: 'State', cell: (row) => <Badge state={row.state} /> },
                  { title: 'Last day', cell: (row) => showLastDay(row.valid_until) },
                ]}
                none={<p>No subscription yet. Create one: its token and the card for the customer are shown once.</p>}
              />
              {customer.has_more_subscriptions && (
                <p class="dim">
                  The first {formatCount(customer.subscriptions.length)}.{' '}
                  <Link to={{ view: 'subscriptions', query: { search: customer.name } }}>All subscriptions</Link>
                </p>
              )}
            </Panel>
            <div class="pair">
              <Panel
                id="contact"
                title="Details"
                aside={
                  <ActionButton needs="provision" tone="quiet" spec={() => changeContact(store, target)}>
                    Change contact
                  </ActionButton>
                }
              >
                <Facts
                  facts={[
                    ['Contact', customer.contact === '' ? 'none' : customer.contact],
                    ['Added (UTC)', <Time key="added" at={customer.created_at} />],
                    ['Id', <code key="id">{customer.id}</code>],
                    [
                      'Usage',
                      <Link key="usage" to={{ view: 'usage', query: { customer: customer.name } }}>
                        Show usage
                      </Link>,
                    ],
                  ]}
                />
              </Panel>
              <Notes notes={customer.notes} add={() => addNote(store, customer)} />
            </div>
          </>
        )
      }}
    </Loading>
  )
}
