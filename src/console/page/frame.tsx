import { useSignal } from '@preact/signals'
import type { ComponentType } from 'preact'
import { useEffect, useRef } from 'preact/hooks'
import type { AdminRole } from '../../contract/admin-routes.ts'
import { Heading } from '../../ui/parts/heading.tsx'
import { ThemeButton } from '../../ui/theme-button.tsx'
import type { SessionRecord } from '../client/wire.ts'
import { mayDo, NAVIGATION, permissionOf, titleOf } from '../model/navigation.ts'
import { printRoute, type Route, type ViewName } from '../model/route.ts'
import { useStore } from './store.ts'
import { Empty } from './ui/loading.tsx'
import { Search } from './ui/search.tsx'
import { AdminsView } from './views/admins.tsx'
import { AuditView } from './views/audit.tsx'
import { BillingView } from './views/billing.tsx'
import { ConnectionsView } from './views/connections.tsx'
import { CustomerView } from './views/customer.tsx'
import { CustomersView } from './views/customers.tsx'
import { IndexerView } from './views/indexer.tsx'
import { NodesView } from './views/nodes.tsx'
import { NoticesView } from './views/notices.tsx'
import { OverviewView } from './views/overview.tsx'
import { PlansView } from './views/plans.tsx'
import { SenderView } from './views/sender.tsx'
import { ShredsView } from './views/shreds.tsx'
import { SubscriptionView } from './views/subscription.tsx'
import { SubscriptionsView } from './views/subscriptions.tsx'
import { UsageView } from './views/usage.tsx'

const VIEW_OF: Readonly<Record<ViewName, ComponentType>> = {
  overview: OverviewView,
  customers: CustomersView,
  subscriptions: SubscriptionsView,
  usage: UsageView,
  billing: BillingView,
  connections: ConnectionsView,
  nodes: NodesView,
  shreds: ShredsView,
  sender: SenderView,
  indexer: IndexerView,
  plans: PlansView,
  audit: AuditView,
  notices: NoticesView,
  admins: AdminsView,
}

/** The console of a signed-in administrator: bar, navigation and the view of the route. */
export function Frame({ session }: { session: SessionRecord }) {
  const { route, done, overlay, signOut } = useStore()
  const isMenuOpen = useSignal(false)
  const heading = useRef<HTMLElement>(null)
  const where = route.value
  const at = printRoute({ view: where.view, ...(where.id === undefined ? {} : { id: where.id }) })
  const isFirst = useRef(true)
  useEffect(() => {
    document.title = `${where.id ?? titleOf(where.view)} · Sluice console`
    isMenuOpen.value = false
    // Screen readers and the tab key go on in the new view.
    if (!isFirst.current) heading.current?.focus()
    isFirst.current = false
    scrollTo(0, 0)
  }, [at])
  return (
    <div class="console">
      <a class="skip" href="#main" onClick={(event) => (event.preventDefault(), heading.current?.focus())}>
        Skip to content
      </a>
      <header class="bar">
        <p class="brand">
          Sluice <span class="dim">console</span>
        </p>
        <button
          type="button"
          class="button menu-button"
          aria-expanded={isMenuOpen.value}
          aria-controls="navigation"
          onClick={() => (isMenuOpen.value = !isMenuOpen.value)}
        >
          Menu
        </button>
        <Search />
        <button
          type="button"
          class="quiet-button keys-button"
          aria-label="Keys"
          title="Keys  ?"
          onClick={() => (overlay.value = 'keys')}
        >
          ?
        </button>
        <ThemeButton />
        <p class="who">
          <span>
            <bdi>{session.name}</bdi> <span class="dim">{session.role}</span>
          </span>
          <button type="button" class="quiet-button" onClick={() => void signOut()}>
            Sign out
          </button>
        </p>
      </header>
      <nav id="navigation" class={isMenuOpen.value ? 'side side-open' : 'side'} aria-label="Views">
        {NAVIGATION.map((group) => (
          <div key={group.title} class="side-group">
            <p class="side-title">{group.title}</p>
            <ul>
              {group.views
                .filter(({ permission }) => mayDo(session.role, permission))
                .map(({ view, title }) => (
                  <li key={view}>
                    <a href={printRoute({ view })} aria-current={where.view === view ? 'page' : undefined}>
                      {title}
                    </a>
                  </li>
                ))}
            </ul>
          </div>
        ))}
      </nav>
      <main id="main" ref={heading} tabIndex={-1}>
        <View key={at} route={where} role={session.role} />
      </main>
      <p class={done.value === '' ? 'done' : 'done done-shown'} role="status">
        {done.value}
      </p>
    </div>
  )
}

function View({ route, role }: { route: Route; role: AdminRole }) {
  if (!mayDo(role, permissionOf(route.view)))
    return (
      <>
        <Heading title={titleOf(route.view)} />
        <Empty>
          <p>
            Your role, {role}, may not see this. An owner can give you another role: remove and add you under
            Administrators.
          </p>
        </Empty>
      </>
    )
  if (route.view === 'customers' && route.id !== undefined) return <CustomerView name={route.id} />
  if (route.view === 'subscriptions' && route.id !== undefined) return <SubscriptionView name={route.id} />
  const Found = VIEW_OF[route.view]
  return <Found />
}
