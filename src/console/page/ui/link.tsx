import type { ComponentChildren } from 'preact'
import { printRoute, type Route, type ViewName } from '../../model/route.ts'

/** A link to a view or a record of it. */
export function Link({
  to,
  children,
  class: name = 'record-link',
}: {
  to: Partial<Route> & { readonly view: ViewName }
  children: ComponentChildren
  class?: string
}) {
  return (
    <a class={name} href={printRoute(to)}>
      {children}
    </a>
  )
}

export function CustomerLink({ name }: { name: string | null | undefined }) {
  return name == null ? <span class="dim">–</span> : <Link to={{ view: 'customers', id: name }}>{name}</Link>
}

export function SubscriptionLink({ name }: { name: string | null | undefined }) {
  return name == null ? <span class="dim">–</span> : <Link to={{ view: 'subscriptions', id: name }}>{name}</Link>
}
