import { limitTitle } from '../../../ui/model/limit-title.ts'
import { showDaysLeft, showLastDay, showTime } from '../../../ui/model/time.ts'
import { Panel } from '../../../ui/panel.tsx'
import { Badge } from '../../../ui/parts/badge.tsx'
import { Facts } from '../../../ui/parts/facts.tsx'
import { Heading } from '../../../ui/parts/heading.tsx'
import type { SubscriptionDetails } from '../../client/wire.ts'
import { limitRows, methodRows, showLimit } from '../../model/limits.ts'
import { pauseDestination, setDestination } from '../actions/operate.ts'
import {
  grantDatabaseUser,
  issueToken,
  revokeDatabaseUser,
  revokeToken,
  rotateDatabaseUser,
  rotateToken,
} from '../actions/secrets.ts'
import {
  addNote,
  addProduct,
  addRefund,
  cancelSubscription,
  changeLimits,
  removeProduct,
  renewSubscription,
  resumeSubscription,
  suspendSubscription,
} from '../actions/subscriptions.ts'
import { useStore } from '../store.ts'
import { ActionButton } from '../ui/action-button.tsx'
import { CustomerLink } from '../ui/link.tsx'
import { useLoad } from '../ui/load.ts'
import { Loading } from '../ui/loading.tsx'
import { Notes } from '../ui/notes.tsx'
import { SubscriptionUsage } from './subscription-usage.tsx'

export function SubscriptionView({ name }: { name: string }) {
  const loaded = useLoad<SubscriptionDetails>('subShow', { params: { subscription: name } })
  return <Loading of={loaded.value}>{(sub) => <Details sub={sub} revision={loaded.value.revision} />}</Loading>
}

type DetailsProps = { sub: SubscriptionDetails; revision: number | undefined }

function Details({ sub, revision }: DetailsProps) {
  const store = useStore()
  const shown = { ...sub, revision }
  const isOpen = sub.state !== 'cancelled'
  return (
    <>
      <Heading
        above={<CustomerLink name={sub.customer} />}
        title={<bdi>{sub.name}</bdi>}
        note={
          <>
            <Badge state={sub.state} /> · plan {sub.plan} ·{' '}
            {sub.valid_until === null
              ? 'no end'
              : `last day ${showLastDay(sub.valid_until)}, ${showDaysLeft(sub.valid_until, Date.now())}`}
          </>
        }
        aside={
          isOpen && (
            <>
              <ActionButton needs="provision" spec={() => renewSubscription(store, shown)}>
                Renew
              </ActionButton>
              {sub.state === 'suspended' ? (
                <ActionButton needs="provision" spec={() => resumeSubscription(store, shown)}>
                  Resume
                </ActionButton>
              ) : (
                <ActionButton needs="provision" tone="danger" spec={() => suspendSubscription(store, shown)}>
                  Suspend
                </ActionButton>
              )}
              <ActionButton needs="provision" tone="danger" spec={() => cancelSubscription(store, shown)}>
                Cancel
              </ActionButton>
            </>
          )
        }
      />
      <SubscriptionUsage name={sub.name} />
      <div class="pair">
        <TokenPanel sub={sub} />
        <LimitsPanel sub={sub} revision={revision} />
        <ProductsPanel sub={sub} revision={revision} />
        <Panel
          id="refunds"
          title="Refunds"
          aside={
            <ActionButton needs="bill" tone="quiet" spec={() => addRefund(store, sub.name)}>
              Record refund
            </ActionButton>
          }
        >
          {sub.refunds.length === 0 ? (
            <p class="dim">No refunds.</p>
          ) : (
            <ul class="notes">
              {sub.refunds.map((refund) => (
                <li key={refund.id}>
                  <time class="dim">{showTime(refund.created_at)}</time>{' '}
                  <b class="number">
                    {refund.amount} {refund.currency}
                  </b>{' '}
                  {refund.reason}
                </li>
              ))}
            </ul>
          )}
        </Panel>
        <Notes notes={sub.notes} add={() => addNote(store, sub)} />
      </div>
    </>
  )
}

function TokenPanel({ sub }: { sub: SubscriptionDetails }) {
  const store = useStore()
  const { name, tokens } = sub
  return (
    <Panel
      id="token"
      title="Token"
      aside={
        sub.state !== 'cancelled' && (
          <span class="actions">
            {tokens.length === 0 ? (
              <ActionButton needs="provision" tone="quiet" spec={() => issueToken(store, name)}>
                Issue token
              </ActionButton>
            ) : (
              <>
                <ActionButton needs="provision" tone="quiet" spec={() => rotateToken(store, name)}>
                  Replace token
                </ActionButton>
                <ActionButton needs="provision" tone="quiet" spec={() => revokeToken(store, name)}>
                  Revoke
                </ActionButton>
              </>
            )}
          </span>
        )
      }
    >
      {tokens.length === 0 ? (
        <p class="dim">No token: calls are refused. Issue one to let the customer in.</p>
      ) : (
        <Facts
          facts={tokens.map((token) => [
            `slc_…${token.last4}`,
            <span key={token.id}>
              <Badge state={token.state} /> since {showTime(token.created_at)}
              {token.not_after != null && <> · works until {showTime(token.not_after)}</>}
            </span>,
          ])}
        />
      )}
    </Panel>
  )
}

function LimitsPanel({ sub, revision }: DetailsProps) {
  const store = useStore()
  return (
    <Panel
      id="limits"
      title="Limits"
      aside={
        sub.state !== 'cancelled' && (
          <ActionButton needs="provision" tone="quiet" spec={() => changeLimits(store, { ...sub, revision })}>
            Change limits
          </ActionButton>
        )
      }
    >
      <table class="records small">
        <thead>
          <tr>
            <th scope="col">Limit</th>
            <th scope="col" class="right">
              Value
            </th>
            <th scope="col">Source</th>
          </tr>
        </thead>
        <tbody>
          {[...limitRows(sub.limits, sub.overrides), ...methodRows(sub.limits, sub.overrides)].map((row) => (
            <tr key={row.name}>
              <th scope="row">{limitTitle(row.label)}</th>
              <td class="right number">{showLimit(row.value)}</td>
              <td class={row.source === 'plan' ? 'dim' : ''}>
                {row.source === 'plan' ? `plan ${sub.plan}` : 'set here'}
              </td>
            </tr>
          ))}
        </tbody>
      </table>
    </Panel>
  )
}

function ProductsPanel({ sub, revision }: DetailsProps) {
  const store = useStore()
  const { name, products, destination } = sub
  const shown = { ...sub, revision }
  const users = sub.indexer_users ?? []
  return (
    <Panel
      id="products"
      title="Products"
      aside={
        sub.state !== 'cancelled' && (
          <ActionButton needs="provision" tone="quiet" spec={() => addProduct(store, shown)}>
            Add product
          </ActionButton>
        )
      }
    >
      <Facts
        facts={[
          ...products.map(
            (product) =>
              [
                product,
                (products.length > 1 && (
                  <ActionButton
                    key={product}
                    needs="provision"
                    tone="quiet"
                    label={`Remove ${product}`}
                    spec={() => removeProduct(store, shown, product)}
                  >
                    Remove
                  </ActionButton>
                )) ||
                  'included',
              ] as const,
          ),
          products.includes('shreds-raw')
            ? [
                'Shred destination',
                <span key="destination">
                  {destination === null ? (
                    'none yet '
                  ) : (
                    <>
                      <code>
                        {destination.ip}:{destination.port}
                      </code>{' '}
                      <Badge state={destination.paused ? 'paused' : destination.proof} />{' '}
                      <ActionButton
                        needs="provision"
                        tone="quiet"
                        spec={() => pauseDestination(store, name, destination.paused)}
                      >
                        {destination.paused ? 'Resume' : 'Pause'}
                      </ActionButton>
                    </>
                  )}
                  <ActionButton needs="provision" tone="quiet" spec={() => setDestination(store, name)}>
                    Set destination
                  </ActionButton>
                </span>,
              ]
            : ['Shred destination', ''],
          products.includes('indexer')
            ? [
                'Database user',
                users.length === 0 ? (
                  <ActionButton key="user" needs="provision" tone="quiet" spec={() => grantDatabaseUser(store, name)}>
                    Create database user
                  </ActionButton>
                ) : (
                  <span key="user">
                    <code>{users.join(', ')}</code>{' '}
                    <ActionButton needs="provision" tone="quiet" spec={() => rotateDatabaseUser(store, name)}>
                      Replace password
                    </ActionButton>
                    <ActionButton needs="provision" tone="quiet" spec={() => revokeDatabaseUser(store, name)}>
                      Revoke
                    </ActionButton>
                  </span>
                ),
              ]
            : ['Database user', ''],
          ['Dedicated nodes', (sub.nodes ?? []).join(', ')],
        ]}
      />
    </Panel>
  )
}
